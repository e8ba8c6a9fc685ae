#!/usr/bin/python3
"""Lets `kvmark ab` judge the program against itself, as it is and slowed down.

usage: ab_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
PATIENCE_S = 240  # then it hangs; how soon it is sure is the machine's affair

# One row, whose visits are as short as can be.
PLAN = """
name: tiny
model: {preset: seed-gqa, layers: 2, vocab: 512}
engines: [fp16]
workload: {level: attention, prompt_len: 2048, gen_len: 65, max_seq_len: 4096}
threads: 1
sampling: {settle_steps: 2}
"""


class AbTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        self.plan = self.root / "tiny.yaml"
        self.plan.write_text(PLAN)

    def tearDown(self):
        self.scratch.cleanup()

    def build(self, name, worker):
        """A build of kvmark whose `worker` is a line of shell, $KVMARK the real program."""
        path = self.root / name
        path.write_text(f"#!/bin/sh\nKVMARK={KVMARK}\n"
                        f'[ "$1" = worker ] || exec $KVMARK "$@"\n{worker}\n')
        path.chmod(0o755)
        return str(path)

    def command(self, new, *options, base=KVMARK):
        return [KVMARK, "ab", "--base", base, "--new", new, str(self.plan), "-o",
                str(self.root / "ab"), *options]

    def ab(self, new, *options, base=KVMARK):
        return subprocess.run(self.command(new, *options, base=base), capture_output=True,
                              text=True, timeout=PATIENCE_S)

    def slower(self, by):
        return self.build("slower", f"""sed -u 's/"cmd":"prepare"/&,"extra_work":{by}/' | """
                                    "$KVMARK worker")

    def test_itself_is_the_same(self):
        junit = self.root / "out/junit.xml"
        result = self.ab(KVMARK, "--format", "json", "--out", f"junit={junit}")
        answer = json.loads(result.stdout)
        # What the clock says is the machine's affair; what is exact is the same.
        self.assertIn(result.returncode, [0, 1], result.stderr)
        for metric in answer["cases"][0]["metrics"]:
            if not metric["metric"].startswith("latency."):
                self.assertIn(metric["verdict"], ["same", "shown"], metric)
        self.assertIn("<testcase", junit.read_text())
        ab = json.loads((self.root / "ab/ab.json").read_text())
        self.assertGreaterEqual(len(ab["rows"][0]["pairs"]), 8)
        for side in ["base", "new"]:
            row = json.loads((self.root / "ab" / side / "records.jsonl").read_text())
            self.assertEqual(row["status"], "ok")

    def test_extra_work_is_found(self):
        result = self.ab(self.slower(0.5))
        self.assertEqual(result.returncode, 1, result.stderr + result.stdout)
        decision = json.loads((self.root / "ab/ab.json").read_text())["rows"][0]["decision"]
        self.assertEqual(decision["finding"], "slower")
        self.assertGreater(decision["change"], 0.25)
        self.assertLess(decision["change"], 1)

    def test_a_build_that_dies(self):
        result = self.ab(self.build("dies", "exec false"))
        self.assertEqual(result.returncode, 3, result.stderr + result.stdout)
        self.assertIn("exited with 1", result.stdout)

    def test_a_base_that_ignores_a_key_has_nothing_in_common(self):
        """As an old build does that knows no `pin`."""
        old = self.build("old", "sed -u 's/\"pin\":[a-z]*/\"nip\":0/' | $KVMARK worker")
        result = self.ab(KVMARK, "--set", "pin=true", base=old)
        self.assertEqual(result.returncode, 5, result.stderr + result.stdout)
        self.assertIn("ignores a key", result.stdout)

    def test_what_is_no_build_is_exit_2(self):
        for base, word in [("none", "no such file"), (str(self.plan), "cannot be run"),
                           ("/bin/true", "is no kvmark")]:
            result = self.ab(KVMARK, base=base)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(word, result.stderr)
            self.assertEqual(result.stdout, "")
        for options in [["--format", "x"], ["--out", "table"], ["--set", "nonsense=1"]]:
            self.assertEqual(self.ab(KVMARK, *options).returncode, 2, options)
        self.assertFalse((self.root / "ab").exists())

    def test_ctrl_c_keeps_the_pairs(self):
        process = subprocess.Popen(self.command(KVMARK), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        log = self.root / "ab/new/records.jsonl"
        deadline = time.monotonic() + PATIENCE_S
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue(json.loads((self.root / "ab/ab.json").read_text())["interrupted"])

    def test_the_selftest_of_the_gate(self):
        """Three rounds say nothing yet; five go on from there."""
        command = [KVMARK, "selftest-gate", str(self.plan), "-o", str(self.root / "test"),
                   "--runs", "0", "--injected", "0"]
        for rounds in [3, 5]:
            result = subprocess.run([*command, "--aa-rounds", str(rounds)], capture_output=True,
                                    text=True, timeout=PATIENCE_S)
            self.assertEqual(result.returncode, 5, result.stderr)
            self.assertIn("too few", result.stdout)
            lines = (self.root / "test/selftest.jsonl").read_text().splitlines()
            self.assertEqual(len(lines), 1 + 1 + rounds)  # what it is of, one row verified


if __name__ == "__main__":
    os.environ.pop("OPENBLAS_CORETYPE", None)
    unittest.main()
