#!/usr/bin/python3
"""Counts instructions with the real program under valgrind.

usage: count_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
TIMEOUT_S = 120
CAN_COUNT = shutil.which("valgrind") and "avx2" in pathlib.Path("/proc/cpuinfo").read_text()


class CountTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def run_it(self, name, *options, env=None):
        return subprocess.run(
            [KVMARK, "run", str(SOURCE / "configs/smoke.yaml"), "--count", "--no-report",
             "-o", str(self.folder(name)), "--set", "workload.level=attention", *options],
            capture_output=True, text=True, timeout=TIMEOUT_S, env={**os.environ, **(env or {})})

    def folder(self, name):
        return pathlib.Path(self.scratch.name) / name

    def rows(self, name, *options, env=None):
        result = self.run_it(name, *options, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("instructions", result.stdout)
        lines = (self.folder(name) / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def count(self, name, *options, env=None):
        (row,) = self.rows(name, *options, env=env)
        return row["counters"]["instructions_per_step"]

    @unittest.skipUnless(CAN_COUNT, "needs valgrind and AVX2")
    def test_a_counted_row_has_instructions_and_no_times(self):
        rows = self.rows("run", "--engine", "recompute,contiguous,paged:16/int4:g32",
                         "--gen-len", "4")
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual(row["status"], "ok")
            self.assertTrue(row["accuracy"]["correct"]["passed"])
            self.assertEqual(row["case"]["count"], "callgrind")
            self.assertEqual(row["case"]["threads"], 1)
            self.assertEqual(row["env"]["simd"], "AVX2")
            self.assertEqual(row["sampling"]["rounds"], 1)
            self.assertGreater(row["counters"]["instructions_per_step"], 1000)
            for figures in [row["latency"], row["throughput"], row["profile"], row["probes"],
                            row["counters"]["hardware"], row["samples"]]:
                self.assertEqual(set(figures.values()), {None})
            for ceiling in ["attend_gb_per_s", "read_ceiling_gb_per_s", "fma_gflop_per_s"]:
                self.assertIsNone(row["work"][ceiling])
            self.assertTrue((self.folder("run") / f"callgrind.out.{row['case_id']}").exists())

    @unittest.skipUnless(CAN_COUNT, "needs valgrind and AVX2")
    def test_the_same_case_has_the_same_count(self):
        # Whatever else differs: a longer environment moves the stack.
        case = ["--engine", "compressed"]
        self.assertEqual(self.count("first", *case),
                         self.count("a-longer-name", *case, env={"KVMARK_PADDING": "x" * 1001}))

    @unittest.skipUnless(CAN_COUNT, "needs valgrind and AVX2")
    def test_two_percent_of_added_work_shows(self):
        # 800 positions are 50 tiles, 816 are 51; what a step does once is a part of both.
        case = ["--engine", "compressed", "--gen-len", "5", "--set", "workload.max_seq_len=1024"]
        base = self.count("base", *case, "--prompt-len", "800")
        more = self.count("more", *case, "--prompt-len", "816")
        self.assertGreater(more / base, 1.01)
        self.assertLess(more / base, 1.02)

    def test_without_valgrind_nothing_is_done(self):
        result = self.run_it("run", env={"PATH": self.scratch.name})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("apt-get install valgrind", result.stderr)
        self.assertFalse(self.folder("run").exists())

    def test_several_threads_are_refused(self):
        result = self.run_it("run", "--threads", "2")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("1 thread", result.stderr)


if __name__ == "__main__":
    unittest.main()
