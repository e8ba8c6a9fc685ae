#include "bench/page/sentence.h"

#include <fmt/format.h>

namespace kvmark {

std::string in_setting(const std::string& setting, std::string text) {
  return setting.empty() ? text : fmt::format("{}: {}", setting, text);
}

}  // namespace kvmark
