// Records → one HTML file that holds everything it needs.
#pragma once

#include <string>

#include "bench/page/page_data.h"

namespace kvmark {

// The template page.html with its placeholders filled. UTF-8 whatever the names hold.
std::string page(const PageContent& content);

}  // namespace kvmark
