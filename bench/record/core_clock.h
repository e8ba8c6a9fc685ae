// The frequency of a core, measured: it is also known where the system tells none, as in virtual
// machines.
#pragma once

namespace kvmark {

// Cycles a nanosecond of the core that the caller runs on, from a chain of dependent additions and
// exclusive ors (a cycle each on every processor that we know); 5 to 10 µs. The best of a few short
// chains, so that an interruption does not count; on a shared machine it wanders by ±3 %. An
// emulated processor has no such cycle, so that the figure may lie far off there: compare it with
// itself only.
double core_ghz();

}  // namespace kvmark
