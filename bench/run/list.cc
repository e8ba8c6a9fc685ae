#include "bench/run/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bench/plan/plan.h"
#include "bench/record/metrics.h"
#include "bench/run/columns.h"
#include "engines/catalog/catalog.h"
#include "engines/catalog/engine_spec.h"
#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/core/nearest.h"
#include "engines/model/config.h"

namespace kvmark {
namespace {

constexpr int kCommonDim = 64;  // head_dim at which codecs are shown

using Cells = std::vector<std::string>;

// Presets first, refused ones last with their reasons below.
std::string engines() {
  std::vector<Cells> presets{{"engine", "preset", "use"}}, others, refused;
  std::vector<std::string> reasons;
  for (const CatalogEntry& entry : catalog()) {
    const std::string name = entry.engine.name(), preset = preset_of(entry.engine);
    if (!entry.refusal) {
      (preset.empty() ? others : presets).push_back({name, preset, entry.use});
      continue;
    }
    refused.push_back({name, preset, "refused"});
    std::string reason = entry.refusal->reason;
    const std::string start = fmt::format("engine `{}`: ", name);
    if (reason.starts_with(start)) reason.erase(0, start.size());
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  }
  presets.insert(presets.end(), others.begin(), others.end());
  presets.insert(presets.end(), refused.begin(), refused.end());
  std::string text = aligned(presets);
  for (const std::string& reason : reasons) text += fmt::format("refused: {}\n", reason);
  return text;
}

std::string codec_list() {
  std::vector<Cells> rows{{"codec", "bits/element", "kernel", "tolerance"}};
  for (const Codec& codec : codecs()) {
    const TileSpec tile = codec.k.tile(kCommonDim);
    const double bits = 8.0 * static_cast<double>(tile.bytes) / tile.tokens / kCommonDim;
    rows.push_back({std::string(codec.name), fmt::format("{:g}", bits), std::string(codec.kernel),
                    fmt::format("{:g}", codec.tolerance)});
  }
  return aligned(rows) + fmt::format("bits at head_dim {}, scales included; SIMD target {}\n",
                                     kCommonDim, simd_target());
}

std::string layouts() {
  return aligned({{"recompute", "keeps nothing: every step feeds the whole sequence"},
                  {"contiguous", "one run of rows a sequence, reserved up to max_seq_len"},
                  {"paged:B", "blocks of B rows from a pool, and a block table a sequence"}});
}

std::string policies() {
  return aligned({{"stop", "refuses what goes past max_seq_len (the default)"},
                  {"grow[:F]", "starts small and grows by the factor F (2) when it is full"}});
}

std::string models() {
  std::vector<Cells> rows{{"model", "family", "layers", "d_model", "heads", "head_dim", "ffn",
                           "vocab", "context", "parameters"}};
  for (const std::string& name : model_preset_names()) {
    const ModelConfig m = model_preset(name);
    rows.push_back({name, std::string(family_name(m.family)), std::to_string(m.layers),
                    std::to_string(m.d_model), fmt::format("{}:{}", m.heads, m.kv_heads),
                    std::to_string(m.head_dim), std::to_string(m.ffn), std::to_string(m.vocab),
                    std::to_string(m.context), std::to_string(parameter_count(m))});
  }
  return aligned(rows);
}

std::string devices() {
  return aligned({{"cpu", fmt::format("SIMD target {}", simd_target())},
                  {"cuda", "not in this build: its cases are rows `skipped`"}});
}

std::string metrics() {
  std::vector<Cells> rows{{"metric", "unit", "definition"}};
  for (const RecordField& field : record_fields()) {
    if (field.role != FieldRole::metric) continue;
    rows.push_back(
        {std::string(field.path), std::string(field.unit), std::string(field.definition)});
  }
  return aligned(rows);
}

// The manual's table without its Markdown.
std::string field_list() {
  std::string text = plan_reference();
  text.erase(std::remove(text.begin(), text.end(), '`'), text.end());
  return text;
}

struct Topic {
  const char* name;
  std::string (*text)();
};
constexpr Topic kTopics[] = {{"engines", engines},   {"codecs", codec_list}, {"layouts", layouts},
                             {"policies", policies}, {"models", models},     {"devices", devices},
                             {"metrics", metrics},   {"fields", field_list}};

}  // namespace

std::vector<std::string> list_topics() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.push_back(topic.name);
  return names;
}

std::string list(const std::string& topic) {
  for (const Topic& t : kTopics) {
    if (topic == t.name) return t.text();
  }
  throw UsageError(fmt::format("list: unknown topic `{}`{}; expected one of: {}", topic,
                               did_you_mean(topic, list_topics()), fmt::join(list_topics(), ", ")));
}

}  // namespace kvmark
