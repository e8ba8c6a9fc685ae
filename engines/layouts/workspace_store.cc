#include "engines/layouts/workspace_store.h"

#include <algorithm>

namespace kvmark {
namespace {

BlockGeometry workspace_geometry(const StoreSpec& spec) {
  // Each piece starts at a tile of its own.
  const int unit = round_to_tiles(spec.k, spec.v, 1);
  const int pieces = std::min(spec.max_seqs, spec.max_rows);
  const int units = (spec.max_rows + pieces * (unit - 1)) / unit;
  return make_geometry(spec.k, spec.v, spec.kv_heads, units * unit);
}

}  // namespace

WorkspaceStore::WorkspaceStore(const StoreSpec& spec)
    : RowStore(spec),
      geometry_(workspace_geometry(spec)),
      memory_(static_cast<size_t>(geometry_.block_bytes)),
      first_slot_(static_cast<size_t>(spec.max_seqs), -1) {
  memory_.advise_huge_pages();
  if (spec.poison) poison_slots(geometry_, memory_.data(), 0);
}

int64_t WorkspaceStore::bytes(const StoreSpec& spec) {
  return workspace_geometry(spec).block_bytes;
}

void WorkspaceStore::open(int seq) {
  if (spec().budget_bytes > 0 && geometry_.block_bytes > spec().budget_bytes) {
    throw RuntimeError(fmt::format("the workspace of {} rows takes {} bytes, the budget is {}",
                                   spec().max_rows, geometry_.block_bytes, spec().budget_bytes));
  }
  first_slot_[static_cast<size_t>(seq)] = -1;
}

void WorkspaceStore::fork(int /*from*/, int to, int /*length*/) { open(to); }

void WorkspaceStore::close(int seq) { first_slot_[static_cast<size_t>(seq)] = -1; }

void WorkspaceStore::truncate(int /*seq*/, int /*length*/) {}

void WorkspaceStore::forget_all() {
  std::fill(first_slot_.begin(), first_slot_.end(), -1);
  if (spec().poison) poison_slots(geometry_, memory_.data(), 0);
}

std::optional<Refusal> WorkspaceStore::begin(std::span<const Piece> pieces) {
  forget_all();
  int slot = 0;
  for (const Piece& piece : pieces) {
    first_slot_[static_cast<size_t>(piece.seq)] = slot;
    slot += round_to_tiles(spec().k, spec().v, piece.rows);
  }
  return std::nullopt;
}

void WorkspaceStore::rollback() { forget_all(); }

Span WorkspaceStore::rows(int seq, int /*layer*/, int count) const {
  const int slot = first_slot_[static_cast<size_t>(seq)];
  check(slot >= 0, "sequence {} was not in the last step: an engine without a cache kept no rows",
        seq);
  Span span = geometry_.span(memory_.data(), nullptr, count);
  span.first_slot = slot;
  return span;
}

HeldBytes WorkspaceStore::held() const {
  return {.reserved = geometry_.block_bytes, .peak = geometry_.block_bytes};
}

}  // namespace kvmark
