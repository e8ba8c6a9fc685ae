#include "bench/plan/plan.h"

#include "bench/plan/bind.h"
#include "bench/plan/document.h"
#include "bench/plan/expand.h"
#include "bench/plan/fields.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) {
    std::visit([&](const auto& data) { list.push_back(data); }, value.data);
  }
  return list.size() == 1 ? list[0] : list;
}

// Where a dotted key stands. A gate's codec has no dot in its name.
Json& slot(Json& root, std::string_view key) {
  Json* at = &root;
  for (const std::string& name : split_key(key)) at = &(*at)[name];
  return *at;
}

Json as_run(const Values& values) {
  Json json = Json::object();
  for (const Field& field : fields()) {
    if (const auto it = values.find(field.key); it != values.end() && field.key[0] != '$') {
      slot(json, field.key) = to_json(it->second);
    }
  }
  for (const auto& [key, bound] : values) {
    const bool open = key.rfind("loss_gates.", 0) == 0 || key.rfind("thresholds.", 0) == 0;
    if (open) slot(json, key) = to_json(bound);
  }
  // A plan that scores nothing would not be read back with how it scores.
  if (values.count("score.text") == 0) json.erase("score");
  return json;
}

Sampling sampling_of(const Values& values) {
  const auto at = [&](const char* key) -> const Value& { return values.at(key).front(); };
  Sampling s;
  s.rounds = at("sampling.rounds").integer();
  s.settle_steps = at("sampling.settle_steps").integer();
  s.target_width = at("sampling.target_width").number();
  s.budget_s = at("sampling.budget_s").number();
  s.max_case_s = at("sampling.max_case_s").number();
  return s;
}

}  // namespace

Plan load_plan(const std::string& path, const std::vector<Override>& overrides) {
  Node root = read_document(path);
  check_keys(root);
  apply_overrides(root, overrides);
  check_keys(root);  // names below a map are the user's own, in flags too
  Values values = bind_values(root, path);
  complete_values(values, path);

  Plan plan;
  plan.path = path;
  plan.name = values.at("name").front().text();
  plan.sampling = sampling_of(values);
  plan.groups = expand(values);
  plan.as_run = as_run(values);
  return plan;
}

}  // namespace kvmark
