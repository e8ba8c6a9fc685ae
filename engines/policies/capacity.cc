#include "engines/policies/capacity.h"

#include <algorithm>
#include <cmath>

#include "engines/core/check.h"

namespace kvmark {

std::function<int(int rows)> stop_capacity(int max_len) {
  return [max_len](int) { return max_len; };
}

std::function<int(int rows)> grow_capacity(int max_len, double factor) {
  check(factor > 1, "a growth factor of {} does not grow", factor);
  return [max_len, factor](int rows) {
    double slots = kFirstCapacity;
    while (slots < rows) slots = std::max(slots + 1, std::ceil(slots * factor));
    return static_cast<int>(std::min<double>(slots, max_len));
  };
}

}  // namespace kvmark
