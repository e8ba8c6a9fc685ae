#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"
#include "bench/record/or_null.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

Json metric_json(const MetricComparison& m) {
  const SideTexts sides = side_texts(m);
  return {{"metric", m.metric},
          {"title", metric_title(m)},
          {"unit", m.field ? m.field->unit : ""},
          {"verdict", verdict_word(m.verdict)},
          {"base", or_null(m.base)},
          {"new", or_null(m.now)},
          {"change", or_null(m.change)},
          {"change_interval", or_null(m.change_interval)},
          {"threshold", or_null(m.threshold)},
          {"base_text", sides.base},
          {"new_text", sides.now},
          {"change_text", change_text(m)},
          {"threshold_text", threshold_text(m)},
          {"note", m.note}};
}

Json case_json(const CaseComparison& c) {
  Json metrics = Json::array();
  for (const MetricComparison& m : c.metrics) metrics.push_back(metric_json(m));
  return {{"case_id", c.case_id},
          {"label", c.label},
          {"base_status", c.base_status},
          {"status", c.status},
          {"reason", c.reason},
          {"broke", c.broke()},
          {"metrics", std::move(metrics)},
          {"case", c.spec}};
}

}  // namespace

std::string render_json(const Comparison& comparison, bool strict) {
  const Tally tally = tally_of(comparison);
  Json one_sided = Json::array(), cases = Json::array();
  for (const OneSided& one : comparison.one_sided) {
    one_sided.push_back({{"side", one.in_base ? "base" : "new"},
                         {"label", one.label},
                         {"reason", one.reason},
                         {"vanished", one.vanished}});
  }
  for (const CaseComparison& c : comparison.cases) cases.push_back(case_json(c));
  const Json json{{"schema", "kvmark-compare/1"},
                  {"base", comparison.base},
                  {"new", comparison.now},
                  {"verdict", headline(comparison, strict)},
                  {"exit_code", exit_code_of(comparison, strict)},
                  {"counts",
                   {{"cases", comparison.cases.size()},
                    {"broke", tally.broke},
                    {"worse", tally.worse},
                    {"undecided", tally.undecided},
                    {"better", tally.better},
                    {"same", tally.same},
                    {"shown", tally.shown}}},
                  {"notes", comparison.notes},
                  {"one_sided", std::move(one_sided)},
                  {"cases", std::move(cases)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvmark
