// What is said of the speed of engines: by the rounds of rows that took turns.
#pragma once

#include <optional>
#include <vector>

#include "bench/page/comparable.h"
#include "bench/page/sentence.h"

namespace kvmark {

// How fast the engines are at the longest context, against the baseline: one sentence each of those
// that are decided, as fast, open, and without an interval.
std::vector<Sentence> speed_sentences(const ComparableRows& group);

// From which context on engines are faster than the baseline; nothing where none is, or where one
// context was measured.
std::optional<Sentence> payoff_sentence(const ComparableRows& group);

// What recomputing costs in the longest run that it and the baseline made; nothing without both.
std::optional<Sentence> recompute_sentence(const ComparableRows& group);

}  // namespace kvmark
