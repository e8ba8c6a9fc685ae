// How much memory a contiguous sequence takes as it gets longer: the slots to take when `rows` do
// not fit into those it has. A sequence that is cut or rolled back keeps what it has.
#pragma once

#include <functional>

namespace kvmark {

// `stop`: the whole of max_len at once, and no more.
std::function<int(int rows)> stop_capacity(int max_len);

// Slots that a growing sequence starts with.
inline constexpr int kFirstCapacity = 64;

// `grow`: the smallest of 64, 64·factor, 64·factor², … (rounded up, at most max_len) that holds the
// rows, whatever the sequence had before. factor > 1. Amortized cost of the moves: the copied rows
// are at most 1/(factor − 1) of those appended.
std::function<int(int rows)> grow_capacity(int max_len, double factor);

}  // namespace kvmark
