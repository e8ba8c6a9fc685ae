// `kvmark list`: what there is to choose from.
#pragma once

#include <string>
#include <vector>

namespace kvmark {

// engines, codecs, layouts, policies, models, devices, metrics, fields.
std::vector<std::string> list_topics();

// The list of a topic, a line an item. Throws UsageError for another topic.
std::string list(const std::string& topic);

}  // namespace kvmark
