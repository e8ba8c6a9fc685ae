// Which blocks are whose: ids and reference counts, no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kvmark {

// Hands out block ids. The lowest free id goes first, so that a sequence tends to lie in one
// physical run; with a shuffle seed the ids are a fixed random permutation instead. Nothing is
// allocated after the constructor.
class BlockPool {
 public:
  BlockPool(int capacity, std::optional<uint64_t> shuffle_seed);

  int take();            // with one reference; −1 when no block is left
  void share(int id);    // one reference more
  bool release(int id);  // one reference less; true when that was the last and the block is free

  int references(int id) const { return references_[static_cast<size_t>(id)]; }
  int capacity() const { return static_cast<int>(references_.size()); }
  int used() const { return used_; }
  // Blocks ever handed out: what the pool has taken from the machine.
  int held() const { return held_; }
  int free() const { return held_ - used_; }
  int available() const { return capacity() - used_; }

 private:
  std::vector<int> references_;  // by id; 0: free
  std::vector<int> id_of_;       // rank → id
  std::vector<int> rank_of_;     // id → rank
  std::vector<int> freed_;       // ranks below held_ that are free, a min-heap
  int held_ = 0;
  int used_ = 0;
};

}  // namespace kvmark
