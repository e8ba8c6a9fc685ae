#include "bench/report/scaling.h"

#include <gmock/gmock.h>

#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// An ok row whose attention takes `layer_ms` a layer.
Json row(const std::string& engine, int prompt_len, int batch, int layers, double layer_ms) {
  Json r = empty_record();
  r["status"] = "ok";
  r["case"].update({{"engine", engine},
                    {"preset", nullptr},
                    {"level", "attention"},
                    {"layers", layers},
                    {"heads", 8},
                    {"prompt_len", prompt_len},
                    {"gen_len", 2},
                    {"seq_len", prompt_len + 2},
                    {"max_seq_len", prompt_len + 64},
                    {"batch", batch},
                    {"threads", 2}});
  r["latency"]["attend_ms"] = to_json(summarize(std::vector{layers * layer_ms}));
  return r;
}

TEST(Scaling, FitsTheTimeOfALayerWhateverTheLayers) {
  // The steps see prompt_len + 1 positions; a constant working set has fewer layers far out.
  std::vector<Json> records;
  for (const int prompt : {1023, 4095, 16383}) {
    records.push_back(row("linear", prompt, 1, (1 << 16) / (prompt + 1), 1e-3 * (prompt + 1)));
    records.push_back(
        row("square", prompt, 1, (1 << 16) / (prompt + 1), 1e-9 * (prompt + 1) * (prompt + 1)));
  }
  EXPECT_THAT(
      scaling_lines(records),
      ElementsAre("slope of attention against context: linear 1.00 ± 0.00, square 2.00 ± 0.00",
                  StartsWith("slope of attention: exponent")));
  EXPECT_THAT(table(records), HasSubstr("slope of attention against context: linear 1.00 ± 0.00"));
}

TEST(Scaling, FitsTheBatchToo) {
  std::vector<Json> records;
  for (const int batch : {1, 4, 16}) records.push_back(row("fixed", 100, batch, 64 / batch, 7));
  EXPECT_THAT(scaling_lines(records),
              ElementsAre("slope of attention against batch: fixed 0.00 ± 0.00",
                          StartsWith("slope of attention: ")));
}

TEST(Scaling, ALineForEachSettingSaysInWhatItDiffers) {
  std::vector<Json> records;
  for (const int threads : {1, 2}) {
    for (const int prompt : {100, 1000, 10000}) {
      records.push_back(row("one", prompt, 1, 4, prompt + 1));
      records.back()["case"]["threads"] = threads;
    }
  }
  EXPECT_THAT(scaling_lines(records),
              ElementsAre("slope of attention against context, threads 1: one 1.00 ± 0.00",
                          "slope of attention against context, threads 2: one 1.00 ± 0.00",
                          StartsWith("slope of attention: ")));
}

TEST(Scaling, NeedsThreeContextsAndFiguresAtAttentionLevel) {
  std::vector<Json> records = {row("one", 100, 1, 4, 1), row("one", 1000, 1, 4, 10),
                               row("one", 1000, 1, 4, 11)};
  EXPECT_THAT(scaling_lines(records), IsEmpty());
  records.push_back(row("one", 10000, 1, 4, 100));
  EXPECT_EQ(scaling_lines(records).size(), 2u);
  records.back()["status"] = "failed";
  EXPECT_THAT(scaling_lines(records), IsEmpty());
  records.back() = row("one", 10000, 1, 4, 100);
  records.back()["case"]["level"] = "model";
  EXPECT_THAT(scaling_lines(records), IsEmpty());
  records.back() = row("other", 10000, 1, 4, 100);
  EXPECT_THAT(scaling_lines(records), IsEmpty());
}

}  // namespace
}  // namespace kvmark
