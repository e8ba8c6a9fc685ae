#include "engines/layouts/paged_store.h"

#include <algorithm>

namespace kvmark {
namespace {

BlockGeometry block_geometry(const StoreSpec& spec, int block_slots) {
  return make_geometry(spec.k, spec.v, spec.kv_heads, block_slots);
}

int blocks_for(int rows, int block_slots) {
  return static_cast<int>((int64_t{rows} + block_slots - 1) / block_slots);
}

}  // namespace

int64_t PagedStore::block_bytes(const StoreSpec& spec, int block_slots) {
  return spec.layers * block_geometry(spec, block_slots).block_bytes;
}

int64_t PagedStore::table_bytes(const StoreSpec& spec, int block_slots) {
  return int64_t{spec.max_seqs} * blocks_for(spec.max_len, block_slots) *
         static_cast<int64_t>(sizeof(int32_t));
}

int64_t PagedStore::max_blocks(const StoreSpec& spec, int block_slots) {
  const int64_t longest = int64_t{spec.max_seqs} * blocks_for(spec.max_len, block_slots);
  if (spec.budget_bytes == 0) return longest;
  const int64_t left = spec.budget_bytes - table_bytes(spec, block_slots);
  return std::clamp<int64_t>(left / block_bytes(spec, block_slots), 0, longest);
}

PagedStore::PagedStore(const StoreSpec& spec, int block_slots, std::optional<uint64_t> shuffle_seed)
    : RowStore(spec),
      geometry_(block_geometry(spec, block_slots)),
      table_length_(blocks_for(spec.max_len, block_slots)),
      tables_(static_cast<size_t>(spec.max_seqs) * static_cast<size_t>(table_length_), -1),
      pool_(static_cast<int>(max_blocks(spec, block_slots)), shuffle_seed),
      layer_bytes_(pool_.capacity() * geometry_.block_bytes),
      memory_(static_cast<size_t>(spec.layers * layer_bytes_)) {
  memory_.advise_huge_pages();
  step_.reserve(static_cast<size_t>(spec.max_seqs));
  if (!spec.poison) return;
  for (int l = 0; l < spec.layers; ++l) {
    for (int32_t id = 0; id < pool_.capacity(); ++id) poison_slots(geometry_, block(l, id), 0);
  }
}

void PagedStore::open(int /*seq*/) {
  if (pool_.capacity() > 0) return;
  throw RuntimeError(fmt::format(
      "the budget of {} bytes holds no block: one of {} positions takes {} bytes, the "
      "block tables {}",
      spec().budget_bytes, geometry_.block_slots, block_bytes(spec(), geometry_.block_slots),
      table_bytes(spec(), geometry_.block_slots)));
}

void PagedStore::fork(int from, int to, int length) {
  const int blocks = geometry_.blocks(length);
  for (int i = 0; i < blocks; ++i) {
    pool_.share(entries(from)[i]);
    entries(to)[i] = entries(from)[i];
  }
}

void PagedStore::release(int32_t id) {
  if (!pool_.release(id) || !spec().poison) return;
  for (int l = 0; l < spec().layers; ++l) poison_slots(geometry_, block(l, id), 0);
}

void PagedStore::free_from(int seq, int index) {
  int32_t* table = entries(seq);
  for (; index < table_length_ && table[index] >= 0; ++index) {
    release(table[index]);
    table[index] = -1;
  }
}

void PagedStore::close(int seq) { free_from(seq, 0); }

void PagedStore::poison_behind(int seq, int rows) {
  if (!spec().poison || rows % geometry_.block_slots == 0) return;
  const int32_t id = entries(seq)[rows / geometry_.block_slots];
  if (pool_.references(id) > 1) return;  // another sequence may have rows there
  for (int l = 0; l < spec().layers; ++l) {
    poison_slots(geometry_, block(l, id), rows % geometry_.block_slots);
  }
}

void PagedStore::truncate(int seq, int length) {
  free_from(seq, geometry_.blocks(length));
  poison_behind(seq, length);
}

// The block that already holds rows of the sequence and will get the first ones of the piece; −1
// where the piece starts a block of its own.
int32_t PagedStore::tail_block(const Piece& piece) const {
  if (piece.first % geometry_.block_slots == 0) return -1;
  return table(piece.seq)[static_cast<size_t>(piece.first / geometry_.block_slots)];
}

// The tail block that the piece must copy before it writes, −1 for none. Where all owners of a
// block write in this step, the one with the most rows keeps it: it writes behind the rows of all
// others, so that a rollback can give the block back to them.
int32_t PagedStore::shared_tail(std::span<const Piece> pieces, size_t index) const {
  const int32_t id = tail_block(pieces[index]);
  if (id < 0 || pool_.references(id) == 1) return -1;
  int writers = 0;
  size_t longest = index;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (tail_block(pieces[i]) != id) continue;
    if (++writers == 1 || pieces[i].first >= pieces[longest].first) longest = i;
  }
  return writers == pool_.references(id) && longest == index ? -1 : id;
}

