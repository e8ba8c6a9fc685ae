#include "bench/run/verify.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/run/workload_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

struct TempPath {
  std::string path = fmt::format("{}/kvmark-reference-{}", fs::temp_directory_path().string(),
                                 static_cast<int>(getpid()));
  ~TempPath() { fs::remove(path); }
};

class VerifyTest : public testing::TestWithParam<std::string> {};

TEST_P(VerifyTest, PassesAtBothLevelsAndSeveralDepths) {
  for (const int prompt : {0, 31, 100}) {
    for (const Case& c :
         {tiny_case(GetParam(), prompt, 8), tiny_attention_case(GetParam(), prompt, 8)}) {
      Workload workload(c, 0);
      const auto verified = verify(workload, nullptr);
      EXPECT_TRUE(verified["correct"]["passed"]) << verified.dump();
      EXPECT_GT(verified["correct"]["rows_checked"].get<int>(), 60);
      EXPECT_EQ(verified["digest"], workload.round().digest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, VerifyTest,
                         testing::Values("recompute", "contiguous", "paged", "fp16", "compressed",
                                         "paged:48/int4:g32", "contiguous/k=int8:g64,v=fp8:e4m3",
                                         "contiguous/f32/grow:2"));

// Stands between the engine and the oracle and spoils what the oracle is shown.
class Tamper : public StepObserver {
 public:
  enum class What { output, fed_key, fed_value, position };
  Tamper(Oracle& oracle, What what) : oracle_(oracle), what_(what) {}

  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override {
    std::vector<float> copy_k(k.data, k.data + k.size()), copy_v(v.data, v.data + v.size());
    std::vector<float> copy_out(out.data, out.data + out.size());
    std::vector<Piece> copy_pieces(pieces.begin(), pieces.end());
    if (what_ == What::output) copy_out[3] *= 1.001f;
    if (what_ == What::fed_key) copy_k[5] += 0.2f;
    if (what_ == What::fed_value) copy_v[5] += 0.2f;
    if (what_ == What::position && copy_pieces[0].first > 0) --copy_pieces[0].first;
    oracle_.attended(layer, outputs, copy_pieces, q, {copy_k.data(), k.rows, k.cols},
                     {copy_v.data(), v.rows, v.cols}, {copy_out.data(), out.rows, out.cols});
  }

 private:
  Oracle& oracle_;
  What what_;
};

TEST(Oracle, CatchesWhatIsWrong) {
  for (const auto what : {Tamper::What::output, Tamper::What::fed_key, Tamper::What::fed_value,
                          Tamper::What::position}) {
    // A thousandth of one output is within what the integer kernels of int8 may lose.
    const char* engine = what == Tamper::What::output ? "fp16" : "compressed";
    Workload workload(tiny_case(engine, 0, 40), 0);
    Oracle oracle(workload);
    Tamper tamper(oracle, what);
    workload.run_short(33, tamper);
    EXPECT_FALSE(oracle.passed()) << static_cast<int>(what);
  }
}

TEST(Oracle, OfManyDeepLayersEachHasItsTurn) {
  for (const int layers : {1, 4, 32, 700}) {
    for (int layer = 0; layer < layers; ++layer) EXPECT_TRUE(checks_outputs(layer, layers, 33));
    for (const int visible : {4096, 65536, 1 << 24}) {
      std::vector<int> turns(layers);
      for (int step = 0; step < layers; ++step) {
        int checked = 0;
        for (int layer = 0; layer < layers; ++layer) {
          if (!checks_outputs(layer, layers, visible + step)) continue;
          ++checked;
          ++turns[layer];
        }
        EXPECT_LE(checked, std::max(1, (1 << 19) / visible));
      }
      EXPECT_GE(*std::min_element(turns.begin(), turns.end()), 1) << layers << " at " << visible;
    }
  }
}

TEST(Oracle, HasNotPassedBeforeItSawARow) {
  Workload workload(tiny_case("contiguous", 0, 4), 0);
  EXPECT_FALSE(Oracle(workload).passed());
}

TEST(Loss, IsZeroForTheReferenceItselfAndGrowsWithCoarserFormats) {
  for (const bool attention : {false, true}) {
    const auto make = [&](const char* engine) {
      return attention ? tiny_attention_case(engine, 50, 20) : tiny_case(engine, 50, 20);
    };
    Workload full(make("contiguous"), 0);
    const Reference reference = make_reference(full);
    const auto loss = [&](const char* engine) {
      Workload workload(make(engine), 0);
      return verify(workload, &reference)["loss"]["attend_rel_rms"].get<double>();
    };
    EXPECT_EQ(loss("paged:16"), 0);
    EXPECT_LT(loss("recompute"), 1e-4);
    const double f16 = loss("fp16"), int8 = loss("compressed"), int4 = loss("contiguous/int4:g32");
    EXPECT_GT(f16, 0);
    EXPECT_LT(f16, 5e-3);
    EXPECT_GT(int8, f16);
    EXPECT_GT(int4, 3 * int8);
  }
}

TEST(Loss, ACaseThatIsTheReferenceMakesItWhileItIsVerified) {
  Workload apart(tiny_attention_case("contiguous", 50, 20), 0);
  Workload itself(tiny_attention_case("contiguous", 50, 20), 0);
  Reference made;
  const auto verified = verify_reference(itself, made);
  EXPECT_EQ(made.outputs, make_reference(apart).outputs);
  EXPECT_EQ(verified["loss"]["attend_rel_rms"], 0);
  EXPECT_EQ(verified["correct"]["passed"], true);
}

TEST(Loss, AChunkedPromptComparesWithAWholeOne) {
  // 600 rows are more than a cached engine is fed at once; recompute gets them whole.
  Workload full(tiny_case("contiguous", 600, 4), 0);
  const Reference reference = make_reference(full);
  Workload recompute(tiny_case("recompute", 600, 4), 0);
  EXPECT_LT(verify(recompute, &reference)["loss"]["attend_rel_rms"].get<double>(), 1e-4);
}

TEST(Loss, HasNoPredictionsOnSeededWeights) {
  Workload workload(tiny_case("fp16", 0, 20), 0);
  const Reference reference = make_reference(workload);
  const auto loss = verify(workload, &reference)["loss"];
  for (const char* key : {"kld_mean", "kld_p99", "top1_agreement", "nll"}) {
    EXPECT_TRUE(loss[key].is_null()) << key;
  }
}

TEST(Reference, ComesBackFromItsFileAndACutOneIsRefused) {
  const TempPath temp;
  const Reference written{.outputs = {1, 2, 3}, .logits = {4, 5}};
  written.write(temp.path);
  const Reference read = Reference::read(temp.path);
  EXPECT_EQ(read.outputs, written.outputs);
  EXPECT_EQ(read.logits, written.logits);
  fs::resize_file(temp.path, fs::file_size(temp.path) - 1);
  EXPECT_THROW(Reference::read(temp.path), RuntimeError);
  EXPECT_THROW(Reference::read(temp.path + ".missing"), RuntimeError);
}

}  // namespace
}  // namespace kvmark
