#include "bench/compare/render.h"

#include <fmt/format.h>

#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr std::string_view kFormats[] = {"table", "md", "json", "junit", "github"};

}  // namespace

std::span<const std::string_view> render_formats() { return kFormats; }

std::string render(const Comparison& comparison, std::string_view format, bool strict, bool all) {
  if (format == "table") return valid_utf8(render_table(comparison, strict, all));
  if (format == "md") return valid_utf8(render_markdown(comparison, strict, all));
  if (format == "json") return render_json(comparison, strict);
  if (format == "junit") return render_junit(comparison, strict);
  if (format == "github") return valid_utf8(render_github(comparison, strict));
  throw UsageError(fmt::format("there is no format `{}`; expected one of: {}", format,
                               fmt::join(kFormats, ", ")));
}

}  // namespace kvmark
