// No cache: one layer's rows of the step in hand, overwritten by the next layer.
#pragma once

#include <vector>

#include "engines/core/buffer.h"
#include "engines/layouts/geometry.h"
#include "engines/layouts/row_store.h"

namespace kvmark {

// Room for max_rows rows of one layer, in which the pieces of a step lie one behind the other.
// rows() gives the same slots for every layer, and of a closed step until the next one begins.
class WorkspaceStore : public RowStore {
 public:
  explicit WorkspaceStore(const StoreSpec& spec);

  // The bytes that such a store holds from its constructor on.
  static int64_t bytes(const StoreSpec& spec);

  bool keeps_rows() const override { return false; }
  void open(int seq) override;
  void fork(int from, int to, int length) override;
  void close(int seq) override;
  void truncate(int seq, int length) override;
  std::optional<Refusal> begin(std::span<const Piece> pieces) override;
  void commit() override {}
  void rollback() override;
  Span rows(int seq, int layer, int count) const override;
  HeldBytes held() const override;

 private:
  void forget_all();

  BlockGeometry geometry_;
  Buffer memory_;
  std::vector<int> first_slot_;  // by sequence; −1: not in the step
};

}  // namespace kvmark
