"""The include check must find each kind of forbidden include, and nothing in a clean tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).parents[1] / "check_includes.py"

TABLE = """
kvmark_folder(engines/core DEPENDS LIBS Threads::Threads)
kvmark_folder(engines/codecs DEPENDS engines/core)  # engines/secret
kvmark_folder(engines/cpu
  DEPENDS engines/core engines/codecs
  LIBS fmt::fmt)
kvmark_folder(bench/run DEPENDS engines/core)
kvmark_program(kvmark SOURCES bench/main.cc DEPENDS bench/run)
"""

CLEAN = {
    "CMakeLists.txt": TABLE,
    "engines/core/a.h": "#pragma once\n#include <vector>\ninline std::vector<int> a() { return {}; }\n",
    "engines/codecs/b.h": '#pragma once\n#include "engines/core/a.h"\n',
    "engines/cpu/c.cc": '#include "engines/codecs/b.h"\n#include "engines/core/a.h"\n',
    "bench/run/run.h": '#pragma once\n#include "engines/core/a.h"\n',
    "bench/main.cc": '#include "bench/run/run.h"\n',
}


def run_check(changes, *options):
    """(exit code, stderr) of the check on the clean tree with some files replaced."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, CHECK, "--root", root, *options],
            capture_output=True,
            text=True,
            check=False,
        )
        return answer.returncode, answer.stderr


class CheckIncludes(unittest.TestCase):
    def assert_found(self, changes, expected, *options):
        code, errors = run_check(changes, *options)
        self.assertEqual(code, 1, errors)
        self.assertIn(expected, errors)

    def test_clean_tree_passes(self):
        self.assertEqual(run_check({}, "--headers"), (0, ""))

    def test_include_against_the_direction(self):
        self.assert_found(
            {"engines/core/x.cc": '// first line\n#include "engines/codecs/b.h"\n'},
            'engines/core/x.cc:2: "engines/codecs/b.h"',
        )

    def test_a_dependency_is_not_inherited(self):
        self.assert_found({"bench/main.cc": '#include "engines/core/a.h"\n'}, "bench/main.cc:1")

    def test_engines_include_no_benchmark(self):
        self.assert_found({"engines/cpu/x.h": '#  include "bench/run/run.h"\n'}, "engines/cpu/x.h:1")

    def test_table_that_lets_engines_know_the_benchmark(self):
        table = TABLE.replace("DEPENDS engines/core engines/codecs", "DEPENDS bench/run")
        self.assert_found({"CMakeLists.txt": table}, "engines know no benchmark")

    def test_dependency_that_is_no_folder(self):
        table = TABLE.replace("bench/run DEPENDS", "bench/run DEPENDS engines/cor")
        self.assert_found({"CMakeLists.txt": table}, "engines/cor, which is no kvmark_folder")

    def test_folder_without_a_line(self):
        self.assert_found({"engines/new/x.h": "#pragma once\n"}, "no kvmark_folder line")

    def test_relative_include(self):
        self.assert_found({"engines/core/x.cc": '#include "a.h"\n'}, "full path")

    def test_missing_header(self):
        self.assert_found({"engines/core/x.cc": '#include "engines/core/z.h"\n'}, "no such file")

    def test_header_that_does_not_compile_alone(self):
        self.assert_found(
            {"engines/core/a.h": "#pragma once\ninline std::string a();\n"},
            "engines/core/a.h: does not compile alone",
            "--headers",
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
