// One piece of memory a sequence.
#pragma once

#include <functional>
#include <vector>

#include "engines/core/buffer.h"
#include "engines/layouts/geometry.h"
#include "engines/layouts/row_store.h"

namespace kvmark {

// Slots for a sequence that holds `rows` rows; must not fall as rows grow (engines/policies).
using CapacityRule = std::function<int(int rows)>;

// A sequence is one block a layer, taken at open() and given back at close(). A sequence that
// outgrows its slots moves, bit for bit, into the larger block that the rule says (event "grow";
// old and new count towards the peak and the budget while it moves).
class ContiguousStore : public RowStore {
 public:
  ContiguousStore(const StoreSpec& spec, CapacityRule capacity);

  // The bytes of one sequence with room for `slots` positions.
  static int64_t bytes(const StoreSpec& spec, int slots);

  void open(int seq) override;
  void fork(int from, int to, int length) override;
  void close(int seq) override;
  void truncate(int seq, int length) override;
  std::optional<Refusal> begin(std::span<const Piece> pieces) override;
  void commit() override { step_.clear(); }
  void rollback() override;
  Span rows(int seq, int layer, int count) const override;
  HeldBytes held() const override { return {.reserved = reserved_, .peak = peak_}; }

 private:
  struct Sequence {
    BlockGeometry geometry;
    Buffer memory;  // (layers, block); empty: not open
    std::byte* layer(int index) { return memory.data() + index * geometry.block_bytes; }
  };
  Sequence& at(int seq) { return sequences_[static_cast<size_t>(seq)]; }
  Sequence allocate(int slots);
  void open_for(int seq, int rows);
  void grow(const Piece& piece);
  void poison_behind(int seq, int rows);

  CapacityRule capacity_;
  std::vector<Sequence> sequences_;
  std::vector<Piece> step_;  // of the open step, for rollback
  int64_t reserved_ = 0;
  int64_t peak_ = 0;
};

}  // namespace kvmark
