// The committed plans, the schema and the reference.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "bench/plan/bind.h"
#include "bench/plan/fields.h"
#include "bench/plan/test_files.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kRoot = KVMARK_SOURCE_DIR;
constexpr const char* kBegin = "<!-- fields:begin -->\n";
constexpr const char* kEnd = "<!-- fields:end -->";

std::string config(const std::string& name) { return (kRoot / "configs" / name).string(); }

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// KVMARK_REGENERATE=1 writes what these tests compare.
bool regenerating() { return std::getenv("KVMARK_REGENERATE") != nullptr; }

void expect_file(const fs::path& path, const std::string& wanted) {
  if (regenerating()) std::ofstream(path, std::ios::binary) << wanted;
  EXPECT_TRUE(read(path) == wanted)
      << path << " is not what bench/plan/fields.cc gives; run KVMARK_REGENERATE=1 test_bench_plan";
}

std::vector<std::string> engines(const Plan& plan) {
  std::vector<std::string> names;
  for (const Case& c : plan.groups.at(0).cases) names.push_back(c.engine.name());
  return names;
}

TEST(Configs, EveryOneLoads) {
  int loaded = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "configs")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".yaml" || name == "smollm2.yaml") continue;
    const Plan plan = load_plan(entry.path().string(), {});
    EXPECT_EQ(plan.name, entry.path().stem().string());
    EXPECT_FALSE(plan.groups.empty());
    ++loaded;
  }
  EXPECT_GE(loaded, 12);
}

TEST(Configs, Quickstart) {
  const Plan plan = load_plan(config("quickstart.yaml"), {});
  EXPECT_THAT(engines(plan), ElementsAre("recompute", "contiguous/f32", "paged:16/f32",
                                         "contiguous/f16", "contiguous/int8:g32"));
  const Case& c = plan.groups.at(0).cases[0];
  EXPECT_EQ(c.committed(), 511);
  EXPECT_EQ(c.max_seq_len, 1024);
  EXPECT_EQ(predict(c, 8).positions_computed, 511 * 512 / 2);
}

TEST(Configs, Codecs) {
  const Plan plan = load_plan(config("codecs.yaml"), {});
  EXPECT_THAT(engines(plan), ElementsAre("contiguous/f32", "paged:16/f32", "contiguous/f16",
                                         "contiguous/int8:g32", "contiguous/int4:g32"));
  ASSERT_EQ(plan.groups.size(), 3u);
  EXPECT_EQ(plan.groups[2].cases[0].prompt_len, 16384);
  EXPECT_EQ(plan.groups[2].cases[0].model.layers, 2);
  EXPECT_EQ(plan.groups[2].cases[0].level, Level::attention);
}

TEST(Configs, GptCountsTheArticlesPositions) {
  const Plan plan = load_plan(config("gpt2-1000.yaml"), {});
  EXPECT_EQ(predict(plan.groups.at(0).cases.at(0), 4).positions_computed, 500500);
  EXPECT_EQ(predict(plan.groups.at(0).cases.at(1), 4).positions_computed, 1000);
}

TEST(Configs, HeadsWithAndWithoutRepeats) {
  const Plan plan = load_plan(config("heads.yaml"), {});
  ASSERT_EQ(plan.groups.size(), 3u * 4 * 2);
  std::set<int> dims;
  for (const Group& group : plan.groups) dims.insert(group.cases[0].model.head_dim);
  EXPECT_EQ(dims, (std::set<int>{32, 64, 128}));
}

constexpr double kGib = 1 << 30;

double gib_read(const Case& c) { return predict(c, 0).kv_bytes_read_per_step / kGib; }

TEST(Configs, CpuSpeedReadsTwoGibInEveryShape) {
  const Plan plan = load_plan(config("cpu-speed.yaml"), {});
  ASSERT_EQ(plan.groups.size(), 5u * 2 * 2 * 2);
  std::set<std::tuple<int, int, int, int>> shapes;
  for (const Group& group : plan.groups) {
    ASSERT_EQ(group.cases.size(), 6u);
    const Case& f16 = group.cases[0];
    EXPECT_EQ(f16.engine.name(), "contiguous/f16");
    EXPECT_GE(gib_read(f16), 2);
    EXPECT_LT(gib_read(f16), 2.07);  // a whole number of layers
    for (const Case& c : group.cases) EXPECT_EQ(c.model.layers, f16.model.layers);
    shapes.insert(
        {f16.model.heads / f16.model.kv_heads, f16.model.head_dim, f16.prompt_len, f16.threads});
  }
  EXPECT_EQ(shapes.size(), plan.groups.size());
  EXPECT_EQ(std::get<0>(*shapes.begin()), 1);
  EXPECT_EQ(std::get<0>(*shapes.rbegin()), 8);
  EXPECT_GE(plan.sampling.rounds, 7) << "intervals need 6";
}

