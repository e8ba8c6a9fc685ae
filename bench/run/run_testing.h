// What the tests of the parent share: small cases and a scratch folder.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/plan/case.h"
#include "engines/catalog/engine_spec.h"
#include "engines/model/config.h"

namespace kvmark {

// A folder that goes with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = std::filesystem::temp_directory_path() / "kvmark-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Four tokens of prompt and four generated ones on the smallest preset.
inline Case small_case(const std::string& engine) {
  Case c;
  c.engine = parse_engine(engine);
  c.source.name = "seed-gqa";
  c.model = model_preset("seed-gqa");
  c.prompt_len = 4;
  c.gen_len = 4;
  c.max_seq_len = 64;
  return c;
}

}  // namespace kvmark
