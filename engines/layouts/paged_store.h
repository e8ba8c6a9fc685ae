// Blocks on demand, a table of them for each sequence (Kwon et al., "PagedAttention", 2023).
#pragma once

#include <optional>
#include <vector>

#include "engines/core/buffer.h"
#include "engines/layouts/block_pool.h"
#include "engines/layouts/geometry.h"
#include "engines/layouts/row_store.h"

namespace kvmark {

// One pool a layer, the same block ids in all of them. Forks share blocks; who writes into a shared
// block gets its own copy first (event "copy_on_write"). Address space for the largest number of
// blocks is reserved at once, pages are taken as blocks are written.
class PagedStore : public RowStore {
 public:
  // `shuffle_seed`: hand out the blocks in a random order, as after long use.
  PagedStore(const StoreSpec& spec, int block_slots, std::optional<uint64_t> shuffle_seed);

  // Bytes of one block in all layers, and of the tables of all sequences.
  static int64_t block_bytes(const StoreSpec& spec, int block_slots);
  static int64_t table_bytes(const StoreSpec& spec, int block_slots);
  // The most blocks that the store may hold: every sequence at its longest, or what the budget
  // allows.
  static int64_t max_blocks(const StoreSpec& spec, int block_slots);

  void open(int seq) override;
  void fork(int from, int to, int length) override;
  void close(int seq) override;
  void truncate(int seq, int length) override;
  std::optional<Refusal> begin(std::span<const Piece> pieces) override;
  void commit() override { step_.clear(); }
  void rollback() override;
  Span rows(int seq, int layer, int count) const override;
  HeldBytes held() const override;

  const BlockPool& pool() const { return pool_; }
  // The blocks of a sequence in order; −1: unset.
  std::span<const int32_t> table(int seq) const;

 private:
  // A piece of the open step, and the shared block that it replaces by its own copy; −1: none.
  struct Begun {
    Piece piece;
    int32_t shared = -1;
  };
  std::byte* block(int layer, int32_t id) {
    return memory_.data() + layer * layer_bytes_ + id * geometry_.block_bytes;
  }
  int32_t* entries(int seq) { return tables_.data() + int64_t{seq} * table_length_; }
  int32_t tail_block(const Piece& piece) const;
  int32_t shared_tail(std::span<const Piece> pieces, size_t index) const;
  void copy_tail(const Begun& begun);
  void free_from(int seq, int index);
  void release(int32_t id);
  void poison_behind(int seq, int rows);

  BlockGeometry geometry_;
  int table_length_;
  std::vector<int32_t> tables_;  // (max_seqs, table_length_); −1: unset
  BlockPool pool_;
  int64_t layer_bytes_;
  Buffer memory_;            // (layers, layer_bytes_)
  std::vector<Begun> step_;  // of the open step, for rollback
};

}  // namespace kvmark
