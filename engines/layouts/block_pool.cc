#include "engines/layouts/block_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// Fisher–Yates with a generator and a reduction that are the same in every standard library.
void shuffle(std::vector<int>& ids, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t left = ids.size(); left > 1; --left) {
    std::swap(ids[left - 1], ids[random() % left]);
  }
}

}  // namespace

BlockPool::BlockPool(int capacity, std::optional<uint64_t> shuffle_seed)
    : references_(static_cast<size_t>(capacity)),
      id_of_(references_.size()),
      rank_of_(references_.size()) {
  std::iota(id_of_.begin(), id_of_.end(), 0);
  if (shuffle_seed) shuffle(id_of_, *shuffle_seed);
  for (int rank = 0; rank < capacity; ++rank) {
    rank_of_[static_cast<size_t>(id_of_[static_cast<size_t>(rank)])] = rank;
  }
  freed_.reserve(references_.size());
}

int BlockPool::take() {
  if (used_ == capacity()) return -1;
  int rank = held_;
  if (freed_.empty()) {
    ++held_;
  } else {
    std::pop_heap(freed_.begin(), freed_.end(), std::greater<>());
    rank = freed_.back();
    freed_.pop_back();
  }
  ++used_;
  const int id = id_of_[static_cast<size_t>(rank)];
  references_[static_cast<size_t>(id)] = 1;
  return id;
}

void BlockPool::share(int id) {
  check(references(id) > 0, "block {} is shared but free", id);
  ++references_[static_cast<size_t>(id)];
}

bool BlockPool::release(int id) {
  check(references(id) > 0, "block {} is released but free", id);
  if (--references_[static_cast<size_t>(id)] > 0) return false;
  --used_;
  freed_.push_back(rank_of_[static_cast<size_t>(id)]);
  std::push_heap(freed_.begin(), freed_.end(), std::greater<>());
  return true;
}

}  // namespace kvmark
