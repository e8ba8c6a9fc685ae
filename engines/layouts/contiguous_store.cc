#include "engines/layouts/contiguous_store.h"

#include <algorithm>
#include <utility>

namespace kvmark {
namespace {

BlockGeometry sequence_geometry(const StoreSpec& spec, int slots) {
  return make_geometry(spec.k, spec.v, spec.kv_heads, round_to_tiles(spec.k, spec.v, slots));
}

}  // namespace

ContiguousStore::ContiguousStore(const StoreSpec& spec, CapacityRule capacity)
    : RowStore(spec),
      capacity_(std::move(capacity)),
      sequences_(static_cast<size_t>(spec.max_seqs)) {
  step_.reserve(sequences_.size());
}

int64_t ContiguousStore::bytes(const StoreSpec& spec, int slots) {
  return spec.layers * sequence_geometry(spec, slots).block_bytes;
}

ContiguousStore::Sequence ContiguousStore::allocate(int slots) {
  Sequence sequence;
  sequence.geometry = sequence_geometry(spec(), slots);
  sequence.memory = Buffer(static_cast<size_t>(spec().layers * sequence.geometry.block_bytes));
  sequence.memory.advise_huge_pages();
  if (spec().poison) {
    for (int l = 0; l < spec().layers; ++l) poison_slots(sequence.geometry, sequence.layer(l), 0);
  }
  return sequence;
}

void ContiguousStore::open_for(int seq, int rows) {
  const int slots = capacity_(rows);
  const int64_t size = bytes(spec(), slots);
  if (spec().budget_bytes > 0 && reserved_ + size > spec().budget_bytes) {
    throw RuntimeError(fmt::format(
        "a sequence of {} positions takes {} bytes; of the budget of {} bytes {} are left", slots,
        size, spec().budget_bytes, spec().budget_bytes - reserved_));
  }
  at(seq) = allocate(slots);
  reserved_ += size;
  peak_ = std::max(peak_, reserved_);
}

void ContiguousStore::open(int seq) { open_for(seq, 0); }

void ContiguousStore::fork(int from, int to, int length) {
  open_for(to, length);
  Sequence& source = at(from);
  Sequence& target = at(to);
  for (int l = 0; l < spec().layers; ++l) {
    copy_slots(source.geometry, source.layer(l), target.geometry, target.layer(l), length);
  }
}

void ContiguousStore::close(int seq) {
  reserved_ -= static_cast<int64_t>(at(seq).memory.size());
  at(seq) = Sequence();
}

void ContiguousStore::poison_behind(int seq, int rows) {
  if (!spec().poison) return;
  Sequence& sequence = at(seq);
  for (int l = 0; l < spec().layers; ++l) {
    poison_slots(sequence.geometry, sequence.layer(l), rows);
  }
}

void ContiguousStore::truncate(int seq, int length) { poison_behind(seq, length); }

std::optional<Refusal> ContiguousStore::begin(std::span<const Piece> pieces) {
  int64_t reserved = reserved_;
  for (const Piece& piece : pieces) {
    const int rows = piece.first + piece.rows;
    if (rows <= at(piece.seq).geometry.block_slots) continue;
    const int64_t size = bytes(spec(), capacity_(rows));
    if (spec().budget_bytes > 0 && reserved + size > spec().budget_bytes) {
      return Refusal{
          fmt::format("sequence {} cannot grow to {} positions: old and new memory together would "
                      "take {} bytes, the budget is {}",
                      piece.seq, capacity_(rows), reserved + size, spec().budget_bytes)};
    }
    reserved += size - static_cast<int64_t>(at(piece.seq).memory.size());
  }
  for (const Piece& piece : pieces) {
    if (piece.first + piece.rows > at(piece.seq).geometry.block_slots) grow(piece);
  }
  step_.assign(pieces.begin(), pieces.end());
  return std::nullopt;
}

void ContiguousStore::grow(const Piece& piece) {
  Sequence& old = at(piece.seq);
  Sequence larger = allocate(capacity_(piece.first + piece.rows));
  const auto size = static_cast<int64_t>(larger.memory.size());
  peak_ = std::max(peak_, reserved_ + size);
  for (int l = 0; l < spec().layers; ++l) {
    copy_slots(old.geometry, old.layer(l), larger.geometry, larger.layer(l), piece.first);
  }
  reserved_ += size - static_cast<int64_t>(old.memory.size());
  old = std::move(larger);
  record({.kind = "grow", .seq = piece.seq, .position = piece.first, .bytes = size});
}

void ContiguousStore::rollback() {
  for (const Piece& piece : step_) poison_behind(piece.seq, piece.first);
  step_.clear();
}

Span ContiguousStore::rows(int seq, int layer, int count) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  return sequence.geometry.span(sequence.memory.data() + layer * sequence.geometry.block_bytes,
                                nullptr, count);
}

}  // namespace kvmark
