// What records say in sentences, for a reader who never saw the program.
#pragma once

#include <vector>

#include "bench/compare/comparison.h"
#include "bench/page/sentence.h"
#include "bench/report/report.h"

namespace kvmark {

// Some eight sentences at most, the most useful first; of several settings each is about the one
// with most rows that has something to say. Bytes a token and the speed at the longest context,
// both against contiguous/f16 or else the first engine with a cache; from which context on an
// engine is faster; what formats lose; what recomputing costs; which rows have no figures, and why.
// What the rows do not carry is not said: no speed without an interval as a fact (but for
// recomputing, where it is more than twice as slow), none of a generic kernel beside a tuned one,
// no divergence of tokens where no text was scored. Records must be valid.
std::vector<Sentence> summary(Records records);

// The verdict of a comparison.
Sentence verdict_sentence(const Comparison& comparison);

}  // namespace kvmark
