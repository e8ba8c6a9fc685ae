// A scripted worker for the parent's tests: this test program itself, started with --fake-worker.
// It speaks protocol.md and goes wrong where its script says so.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/run/process.h"

namespace kvmark {

// The script: {"log": FILE, "engines": {ENGINE: {"at": CMD, "index": N, "do": FAULT, "tpot": MS,
// "delay_ms": MS, "live_bytes": N, "case_id": ID, "timed_digest": of rounds that were not
// verified}}}. `log` gets a line "ENGINE CMD" a request. Without `index` the fault comes at every
// such request. Faults: kill, interrupt (its parent), exit, silent, babble, half, wrong, error,
// unknown (a usage error), chatter, noise, digest, incorrect, shapeless, unclean, deaf.
WorkerCommand fake_worker(const nlohmann::json& script);

// The body of the process. Returns its exit code.
int run_fake_worker(const std::string& script);

}  // namespace kvmark
