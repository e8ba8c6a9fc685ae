#include "engines/catalog/catalog.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "engines/catalog/store_spec.h"
#include "engines/layouts/paged_store.h"
#include "engines/layouts/workspace_store.h"

namespace kvmark {
namespace {

// 64 TiB: half of the address space of a process on x86-64 with four-level pages.
constexpr double kMaxBytes = 70368744177664.0;
constexpr int kMaxLength = 1 << 30;

template <typename... Args>
std::optional<Refusal> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return Refusal{fmt::format(text, std::forward<Args>(args)...)};
}

std::optional<Refusal> check_codec(const char* side, TileForm Codec::*form, const std::string& name,
                                   int dim) {
  const Codec* codec = find_codec(name);
  if (codec == nullptr) return refuse("{}: no codec `{}`", side, name);
  const TileSpec tile = (codec->*form).tile(dim);
  if (tile.bytes <= 0) return refuse("{}: {} cannot hold heads of {} channels", side, name, dim);
  if (!tile.row_writable) {
    return refuse(
        "{}: {} writes {} rows at once and needs a raw tail for the open ones, which no "
        "layout keeps yet",
        side, name, tile.tokens);
  }
  return std::nullopt;
}

// Do the largest sizes stay within the address space? In floating point, since integers overflow
// where this matters.
std::optional<Refusal> check_size(const EngineSpec& engine, const KvSpec& spec) {
  const StoreSpec store = store_spec(engine, spec);
  const double row = static_cast<double>(store.k.bytes) / store.k.tokens +
                     static_cast<double>(store.v.bytes) / store.v.tokens;
  const double slots =
      engine.layout == LayoutKind::recompute
          ? double{1} * spec.max_rows
          : double{1} * spec.layers * spec.max_seqs * (double{1} * spec.max_len + engine.block);
  if (slots * row * spec.kv_heads <= kMaxBytes) return std::nullopt;
  return refuse(
      "{} sequences of {} positions need about {:.3g} bytes, more than the {:.3g} of a "
      "process's address space; lower max_seq_len or the batch",
      spec.max_seqs, spec.max_len, slots * row * spec.kv_heads, kMaxBytes);
}

std::optional<Refusal> check_paged(const EngineSpec& engine, const KvSpec& spec) {
  if (engine.policy != PolicyKind::stop) {
    return refuse(
        "policy grow is for contiguous only: paged takes memory a block at a time already");
  }
  if (engine.block < 1) return refuse("a block holds at least 1 position, not {}", engine.block);
  const StoreSpec store = store_spec(engine, spec);
  for (const auto& [side, name, tile] :
       {std::tuple{"k", engine.k_codec, store.k}, std::tuple{"v", engine.v_codec, store.v}}) {
    if (engine.block % tile.tokens != 0) {
      return refuse(
          "{}: tiles of {} hold {} positions, which do not fit into blocks of {}; use a "
          "multiple of {}",
          side, name, tile.tokens, engine.block, tile.tokens);
    }
  }
  const double blocks = double{1} * spec.max_seqs * (spec.max_len / engine.block + 1);
  if (blocks > std::numeric_limits<int32_t>::max()) {
    return refuse(
        "{:.0f} blocks of {} positions are more than a block table can number; use a "
        "larger block",
        blocks, engine.block);
  }
  return std::nullopt;
}

std::optional<Refusal> check_layout(const EngineSpec& engine, const KvSpec& spec) {
  switch (engine.layout) {
    case LayoutKind::recompute:
      if (engine.k_codec != "f32" || engine.v_codec != "f32") {
        return refuse(
            "recompute keeps nothing between steps: a storage format has nothing to save; "
            "use recompute alone");
      }
      if (engine.policy != PolicyKind::stop) {
        return refuse("recompute keeps nothing between steps: nothing can grow");
      }
      return std::nullopt;
    case LayoutKind::contiguous:
      if (engine.policy == PolicyKind::grow && !(engine.grow_factor > 1)) {
        return refuse("a growth factor of {} does not grow; it must be over 1", engine.grow_factor);
      }
      return std::nullopt;
    case LayoutKind::paged:
      return check_paged(engine, spec);
  }
  return refuse("unknown layout");
}

// Largest `reserved` while sequences of these lengths get their rows one at a time, one sequence
// after the other: a moving sequence holds its old and its new block.
Footprint contiguous_footprint(const EngineSpec& engine, const KvSpec& spec,
                               std::span<const int> lengths) {
  const StoreSpec store = store_spec(engine, spec);
  const CapacityRule capacity = capacity_rule(engine, spec);
  Footprint f;
  f.reserved_bytes =
      static_cast<int64_t>(lengths.size()) * ContiguousStore::bytes(store, capacity(0));
  f.peak_bytes = f.reserved_bytes;
  for (const int length : lengths) {
    int slots = capacity(0);
    while (slots < length) {
      const int larger = capacity(slots + 1);
      const int64_t added = ContiguousStore::bytes(store, larger);
      f.peak_bytes = std::max(f.peak_bytes, f.reserved_bytes + added);
      f.reserved_bytes += added - ContiguousStore::bytes(store, slots);
      slots = larger;
    }
  }
  return f;
}

Footprint paged_footprint(const EngineSpec& engine, const KvSpec& spec,
                          std::span<const int> lengths) {
  const StoreSpec store = store_spec(engine, spec);
  Footprint f;
  for (const int length : lengths) f.blocks_used += (length + engine.block - 1) / engine.block;
  f.table_bytes = PagedStore::table_bytes(store, engine.block);
  f.reserved_bytes = f.blocks_used * PagedStore::block_bytes(store, engine.block) + f.table_bytes;
  f.peak_bytes = f.reserved_bytes;
  return f;
}

Footprint layout_footprint(const EngineSpec& engine, const KvSpec& spec,
                           std::span<const int> lengths) {
  switch (engine.layout) {
    case LayoutKind::recompute: {
      const int64_t bytes = WorkspaceStore::bytes(store_spec(engine, spec));
      return {.reserved_bytes = bytes, .peak_bytes = bytes};
    }
    case LayoutKind::contiguous:
      return contiguous_footprint(engine, spec, lengths);
    case LayoutKind::paged:
      return paged_footprint(engine, spec, lengths);
  }
  throw LogicError("EngineSpec: unknown layout");
}

// Honest, short: why one would take this layout, and what the format costs.
std::string use_of(const EngineSpec& engine) {
  if (engine.layout == LayoutKind::recompute) {
    return "never for speed: the baseline that shows what a cache saves; no bytes between steps";
  }
  constexpr int kDim = 64;
  const TileSpec tile = find_codec(engine.k_codec)->k.tile(kDim);
  const double bits = 8.0 * static_cast<double>(tile.bytes) / tile.tokens / kDim;
  const char* layout =
      engine.layout == LayoutKind::contiguous
          ? "few sequences whose longest length is known and mostly reached"
          : "many sequences of unknown or unequal length, forks that share a prefix";
  const std::string format =
      engine.k_codec == "f32"
          ? "exact, 32 bits an element: the yardstick for every other format"
          : fmt::format(
                "{} bits an element where memory or its bandwidth is short: look at the loss "
                "on your model",
                bits);
  return fmt::format("{}; {}", layout, format);
}

}  // namespace

