#include "bench/report/gha.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

Json row(const std::string& case_id, const std::string& status) {
  Json r = empty_record();
  r["case_id"] = case_id;
  r["status"] = status;
  r["case"].update({{"engine", "paged:16/f32"}, {"model", "m"}, {"level", "model"}});
  r["latency"]["tpot_ms"] = to_json(summarize(std::vector{1.0, 1.1, 1.2, 1.3, 1.4, 1.5}));
  r["latency"]["e2e_ms"] = to_json(summarize(std::vector{9.0}));
  r["throughput"]["decode_tok_per_s"] = 800;
  r["memory"]["kv_live_bytes"] = 4096;
  return r;
}

std::set<std::string> names(const Json& entries) {
  std::set<std::string> names;
  for (const Json& entry : entries) names.insert(entry.at("name").get<std::string>());
  return names;
}

TEST(Gha, SortsFiguresByWhichWayIsBetter) {
  const GhaFiles files = gha(std::vector{row("a", "ok")});
  EXPECT_EQ(names(files.smaller), (std::set<std::string>{"paged:16/f32 m model at —: TPOT",
                                                         "paged:16/f32 m model at —: KV live"}));
  EXPECT_EQ(names(files.bigger), (std::set<std::string>{"paged:16/f32 m model at —: decode"}));
  EXPECT_DOUBLE_EQ(files.smaller[0]["value"].get<double>(), 1.25);
  EXPECT_EQ(files.smaller[0]["unit"], "ms");
  EXPECT_EQ(files.smaller[0]["range"], "± 0.2500");
}

TEST(Gha, NamesAreUniqueAndRowsWithoutFiguresStayOut) {
  const GhaFiles files = gha(std::vector{row("a", "ok"), row("b", "ok"), row("c", "failed")});
  EXPECT_EQ(names(files.smaller).size(), 4u);
  EXPECT_EQ(files.smaller.size(), 4u);
}

}  // namespace
}  // namespace kvmark
