# The commit and the flags of a build, for the records.
#
# Included: target `kvmark_version`, which writes generated/kvmark_version.h of the build folder.
# Run as a script by that target in every build: writes the header only when it has changed, so that
# a new commit recompiles one file.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}" flags)
  if(KVMARK_SANITIZE)
    string(APPEND flags " -fsanitize=${KVMARK_SANITIZE}")
  endif()
  set(header ${CMAKE_BINARY_DIR}/generated/kvmark_version.h)
  add_custom_target(kvmark_version
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${header} "-DFLAGS=${flags}"
            -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${header}
    VERBATIM)
  return()
endif()

set(ENV{GIT_OPTIONAL_LOCKS} 0)  # a build must not wait for, or disturb, another git command
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "")  # not a checkout
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(NOT changes STREQUAL "")
    string(APPEND commit "-dirty")
  endif()
endif()

string(REPLACE "\\" "\\\\" FLAGS "${FLAGS}")
string(REPLACE "\"" "\\\"" FLAGS "${FLAGS}")
set(text "// Written by cmake/version.cmake.
#pragma once
#define KVMARK_GIT \"${commit}\"
#define KVMARK_FLAGS \"${FLAGS}\"
")
if(EXISTS ${HEADER})
  file(READ ${HEADER} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${HEADER} "${text}")
endif()
