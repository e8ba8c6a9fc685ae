"""The check of the engines' page must miss whatever the page leaves out."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).parents[1] / "check_engine_docs.py"

KVMARK = """#!/bin/sh
case $2 in
  engines) printf 'engine  preset  use\\nrecompute  recompute  x\\npaged:16/int8:g32    y\\nrefused: why\\n' ;;
  codecs) printf 'codec  bits\\nint8:g32  8.5\\nbits are bits\\n' ;;
  layouts) printf 'recompute  nothing\\npaged:B  blocks\\n' ;;
  policies) printf 'stop  x\\ngrow[:F]  y\\n' ;;
esac
"""

ROWS = ["`recompute`", "`paged:B`", "`int8:g32` | 8.5", "`stop`", "`grow`, `grow:F`"]


def run_check(rows):
    with tempfile.TemporaryDirectory() as folder:
        kvmark, page = pathlib.Path(folder, "kvmark"), pathlib.Path(folder, "engines.md")
        kvmark.write_text(KVMARK, encoding="utf-8")
        kvmark.chmod(0o755)
        page.write_text("".join(f"| {row} | use it |\n" for row in rows), encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, CHECK, kvmark, page], capture_output=True, text=True, check=False
        )
        return answer.returncode, answer.stderr


class CheckEngineDocs(unittest.TestCase):
    def test_complete_page(self):
        self.assertEqual(run_check(ROWS), (0, ""))

    def test_each_missing_row_is_named(self):
        missing = ["`recompute`", "`paged`", "`int8:g32`", "`stop`", "`grow`"]
        for place, name in enumerate(missing):
            code, errors = run_check(ROWS[:place] + ROWS[place + 1 :])
            self.assertEqual(code, 1, name)
            self.assertIn(f"no row for {name}", errors)

    def test_wrong_bits_are_named(self):
        code, errors = run_check([row.replace("8.5", "8.25") for row in ROWS])
        self.assertEqual(code, 1)
        self.assertIn("int8:g32 has 8.5 bits in `kvmark list codecs`, not 8.25", errors)

    def test_mention_outside_a_row_does_not_count(self):
        code, _ = run_check([*ROWS[:-1], "see also `grow`"])
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
