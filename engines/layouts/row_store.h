// Where the rows of the sequences lie: the part of an engine that knows nothing of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engines/core/kv_engine.h"
#include "engines/core/tile.h"
#include "engines/layouts/span.h"

namespace kvmark {

// What a store is made for. budget_bytes 0: no budget.
struct StoreSpec {
  int layers = 0;
  int kv_heads = 0;
  TileSpec k, v;
  int max_seqs = 0;
  int max_len = 0;
  int max_rows = 0;
  int64_t budget_bytes = 0;
  bool poison = false;  // keep unused memory filled with NaN patterns, table entries with −1
};

// What the store's allocator holds, as the fields of Footprint.
struct HeldBytes {
  int64_t reserved = 0;
  int64_t peak = 0;
  int64_t table = 0;
  int64_t blocks_used = 0;
  int64_t blocks_free = 0;
};

// Callers keep to the rules of KvEngine, which checks them: sequences are open, lengths are within
// what was committed, open/fork/close/truncate stand outside a step. Rows of an open step lie
// behind the committed ones and are addressable from begin() on.
class RowStore {
 public:
  explicit RowStore(const StoreSpec& spec) : spec_(spec) {}
  virtual ~RowStore() = default;
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  // False for a workspace that forgets its rows when a step ends.
  virtual bool keeps_rows() const { return true; }
  // open and fork throw RuntimeError where the budget is too small; nothing is changed then.
  virtual void open(int seq) = 0;
  virtual void fork(int from, int to, int length) = 0;
  virtual void close(int seq) = 0;
  virtual void truncate(int seq, int length) = 0;

  // Room for the pieces in every layer, for all of them or for none.
  virtual std::optional<Refusal> begin(std::span<const Piece> pieces) = 0;
  virtual void commit() = 0;
  virtual void rollback() = 0;

  // Rows [0, count) of a sequence. Valid until the next call that is not const.
  virtual Span rows(int seq, int layer, int count) const = 0;
  virtual HeldBytes held() const = 0;

  std::vector<Event> take_events() { return std::exchange(events_, {}); }

 protected:
  const StoreSpec& spec() const { return spec_; }
  void record(Event event) { events_.push_back(std::move(event)); }

 private:
  StoreSpec spec_;
  std::vector<Event> events_;
};

}  // namespace kvmark
