// What the machine could do in a case's decode steps, measured beside them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/machine/read_ceiling.h"
#include "bench/plan/case.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

class Ceilings {
 public:
  // Takes the memory that `predicted` names (a second or so for the largest). The pool must outlive
  // this object. Throws RuntimeError when there is no such memory.
  Ceilings(const Case& c, const Prediction& predicted, ThreadPool& pool);

  // The machine now, as the "ceiling" of a round in the worker protocol: reading in one piece and
  // in shuffled pages, f32 arithmetic. Null: says nothing about this case.
  nlohmann::ordered_json measure();

  int64_t bytes() const;  // held

 private:
  ThreadPool& pool_;
  std::optional<ReadCeiling> read_, pages_;
  bool computes_;  // the steps' attention is bound by arithmetic
};

}  // namespace kvmark
