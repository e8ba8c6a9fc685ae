#!/usr/bin/python3
"""Runs the real program on configs/smoke.yaml and lets workers, files and the user go wrong.

usage: run_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))

ENGINES = ["contiguous", "paged", "fp16"]
# Rounds until the budget is spent, so that there is a middle to hit.
LONG = ["--set", "sampling.rounds=100000", "--set", "sampling.budget_s=3",
        "--set", "sampling.target_width=0"]
PATIENCE_S = 60


def children(pid):
    """Of a process, oldest first."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(child) for child in text.split()]


def is_worker(pid):
    try:
        return b"worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return False


class RunTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name) / "run"

    def tearDown(self):
        self.scratch.cleanup()

    def command(self, *options):
        return [KVMARK, "run", str(SOURCE / "configs/smoke.yaml"), "-o", str(self.folder),
                "--engine", ",".join(ENGINES), "--set", "workload.level=model", "--no-report",
                *options]

    def run_it(self, *options):
        return subprocess.run(self.command(*options), capture_output=True, text=True,
                              timeout=PATIENCE_S)

    def start(self, *options):
        process = subprocess.Popen(self.command(*options), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def wait_for_all_workers(self, process):
        """The workers, once one for each engine is there (the reference's is gone by then)."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            workers = [pid for pid in children(process.pid) if is_worker(pid)]
            if len(workers) == len(ENGINES):
                return workers
            time.sleep(0.01)
        self.fail(f"the workers did not come up: {process.communicate()}")

    def rows(self):
        """The last row of each case."""
        latest = {}
        for line in (self.folder / "records.jsonl").read_text().splitlines():
            row = json.loads(line)
            latest[row["case_id"]] = row
        return list(latest.values())

    def statuses(self):
        return sorted(row["status"] for row in self.rows())

    def test_all_is_well(self):
        result = self.run_it()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])
        self.assertIn("paged", result.stdout)
        for row in self.rows():
            self.assertTrue(row["accuracy"]["correct"]["passed"])
            self.assertTrue(row["sampling"]["interleaved"])
            self.assertGreater(row["work"]["read_ceiling_gb_per_s"], 0)
            self.assertGreater(row["work"]["bandwidth_fraction"], 0)
            self.assertGreater(row["memory"]["peak_rss_bytes"], 0)
            probes = row["probes"]
            self.assertGreater(probes["wall_ms"], 0)
            self.assertGreater(probes["cpu_ms"], 0)
            self.assertGreaterEqual(probes["highest_core_ghz"], probes["lowest_core_ghz"])
            self.assertNotIn("virtual machine", row["env"]["unstable"])

    def test_a_killed_worker_is_a_failed_row_and_resume_completes(self):
        process = self.start(*LONG)
        victim = self.wait_for_all_workers(process)[1]
        time.sleep(0.3)
        os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(self.statuses(), ["failed", "ok", "ok"])
        failed = next(row for row in self.rows() if row["status"] == "failed")
        self.assertEqual(failed["case"]["engine"], "paged:16/f32")
        self.assertIn("killed by SIGKILL", failed["reason"])

        result = self.run_it("--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])

    def test_a_torn_last_line_is_survived(self):
        self.assertEqual(self.run_it().returncode, 0)
        records = self.folder / "records.jsonl"
        os.truncate(records, records.stat().st_size - 200)
        shown = subprocess.run([KVMARK, "export", str(self.folder)], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(len(shown.stdout.splitlines()), 1 + 2)

        result = self.run_it("--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])

    def test_ctrl_c_keeps_rows_and_leaves_no_workers(self):
        process = self.start(*LONG)
        workers = self.wait_for_all_workers(process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("--resume", errors)
        self.assertFalse([pid for pid in workers if is_worker(pid)])
        self.assertEqual(self.run_it("--resume").returncode, 0)
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])

    def test_workers_die_with_a_killed_parent(self):
        process = self.start(*LONG)
        workers = self.wait_for_all_workers(process)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while any(is_worker(pid) for pid in workers):
            self.assertLess(time.monotonic(), deadline, "a worker outlived its parent")
            time.sleep(0.05)

    def test_a_missed_gate_is_exit_4(self):
        result = self.run_it("--set", "loss_gates.f16.attend_rel_rms_max=1e-12")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertEqual(self.statuses(), ["invalid", "ok", "ok"])

    def test_a_case_that_costs_too_much_is_skipped(self):
        result = self.run_it("--set", "sampling.max_case_s=0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.statuses(), ["skipped"] * 3)

    def test_an_existing_run_is_not_overwritten(self):
        self.assertEqual(self.run_it().returncode, 0)
        before = (self.folder / "records.jsonl").read_bytes()
        result = self.run_it()
        self.assertEqual(result.returncode, 2)
        self.assertIn("--resume", result.stderr)
        self.assertEqual((self.folder / "records.jsonl").read_bytes(), before)

    def test_usage_errors_are_exit_2_on_stderr(self):
        for options, word in [(["run"], "CONFIG"), (["lst"], "list"), ([], "subcommand"),
                              (["run", "none.yaml"], "none.yaml"),
                              (["export", "none"], "none"), (["export", "x", "--format", "y"], "csv"),
                              (["list", "engine"], "engines"), (["run", "x", "--sets", "y"], "sets"),
                              (["selftest-gate", "x", "--new", ""], "--new"),
                              (["run", "x", "-o", ""], "--output"), (["run", ""], "CONFIG"),
                              (["compare", "x", "y", "--history", ""], "--history")]:
            result = subprocess.run([KVMARK, *options], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, options)
            self.assertEqual(result.stdout, "", options)
            self.assertIn(word, result.stderr)
            self.assertTrue(result.stderr.startswith("kvmark: "), result.stderr)

    def test_a_wrong_simd_target_is_not_blamed_on_the_plan(self):
        result = subprocess.run(self.command(), capture_output=True, text=True,
                                env={**os.environ, "KVMARK_SIMD": "foo"})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertTrue(result.stderr.startswith("kvmark: KVMARK_SIMD=foo"), result.stderr)

    def test_a_reader_that_had_enough_is_no_error(self):
        process = subprocess.Popen([KVMARK, "list", "fields"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(PATIENCE_S), 0, errors)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([KVMARK, "list", "fields"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 3, result.stderr)

    def test_generate_refuses_what_it_cannot_read(self):
        broken = pathlib.Path(self.scratch.name) / "broken.gguf"
        broken.write_bytes(b"GGUF\3\0\0\0 and then nothing that makes sense")
        for options, word in [(["--model", "none.gguf"], "none.gguf"),
                              (["--model", str(broken)], "broken.gguf"),
                              (["--model", str(broken), "--threads", "5000"], "1024")]:
            result = subprocess.run([KVMARK, "generate", "--engine", "fp16", "--prompt", "x",
                                     *options], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(word, result.stderr)

    def test_a_file_size_limit_is_an_error(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        result = subprocess.run(self.command(), capture_output=True, text=True, preexec_fn=limit,
                                timeout=PATIENCE_S)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("kvmark: ", result.stderr)

    def test_help_and_version_are_results(self):
        for option in ["--help", "--version"]:
            result = subprocess.run([KVMARK, option], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0)
            self.assertIn("kvmark", result.stdout)


if __name__ == "__main__":
    unittest.main()
