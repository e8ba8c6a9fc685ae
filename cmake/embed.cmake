# Files as text inside a program.
#
# Included: kvmark_embed(TARGET FUNCTION files...) adds to TARGET the definition of
#   std::string_view kvmark::FUNCTION();  // the files one behind the other, a line end after each
# Run as a script in a build: writes that source, when one of the files has changed.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(KVMARK_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(kvmark_embed target function)
    set(source ${CMAKE_BINARY_DIR}/generated/${function}.cc)
    set(files)
    foreach(file ${ARGN})
      get_filename_component(file ${file} ABSOLUTE)
      list(APPEND files ${file})
    endforeach()
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DFUNCTION=${function} "-DFILES=${files}"
              -P ${KVMARK_EMBED_SCRIPT}
      DEPENDS ${files} ${KVMARK_EMBED_SCRIPT}
      VERBATIM)
    target_sources(${target} PRIVATE ${source})
  endfunction()
  return()
endif()

# Bytes, since compilers need not take long literals of text.
set(bytes "")
foreach(file ${FILES})
  file(READ ${file} hex HEX)
  string(APPEND bytes ${hex} "0a")
endforeach()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${SOURCE} "// Written by cmake/embed.cmake.
#include <string_view>

namespace kvmark {

std::string_view ${FUNCTION}() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace kvmark
")