TEST(Configs, CpuSpeedQuickIsBeyondTheCaches) {
  const Plan plan = load_plan(config("cpu-speed-quick.yaml"), {});
  ASSERT_EQ(plan.groups.size(), 1u);
  for (const Case& c : plan.groups[0].cases) EXPECT_GT(gib_read(c), 0.125) << c.engine.name();
  EXPECT_GE(plan.sampling.rounds, 7);
}

TEST(Configs, CpuPagesComparesThePoolsOrders) {
  const Plan plan = load_plan(config("cpu-pages.yaml"), {});
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].cases[1].pool_order, PoolOrder::fresh);
  EXPECT_EQ(plan.groups[1].cases[1].pool_order, PoolOrder::shuffled);
  // Each paged engine has its format in one piece beside it.
  std::set<std::string> names;
  for (const Case& c : plan.groups[0].cases) names.insert(c.engine.name());
  for (const std::string& name : names) {
    EXPECT_EQ(names.count("contiguous" + name.substr(name.find('/'))), 1u) << name;
  }
}

TEST(Configs, ScalingKeepsTheWorkingSet) {
  for (const auto& [name, groups] :
       {std::pair("scaling.yaml", 4u), std::pair("scaling-batch.yaml", 5u)}) {
    const Plan plan = load_plan(config(name), {});
    ASSERT_EQ(plan.groups.size(), groups);
    for (const Group& group : plan.groups) {
      EXPECT_GE(gib_read(group.cases.at(0)), 1);
      EXPECT_LT(gib_read(group.cases.at(0)), 1.01);
    }
  }
}

TEST(Configs, SweepTakesTheRangesOfTheManual) {
  const Plan plan = load_plan(config("sweep.yaml"), {{"--seq-len", "seq_len", "128-8192*2"},
                                                     {"--heads", "heads", "8:2,32:8"}});
  EXPECT_EQ(plan.groups.size(), 2u * 7 * 2);
}

// The first block of this language behind `after` on a page.
std::string block_of(const std::string& page, const std::string& after, const std::string& fence) {
  const size_t from = page.find(after), start = page.find("```" + fence + "\n", from);
  EXPECT_NE(from, std::string::npos) << after;
  EXPECT_NE(start, std::string::npos) << after;
  if (start == std::string::npos) return "";
  const size_t text = start + 4 + fence.size();
  return page.substr(text, page.find("```", text) - text);
}

// The flags of `kvmark run my.yaml --heads 8:2 … --set key=value` as overrides.
std::vector<Override> overrides_in(const std::string& command) {
  std::istringstream words(command);
  std::string kvmark, run, plan;
  words >> kvmark >> run >> plan;
  std::vector<Override> overrides;
  for (std::string flag, value; words >> flag >> value;) {
    std::string key = flag.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    const size_t equals = value.find('=');
    overrides.push_back(flag == "--set"
                            ? Override{flag, value.substr(0, equals), value.substr(equals + 1)}
                            : Override{flag, key, value});
  }
  return overrides;
}

TEST(Manual, TheExampleLoadsAndSoDoesItsCommand) {
  const std::string page = read(kRoot / "docs/configs.md");
  const std::string plan = block_of(page, "## An example, line by line", "yaml");
  EXPECT_EQ(plan_of(plan).groups.size(), 12u);
  EXPECT_EQ(plan_of(plan).groups[0].cases.size(), 3u);
  const std::string command = block_of(page, "`--set` reaches every other field", "");
  ASSERT_THAT(command, HasSubstr("kvmark run my.yaml --heads"));
  EXPECT_GE(plan_of(plan, overrides_in(command)).groups.size(), 12u);
}

