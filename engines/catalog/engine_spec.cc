#include "engines/catalog/engine_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/core/nearest.h"

namespace kvmark {
namespace {

constexpr int kDefaultBlock = 16;
constexpr int kMaxBlock = 65536;
constexpr double kMaxGrowFactor = 64;

const std::vector<std::pair<std::string, EngineSpec>>& presets() {
  static const std::vector<std::pair<std::string, EngineSpec>> table = {
      {"recompute", {.layout = LayoutKind::recompute}},
      {"contiguous", {}},
      {"paged", {.layout = LayoutKind::paged, .block = kDefaultBlock}},
      {"fp16", {.k_codec = "f16", .v_codec = "f16"}},
      {"compressed", {.k_codec = "int8:g32", .v_codec = "int8:g32"}}};
  return table;
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const Codec& codec : codecs()) names.emplace_back(codec.name);
  return names;
}

std::string joined(std::span<const std::string> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// The parts of `text` between `separator`s; "" has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads one engine name; the whole of it stands in every error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  EngineSpec parse() {
    if (text_.empty()) fail("an engine needs a name", "");
    if (const EngineSpec* preset = find_preset()) return *preset;
    const auto parts = split(text_, '/');
    if (parts.size() > 3) {
      fail(fmt::format("{} parts", parts.size()), "at most three: layout/codec/policy");
    }
    if (parts.size() == 1 && !is_layout(parts[0])) {
      parse_bare_codec(parts[0]);
      return spec_;
    }
    parse_layout(parts[0]);
    if (parts.size() > 1) parse_codecs(parts[1]);
    if (parts.size() > 2) parse_policy(parts[2]);
    return spec_;
  }

 private:
  [[noreturn]] void fail(const std::string& wrong, const std::string& expected) const {
    throw UsageError(fmt::format("engine `{}`: {}{}{}", text_, wrong,
                                 expected.empty() ? "" : "; expected ", expected));
  }

  const EngineSpec* find_preset() const {
    for (const auto& [name, spec] : presets()) {
      if (name == text_) return &spec;
    }
    return nullptr;
  }

  static const std::vector<std::string>& layout_names() {
    static const std::vector<std::string> names = {"recompute", "contiguous", "paged"};
    return names;
  }

  static bool is_layout(std::string_view part) {
    const auto head = part.substr(0, part.find(':'));
    return std::find(layout_names().begin(), layout_names().end(), head) != layout_names().end();
  }

  void parse_layout(std::string_view part) {
    const size_t colon = part.find(':');
    const auto head = part.substr(0, colon);
    if (!is_layout(part)) {
      fail(fmt::format("no layout `{}`{}", head, did_you_mean(head, layout_names())),
           "recompute, contiguous, paged or paged:BLOCK");
    }
    spec_.layout = head == "recompute"    ? LayoutKind::recompute
                   : head == "contiguous" ? LayoutKind::contiguous
                                          : LayoutKind::paged;
    if (spec_.layout == LayoutKind::paged) spec_.block = kDefaultBlock;
    if (colon == std::string_view::npos) return;
    const auto argument = part.substr(colon + 1);
    if (spec_.layout != LayoutKind::paged) {
      fail(fmt::format("layout `{}` takes no argument, got `{}`", head, argument), "");
    }
    const auto end = argument.data() + argument.size();
    const auto [stop, error] = std::from_chars(argument.data(), end, spec_.block);
    if (error != std::errc() || stop != end || spec_.block < 1 || spec_.block > kMaxBlock) {
      fail(fmt::format("block size `{}`", argument),
           fmt::format("a whole number of positions from 1 to {}, as in paged:16", kMaxBlock));
    }
  }

  std::string checked_codec(std::string_view name) const {
    if (find_codec(name) == nullptr) {
      const auto names = codec_names();
      fail(fmt::format("no codec `{}`{}", name, did_you_mean(name, names)), joined(names));
    }
    return std::string(name);
  }

  // `NAME` or `k=NAME,v=NAME`.
  void parse_codecs(std::string_view part) {
    if (part.find('=') == std::string_view::npos) {
      spec_.k_codec = spec_.v_codec = checked_codec(part);
      return;
    }
    const auto sides = split(part, ',');
    if (sides.size() != 2 || sides[0].substr(0, 2) != "k=" || sides[1].substr(0, 2) != "v=") {
      fail(fmt::format("codecs `{}`", part), "one name, or k=NAME,v=NAME");
    }
    spec_.k_codec = checked_codec(sides[0].substr(2));
    spec_.v_codec = checked_codec(sides[1].substr(2));
  }

  void parse_bare_codec(std::string_view part) {
    if (part.find('=') != std::string_view::npos || find_codec(part) != nullptr) {
      parse_codecs(part);
      return;
    }
    std::vector<std::string> names = preset_names();
    for (std::string& name : codec_names()) names.push_back(std::move(name));
    fail(fmt::format("no such engine{}", did_you_mean(part, names)),
         fmt::format("a preset or a codec ({}), or layout/codec/policy", joined(names)));
  }

  void parse_policy(std::string_view part) {
    const size_t colon = part.find(':');
    const auto head = part.substr(0, colon);
    static const std::vector<std::string> names = {"stop", "grow"};
    if (std::find(names.begin(), names.end(), head) == names.end()) {
      fail(fmt::format("no policy `{}`{}", head, did_you_mean(head, names)),
           "stop, grow or grow:FACTOR");
    }
    spec_.policy = head == "grow" ? PolicyKind::grow : PolicyKind::stop;
    if (colon == std::string_view::npos) return;
    const auto argument = part.substr(colon + 1);
    if (spec_.policy == PolicyKind::stop) {
      fail(fmt::format("policy `stop` takes no argument, got `{}`", argument), "");
    }
    const auto end = argument.data() + argument.size();
    const auto [stop, error] = std::from_chars(argument.data(), end, spec_.grow_factor);
    if (error != std::errc() || stop != end || !(spec_.grow_factor > 1) ||
        spec_.grow_factor > kMaxGrowFactor) {
      fail(fmt::format("growth factor `{}`", argument),
           fmt::format("a number over 1 and up to {}, as in grow:2", kMaxGrowFactor));
    }
  }

  std::string_view text_;
  EngineSpec spec_;
};

std::string codec_part(const EngineSpec& spec) {
  return spec.k_codec == spec.v_codec ? spec.k_codec
                                      : fmt::format("k={},v={}", spec.k_codec, spec.v_codec);
}

}  // namespace

std::string EngineSpec::name() const {
  const std::string codec = codec_part(*this);
  const std::string growth = policy == PolicyKind::grow ? fmt::format("/grow:{}", grow_factor) : "";
  switch (layout) {
    case LayoutKind::recompute:
      return codec == "f32" && growth.empty() ? "recompute" : "recompute/" + codec + growth;
    case LayoutKind::contiguous:
      return "contiguous/" + codec + growth;
    case LayoutKind::paged:
      return fmt::format("paged:{}/{}{}", block, codec, growth);
  }
  throw LogicError("EngineSpec: unknown layout");
}

EngineSpec parse_engine(std::string_view text) { return Parser(text).parse(); }

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, spec] : presets()) list.push_back(name);
    return list;
  }();
  return names;
}

std::string preset_of(const EngineSpec& spec) {
  for (const auto& [name, preset] : presets()) {
    if (preset == spec) return name;
  }
  return "";
}

}  // namespace kvmark
