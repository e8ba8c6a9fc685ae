// JUnit XML as CI systems read it: a suite a case, a test the status and each metric that
// is judged.
#include <fmt/format.h>

#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"

namespace kvmark {
namespace {

// For attributes and text alike. XML 1.0 has no way to write most control characters and U+FFFE and
// U+FFFF; they become U+FFFD.
std::string xml(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    const std::string_view three = std::string_view(valid).substr(i, 3);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\uFFFD";
    } else if (three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF") {
      out += "\uFFFD";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

struct Suite {
  std::string tests;  // the elements
  int count = 0, failures = 0, errors = 0, skipped = 0;

  void add(std::string_view suite, std::string_view name, std::string_view result = "") {
    ++count;
    tests += fmt::format("    <testcase classname=\"{}\" name=\"{}\"{}", xml(suite), xml(name),
                         result.empty() ? "/>\n" : fmt::format(">{}</testcase>\n", result));
  }
  void fail(std::string_view suite, std::string_view name, std::string_view type,
            std::string_view text) {
    ++failures;
    add(suite, name,
        fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", type, xml(text),
                    xml(text)));
  }
  void skip(std::string_view suite, std::string_view name, std::string_view text) {
    ++skipped;
    add(suite, name, fmt::format("<skipped message=\"{}\"/>", xml(text)));
  }
  void error(std::string_view suite, std::string_view name, std::string_view text) {
    ++errors;
    add(suite, name, fmt::format("<error message=\"{}\"/>", xml(text)));
  }

  std::string element(std::string_view name) const {
    return fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n"
        "{}  </testsuite>\n",
        xml(name), count, failures, errors, skipped, tests);
  }
};

void add_metric(const std::string& label, const MetricComparison& m, bool strict, Suite& suite) {
  switch (m.verdict) {
    case Verdict::worse:
      return suite.fail(label, m.metric, "worse", sentence(m));
    case Verdict::undecided:
      if (strict) return suite.fail(label, m.metric, "undecided", sentence(m));
      return suite.skip(label, m.metric, "undecided: " + sentence(m));
    case Verdict::shown:
      return;  // nothing is tested
    case Verdict::same:
    case Verdict::better:
      return suite.add(label, m.metric,
                       fmt::format("<system-out>{}</system-out>", xml(sentence(m))));
  }
}

Suite suite_of(const CaseComparison& c, bool strict) {
  Suite suite;
  if (c.broke()) {
    suite.fail(c.label, "status", c.status, status_sentence(c));
  } else if (c.vanished() && strict) {
    suite.fail(c.label, "status", c.status, status_sentence(c));
  } else if (c.status != "ok") {
    suite.skip(c.label, "status", status_sentence(c));
  } else {
    suite.add(c.label, "status");
  }
  for (const MetricComparison& m : c.metrics) add_metric(c.label, m, strict, suite);
  return suite;
}

}  // namespace

std::string render_junit(const Comparison& comparison, bool strict) {
  Suite total;  // of all suites: the counts alone
  std::string suites;
  const auto add = [&](const std::string& name, const Suite& suite) {
    suites += suite.element(name);
    total.count += suite.count;
    total.failures += suite.failures;
    total.errors += suite.errors;
    total.skipped += suite.skipped;
  };
  Suite pairing;
  if (exit_code_of(comparison, false) == kExitUndecided) {
    pairing.error("pairing", "cases", headline(comparison, strict));
  }
  for (const OneSided& one : comparison.one_sided) {
    if (strict && one.vanished) {
      pairing.fail("pairing", one.label, "vanished", one_sided_sentence(one));
    } else {
      pairing.skip("pairing", one.label, one_sided_sentence(one));
    }
  }
  if (pairing.count > 0) add("pairing", pairing);
  for (const CaseComparison& c : comparison.cases) add(c.label, suite_of(c, strict));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n"
      "{}</testsuites>\n",
      xml(fmt::format("{} against {}", comparison.now, comparison.base)), total.count,
      total.failures, total.errors, total.skipped, suites);
}

}  // namespace kvmark
