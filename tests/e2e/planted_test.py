#!/usr/bin/python3
"""A build whose int4 is off by one: its rows must be invalid, and only they.

usage: planted_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))


class PlantedTest(unittest.TestCase):
    def test_an_off_by_one_in_int4_is_invalid(self):
        for level in ["model", "attention"]:
            with self.subTest(level), tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch) / "run"
                result = subprocess.run(
                    [KVMARK, "run", str(SOURCE / "configs/smoke.yaml"), "-o", str(folder),
                     "--engine", "contiguous,compressed,contiguous/int4:g32,paged:16/int4:g64",
                     "--set", f"workload.level={level}", "--no-report"],
                    capture_output=True, text=True, timeout=120)
                self.assertEqual(result.returncode, 4, result.stderr)
                lines = (folder / "records.jsonl").read_text().splitlines()
                rows = {row["case"]["engine"]: row for row in map(json.loads, lines)}
                for engine in ["contiguous/f32", "contiguous/int8:g32"]:
                    self.assertEqual(rows[engine]["status"], "ok", engine)
                for engine in ["contiguous/int4:g32", "paged:16/int4:g64"]:
                    self.assertEqual(rows[engine]["status"], "invalid", engine)
                    self.assertIn("stored rows differ", rows[engine]["reason"])
                    self.assertIsNone(rows[engine]["latency"]["itl_ms"])


if __name__ == "__main__":
    unittest.main()
