#!/usr/bin/python3
"""Lets the doctor look at this machine, whatever it is: it finds, measures and says so.

usage: doctor_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import math
import os
import subprocess
import sys
import unittest

KVMARK, _ = sys.argv.pop(1), sys.argv.pop(1)


def doctor(*arguments, **env):
    return subprocess.run([KVMARK, "doctor", *arguments], capture_output=True, text=True,
                          timeout=240, check=False, env=os.environ | env)


class DoctorTest(unittest.TestCase):
    def test_it_measures_this_machine(self):
        result = doctor("--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("doctor: the noise floor", result.stderr)
        found = json.loads(result.stdout)

        self.assertEqual(found["machine"]["cpus_allowed"], len(os.sched_getaffinity(0)))
        self.assertGreater(found["clock"]["overhead_ns"], 0)
        self.assertGreater(found["harness"]["clock_reads_per_step"], 0)
        low, high = found["harness"]["step_cost_share_ci95"]
        self.assertTrue(low <= found["harness"]["step_cost_share"] <= high)
        self.assertIsNone(found["noise"]["missing_because"])
        self.assertGreaterEqual(found["noise"]["visits"], 8)
        self.assertGreater(found["noise"]["visit_sigma"], 0)
        self.assertGreater(found["noise"]["smallest_slowdown_48_pairs"], 0)
        self.assertLess(found["noise"]["smallest_slowdown_48_pairs"],
                        found["noise"]["smallest_slowdown_24_pairs"])
        rates = [row["read_gb_per_s"] for row in found["ceilings"]["read"]]
        rates += [row["fma_gflop_per_s"] for row in found["ceilings"]["fma"]]
        self.assertGreater(len(rates), 1)
        for rate in rates:
            self.assertTrue(math.isfinite(rate) and rate > 0, rates)
        self.assertEqual({row["simd"] for row in found["ceilings"]["fma"]},
                         set(found["machine"]["simd_targets"]))
        order = [["warn", "note", "fine"].index(f["severity"]) for f in found["findings"]]
        self.assertEqual(order, sorted(order))
        self.assertEqual(found["verdict"]["fit_for_gate"], found["noise"]["visit_sigma"] <= 0.02)

    def test_wrong_usage(self):
        for arguments, env in [(["--jsn"], {}), (["now"], {}), ([], {"KVMARK_SIMD": "MMX"})]:
            with self.subTest(arguments):
                result = doctor(*arguments, **env)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
