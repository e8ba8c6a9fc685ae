// What an engine asks of its row store.
#pragma once

#include "engines/catalog/engine_spec.h"
#include "engines/codecs/codec.h"
#include "engines/core/kv_engine.h"
#include "engines/layouts/contiguous_store.h"
#include "engines/layouts/row_store.h"

namespace kvmark {

// For a combination that check_engine accepts.
StoreSpec store_spec(const EngineSpec& engine, const KvSpec& spec);

// The rule of the engine's policy; contiguous only.
CapacityRule capacity_rule(const EngineSpec& engine, const KvSpec& spec);

// Bytes of `rows` committed rows in all layers, by formula: codes and scales, without any padding.
struct LiveBytes {
  int64_t payload = 0;
  int64_t scales = 0;
};
LiveBytes live_bytes(const EngineSpec& engine, const KvSpec& spec, int64_t rows);

}  // namespace kvmark
