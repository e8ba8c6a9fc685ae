#include "bench/page/page.h"

#include <string_view>
#include <utility>
#include <vector>

#include "bench/compare/wording.h"
#include "bench/page/assets.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Nothing in it can end the script element that it stands in.
std::string json_for_html(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string page(const PageContent& content) {
  const std::string title = escaped_html(valid_utf8(page_title(content)));
  const std::string data = json_for_html(page_data(content));
  const std::pair<std::string_view, std::string_view> parts[] = {{"@title@", title},
                                                                 {"@style@", page_style()},
                                                                 {"@data@", data},
                                                                 {"@chart@", chart_library()},
                                                                 {"@script@", page_script()}};
  // In the order of the template, so that nothing is looked for in what was put in.
  std::string html;
  std::string_view rest = page_template();
  for (const auto& [placeholder, text] : parts) {
    const size_t at = rest.find(placeholder);
    check(at != std::string_view::npos, "page.html has no {} in its place", placeholder);
    html.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + placeholder.size());
  }
  return html.append(rest);
}

}  // namespace kvmark