std::optional<Refusal> check_engine(const EngineSpec& engine, const KvSpec& spec) {
  std::optional<Refusal> refusal = check_spec(spec);
  if (!refusal && spec.max_len > kMaxLength) {
    refusal = refuse("{} positions in a sequence; at most {}", spec.max_len, kMaxLength);
  }
  if (!refusal) refusal = check_codec("k", &Codec::k, engine.k_codec, spec.k_dim);
  if (!refusal) refusal = check_codec("v", &Codec::v, engine.v_codec, spec.v_dim);
  if (!refusal) refusal = check_layout(engine, spec);
  if (!refusal) refusal = check_size(engine, spec);
  if (refusal) refusal->reason = fmt::format("engine `{}`: {}", engine.name(), refusal->reason);
  return refusal;
}

Footprint predict_footprint(const EngineSpec& engine, const KvSpec& spec,
                            std::span<const int> lengths) {
  if (const auto refusal = check_engine(engine, spec)) throw LogicError(refusal->reason);
  check(lengths.size() <= static_cast<size_t>(spec.max_seqs), "{} lengths for {} sequences",
        lengths.size(), spec.max_seqs);
  int64_t rows = 0;
  for (const int length : lengths) {
    check(length >= 0 && length <= spec.max_len, "a length of {}; at most {}", length,
          spec.max_len);
    rows += length;
  }
  Footprint f = layout_footprint(engine, spec, lengths);
  const LiveBytes live = live_bytes(engine, spec, rows);
  f.payload_bytes = live.payload;
  f.scale_bytes = live.scales;
  f.live_bytes = live.payload + live.scales;
  return f;
}

std::vector<CatalogEntry> catalog() {
  KvSpec common;
  common.layers = 1;
  common.heads = 8;
  common.kv_heads = 2;
  common.k_dim = common.v_dim = 64;
  common.max_len = common.max_rows = 1024;
  std::vector<CatalogEntry> entries;
  for (const char* layout : {"recompute", "contiguous", "paged"}) {
    for (const Codec& codec : codecs()) {
      CatalogEntry entry;
      entry.engine = parse_engine(fmt::format("{}/{}", layout, codec.name));
      entry.refusal = check_engine(entry.engine, common);
      if (!entry.refusal) entry.use = use_of(entry.engine);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace kvmark