void PagedStore::copy_tail(const Begun& begun) {
  const Piece& piece = begun.piece;
  int32_t& entry = entries(piece.seq)[piece.first / geometry_.block_slots];
  entry = pool_.take();
  for (int l = 0; l < spec().layers; ++l) {
    copy_slots(geometry_, block(l, begun.shared), geometry_, block(l, entry),
               piece.first % geometry_.block_slots);
  }
  pool_.release(begun.shared);
  record({.kind = "copy_on_write",
          .seq = piece.seq,
          .position = piece.first,
          .bytes = spec().layers * geometry_.block_bytes});
}

std::optional<Refusal> PagedStore::begin(std::span<const Piece> pieces) {
  int64_t needed = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    step_.push_back({piece, shared_tail(pieces, i)});
    needed += step_.back().shared >= 0;
    needed += geometry_.blocks(piece.first + piece.rows) - geometry_.blocks(piece.first);
  }
  if (needed > pool_.available()) {
    step_.clear();
    return Refusal{fmt::format(
        "the pool of {} blocks of {} positions is full: the step needs {} more, {} are free; raise "
        "the budget ({} bytes) or close a sequence",
        pool_.capacity(), geometry_.block_slots, needed, pool_.available(), spec().budget_bytes)};
  }
  for (const Begun& begun : step_) {
    const Piece& piece = begun.piece;
    if (begun.shared >= 0) copy_tail(begun);
    const int blocks = geometry_.blocks(piece.first + piece.rows);
    for (int i = geometry_.blocks(piece.first); i < blocks; ++i) {
      entries(piece.seq)[i] = pool_.take();
    }
  }
  return std::nullopt;
}

void PagedStore::rollback() {
  for (const auto& [piece, shared] : step_) {
    free_from(piece.seq, geometry_.blocks(piece.first));
    if (shared >= 0) {
      int32_t& entry = entries(piece.seq)[piece.first / geometry_.block_slots];
      release(entry);
      pool_.share(shared);
      entry = shared;
    }
  }
  for (const auto& [piece, shared] : step_) poison_behind(piece.seq, piece.first);
  step_.clear();
}

std::span<const int32_t> PagedStore::table(int seq) const {
  return {tables_.data() + int64_t{seq} * table_length_, static_cast<size_t>(table_length_)};
}

Span PagedStore::rows(int seq, int layer, int count) const {
  return geometry_.span(memory_.data() + layer * layer_bytes_, table(seq).data(), count);
}

HeldBytes PagedStore::held() const {
  const int64_t table = table_bytes(spec(), geometry_.block_slots);
  const int64_t reserved = pool_.held() * spec().layers * geometry_.block_bytes + table;
  return {.reserved = reserved,
          .peak = reserved,
          .table = table,
          .blocks_used = pool_.used(),
          .blocks_free = pool_.free()};
}

}  // namespace kvmark
