#!/usr/bin/python3
"""Runs one micro-benchmark of each kind, small and short: all of their counters must be numbers.

usage: micro_test.py KVMARK_MICRO SOURCE_DIR [unittest options]
"""

import json
import math
import subprocess
import sys
import unittest

MICRO, _ = sys.argv.pop(1), sys.argv.pop(1)

READS = {"gb_per_s", "ceiling_gb_per_s", "of_ceiling"}
FLOPS = {"gflop_per_s", "fma_gflop_per_s", "of_fma_rate"}
# Name → counters.
BENCHMARKS = {
    "attend/f32/contiguous/d64/g4/512/t1": READS,
    "attend/int8:g32/paged:16/d128/g3/512/t1": READS,
    "append/f16/d64/t1": {"gb_per_s", "of_step"},
    "prefill/f32/d64/g4/512/t1": FLOPS,
    "gemv/bf16/576x576/t1": READS,
    "gemm/f16/64x768x768/t1": FLOPS,
    "merge/d64/8/t1": READS,
}


def run(*arguments):
    return subprocess.run([MICRO, *arguments], capture_output=True, text=True, timeout=240)


class MicroTest(unittest.TestCase):
    def test_each_kind_reports_its_counters(self):
        result = run("--working-set-mib=8", "--benchmark_min_time=0.01", "--benchmark_format=json",
                     f"--benchmark_filter=^({'|'.join(BENCHMARKS)})/")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = {row["name"].removesuffix("/manual_time"): row
                 for row in json.loads(result.stdout)["benchmarks"]}
        self.assertEqual(found.keys(), BENCHMARKS.keys())
        for name, counters in BENCHMARKS.items():
            for counter in counters | {"real_time"}:
                with self.subTest(name, counter=counter):
                    self.assertTrue(math.isfinite(found[name][counter]), found[name][counter])
                    self.assertGreater(found[name][counter], 0)
        self.assertLess(found["append/f16/d64/t1"]["of_step"], 1)

    def test_the_default_filter_names_benchmarks(self):
        result = run("--benchmark_list_tests")
        self.assertEqual(result.returncode, 0, result.stderr)
        kinds = {line.split("/")[0] for line in result.stdout.splitlines()}
        self.assertEqual(kinds, {"attend", "append", "prefill", "gemv", "gemm", "merge"})

    def test_what_is_not_there_is_an_error(self):
        for argument in ["--benchmark_filter=attned", "--working-set-mib=0", "--woking-set-mib=8"]:
            with self.subTest(argument):
                self.assertEqual(run(argument).returncode, 2)


if __name__ == "__main__":
    unittest.main()
