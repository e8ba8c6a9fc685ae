// What speaks against the timings of a row: what its own probes saw, and how its rounds lie.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record/probes.h"

namespace kvmark {

// The dip of J. A. and P. M. Hartigan (The Dip Test of Unimodality, Annals of Statistics 13, 1985):
// the largest distance between the samples' distribution and the nearest one with a single mode;
// from 1/2n for equally spaced samples to almost 1/4 for two equal heaps. n ≥ 1.
double dip(std::span<const double> samples);

// Rounds that lie in two heaps, as those of a machine with two speeds do: their median is that of
// neither. Ten or more samples whose dip fewer than 1 in 100 uniform lists of that length reach
// (fewer still of those with a peak), and whose middle 80 % are spread over more than 2 % of the
// median.
bool has_two_modes(std::span<const double> rounds);

// Rounds that grow slower or faster as they come: Kendall's rank correlation with their order
// differs from none at the 1 % level (six or more rounds can), and the medians of the two halves by
// more than 2 %.
bool drifts(std::span<const double> rounds);

// The reasons to doubt the timings, in words that are the same in every row; the figures behind
// them are `total`, the probes of all rounds together, and the rounds' figures in their order.
// What is not known gives no reason.
std::vector<std::string> disturbances(const Probes& total, std::span<const double> rounds);

}  // namespace kvmark