TEST(Manual, TheWorkingSetOfTheExampleIsThatOfTheText) {
  const Plan plan =
      plan_of(block_of(read(kRoot / "docs/configs.md"), "## Working sets", "yaml"),
              {{"--engine", "engine", "contiguous/f16,contiguous/f32,contiguous/int4:g32"}});
  ASSERT_EQ(plan.groups.size(), 8u);
  EXPECT_NEAR(gib_read(plan.groups[0].cases[0]), 2, 0.01);
  EXPECT_NEAR(gib_read(plan.groups[0].cases[1]), 4, 0.02);
  EXPECT_NEAR(gib_read(plan.groups[0].cases[2]), 0.56, 0.01);
  EXPECT_TRUE(first(plan).pin);
}

TEST(Manual, AShapeOfOnesOwnLoads) {
  const std::string plan =
      block_of(read(kRoot / "README.md"), "## Asking your own question", "yaml");
  EXPECT_EQ(plan_of(plan).groups.at(0).cases.at(0).model.layers, 16);
}

TEST(Configs, SmolLm) {
  try {
    const Plan plan = load_plan(config("smollm2.yaml"), {});
    ASSERT_EQ(plan.groups.size(), 1u);
    const auto& cases = plan.groups[0].cases;
    ASSERT_EQ(cases.size(), 5u);
    EXPECT_EQ(cases[0].model.layers, 30);
    EXPECT_EQ(cases[0].source.weights, WeightType::f16);
    EXPECT_EQ(cases[0].score.positions, 1024);
    EXPECT_TRUE(fs::exists(cases[0].score.text));
    EXPECT_EQ(cases[3].gate.kld_mean_max, 1e-4);
    EXPECT_EQ(cases[3].gate.top1_min, 0.995);
    EXPECT_EQ(cases[4].gate.top1_min, 0.95);
  } catch (const UsageError& e) {
    // Without the model the error says how to get it.
    EXPECT_FALSE(fs::exists(kRoot / "models/smollm2-135m-instruct-q4_1.gguf")) << e.what();
    EXPECT_THAT(e.what(), AllOf(HasSubstr("smollm2.yaml:"), HasSubstr("model.file: there is no"),
                                HasSubstr("`make model`")));
  }
}

TEST(Schema, CommittedFileIsGenerated) {
  expect_file(kRoot / "configs/schema.json", plan_schema().dump(2) + "\n");
}

TEST(Schema, KnowsEveryFieldAndForbidsOthers) {
  const auto schema = plan_schema();
  EXPECT_EQ(schema["additionalProperties"], false);
  for (const Field& field : fields()) {
    const nlohmann::ordered_json* at = &schema;
    std::string_view key = field.key;
    while (true) {
      const std::string name(key.substr(0, key.find('.')));
      at = name == "*" ? &at->at("additionalProperties") : &at->at("properties").at(name);
      if (key.find('.') == std::string_view::npos) break;
      key.remove_prefix(key.find('.') + 1);
    }
    EXPECT_EQ(at->at("description"), field.doc);
  }
  EXPECT_EQ(schema["properties"]["workload"]["additionalProperties"], false);
}

TEST(Fields, EachHasADocAndADefaultThatIsValid) {
  std::set<std::string> keys;
  for (const Field& field : fields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_FALSE(field.doc.empty()) << field.key;
    EXPECT_EQ(field.doc.find('|'), std::string::npos) << field.key;  // a table cell
    EXPECT_TRUE(is_section(field.key) || find_field(field.key) == &field);
    if (field.fallback.empty()) continue;
    // Given by a flag it must pass the field's own checks and be what a plan without it gets.
    Node root = parse_document("name: x\n", "plan.yaml");
    const Values defaults = bind_values(root, "plan.yaml");
    apply_overrides(root, {{"--set", field.key, field.fallback}});
    const Values given = bind_values(root, "plan.yaml");
    ASSERT_EQ(given.at(field.key).size(), defaults.at(field.key).size()) << field.key;
    for (size_t i = 0; i < given.at(field.key).size(); ++i) {
      EXPECT_EQ(given.at(field.key)[i].data, defaults.at(field.key)[i].data) << field.key;
    }
  }
}

TEST(Reference, DocsHoldIt) {
  const fs::path path = kRoot / "docs/configs.md";
  const std::string text = read(path);
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  expect_file(path,
              text.substr(0, begin) + kBegin + "\n" + plan_reference() + "\n" + text.substr(end));
}

}  // namespace
}  // namespace kvmark
