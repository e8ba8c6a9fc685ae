# Tests of the tree itself: its checks, the commands of its manual, its walk-through.

# The distribution's Python, for which scripts/setup.sh installs modules, before any other.
find_program(KVMARK_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(KVMARK_PYTHON python3 REQUIRED)

function(kvmark_check name)
  add_test(NAME ${name} COMMAND ${KVMARK_PYTHON} ${ARGN}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

# Every scripts/tests/*_test.py is a program; it may keep files in a folder of the build.
file(GLOB check_tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} scripts/tests/*_test.py)
foreach(test ${check_tests})
  string(REGEX REPLACE "\\.py$" "" name ${test})
  kvmark_check(${name} ${PROJECT_SOURCE_DIR}/${test} ${CMAKE_BINARY_DIR}/${name})
endforeach()

kvmark_check(include_directions ${PROJECT_SOURCE_DIR}/scripts/check_includes.py)
kvmark_check(manual ${PROJECT_SOURCE_DIR}/scripts/check_docs.py --build ${CMAKE_BINARY_DIR})
kvmark_check(engines_in_manual ${PROJECT_SOURCE_DIR}/scripts/check_engine_docs.py
  $<TARGET_FILE:kvmark>)
