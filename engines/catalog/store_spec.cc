#include "engines/catalog/store_spec.h"

#include "engines/policies/capacity.h"

namespace kvmark {
namespace {

const Codec& codec_of(const std::string& name) {
  const Codec* codec = find_codec(name);
  check(codec != nullptr, "no codec {}", name);
  return *codec;
}

}  // namespace

StoreSpec store_spec(const EngineSpec& engine, const KvSpec& spec) {
  return {.layers = spec.layers,
          .kv_heads = spec.kv_heads,
          .k = codec_of(engine.k_codec).k.tile(spec.k_dim),
          .v = codec_of(engine.v_codec).v.tile(spec.v_dim),
          .max_seqs = spec.max_seqs,
          .max_len = spec.max_len,
          .max_rows = spec.max_rows,
          .budget_bytes = spec.budget_bytes};
}

CapacityRule capacity_rule(const EngineSpec& engine, const KvSpec& spec) {
  return engine.policy == PolicyKind::grow ? grow_capacity(spec.max_len, engine.grow_factor)
                                           : stop_capacity(spec.max_len);
}

LiveBytes live_bytes(const EngineSpec& engine, const KvSpec& spec, int64_t rows) {
  if (engine.layout == LayoutKind::recompute) return {};
  const Codec& k = codec_of(engine.k_codec);
  const Codec& v = codec_of(engine.v_codec);
  const TileSpec k_tile = k.k.tile(spec.k_dim);
  const TileSpec v_tile = v.v.tile(spec.v_dim);
  const int64_t heads = rows * spec.layers * spec.kv_heads;
  const int64_t scales = heads * (k.scale_bytes(spec.k_dim) + v.scale_bytes(spec.v_dim));
  const int64_t all = heads * k_tile.bytes / k_tile.tokens + heads * v_tile.bytes / v_tile.tokens;
  return {.payload = all - scales, .scales = scales};
}

}  // namespace kvmark
