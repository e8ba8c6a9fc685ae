// A sentence of the page.
#pragma once

#include <string>

namespace kvmark {

struct Sentence {
  // undecided: the rows cannot tell, and the sentence says why.
  enum class Kind { fact, undecided, warning };
  Kind kind = Kind::fact;
  std::string text;
};

// "8:2 heads: text"; the text alone where there is no setting to name.
std::string in_setting(const std::string& setting, std::string text);

}  // namespace kvmark
