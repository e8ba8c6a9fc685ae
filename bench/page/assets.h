// The parts of the page, which the build puts into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace kvmark {

std::string_view page_template();  // page.html
std::string_view page_style();     // page.css
std::string_view page_script();    // our scripts, in the order of CMakeLists.txt
std::string_view chart_library();  // Chart.js, of the distribution

}  // namespace kvmark
