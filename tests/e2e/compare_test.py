#!/usr/bin/python3
"""Compares made-up runs with the real program: every exit code, every format, every way to write.

usage: compare_test.py KVMARK SOURCE_DIR [unittest options]
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))

# Real rows: eight engines at attention level, seven rounds each.
ROWS = [json.loads(line) for line in
        (SOURCE / "results/reference/cpu-speed-quick.jsonl").read_text().splitlines()]
ODD_NAME = "a \"quoted\" <name> & 'more',\n100 % | `code`"


def slower(row, factor):
    row = copy.deepcopy(row)
    tpot = row["latency"]["tpot_ms"]
    tpot["p50"] *= factor
    tpot["p50_ci95"] = [factor * end for end in tpot["p50_ci95"]]
    return row


class CompareTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.base = self.run_of("base", ROWS)

    def run_of(self, name, rows, plans=None):
        """A run's folder."""
        folder = self.scratch / name
        folder.mkdir()
        (folder / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if plans is not None:
            (folder / "plan.json").write_text(json.dumps({"run_id": name, "plans": plans}))
        return folder

    def changed(self, name, change, plans=None):
        """A run in which `change` was done to the first row."""
        rows = copy.deepcopy(ROWS)
        rows[0] = change(rows[0]) or rows[0]
        return self.run_of(name, rows, plans)

    def compare(self, base, new, *options, code):
        result = subprocess.run([KVMARK, "compare", str(base), str(new), *options],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    # ---- exit codes ----

    def test_equal_runs_are_fine(self):
        result = self.compare(self.base, self.base / "records.jsonl", "--strict", code=0)
        self.assertTrue(result.stdout.startswith("no regression found: "), result.stdout)
        self.assertIn("both sides are the same run", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_slower_is_1_and_faster_is_0(self):
        new = self.changed("slow", lambda row: slower(row, 1.5))
        table = self.compare(self.base, new, code=1).stdout
        self.assertTrue(table.startswith("regression: 1 worse"), table)
        self.assertIn("+50.0 %", table)
        self.assertIn("noise unknown", table)
        self.assertIn("−33.3 %", self.compare(new, self.base, code=0).stdout)

    def test_more_bytes_and_more_loss_are_1(self):
        def fatter(row):
            row["memory"]["kv_live_bytes"] += 1
        def worse(row):
            row["accuracy"]["loss"]["attend_rel_rms"] = 0.01
        self.compare(self.base, self.changed("fatter", fatter), code=1)
        self.compare(self.base, self.changed("worse", worse), code=1)

    def test_what_cannot_be_asked_is_2(self):
        good = [self.base, self.base]
        threshold = self.scratch / "bad.yaml"
        threshold.write_text("latency.tpot_ms: 0.1\nlatency.ttft: 0.1\n")
        records = self.base / "records.jsonl"
        damaged = self.run_of("damaged", ROWS)
        (damaged / "plan.json").write_text('{"run_id": "x"')
        unlimited = self.run_of("unlimited", ROWS, [{"thresholds": {"latency.tpot_ms": 1e300}}])
        for runs, options, word in [
                ([self.base, self.scratch / "none"], [], "no such run"),
                ([self.base, self.scratch], [], "records.jsonl is missing"),
                (good, ["--metric", "latency.tpot"], "did you mean `latency.tpot_ms`"),
                (good, ["--threshold", str(threshold)], "bad.yaml:2:1: unknown metric"),
                (good, ["--threshold", "-5"], "expected 0 to 1000 percent"),
                (good, ["--format", "html"], "table"),
                (good, ["--out", "html=x"], "expected FORMAT=FILE"),
                (good, ["--out", "json"], "expected FORMAT=FILE"),
                (good, ["--out", f"json={self.base}"], "is a folder"),
                (good, ["--out", f"json={threshold}/x"], "is no folder"),
                (good, ["--history", "none"], "cannot be read"),
                (good, ["--history", str(self.base / "records.jsonl")], "line of a history"),
                (good, ["--out", f"json={records}"], "file of its own"),
                (good, ["--out", "md=a.txt", "--out", "json=a.txt"], "file of its own"),
                ([self.base, damaged], [], "plan.json: is no JSON object"),
                ([self.base, unlimited], [], "expected a number from 0 to 10"),
                ([self.base], [], "NEW")]:
            result = subprocess.run([KVMARK, "compare", *map(str, runs), *options],
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, options)
            self.assertEqual(result.stdout, "", options)
            self.assertIn(word, result.stderr)

    def test_a_case_that_failed_is_3_and_an_invalid_one_4(self):
        def become(status):
            def change(row):
                row.update(status=status, reason="for a test")
                row["latency"] = dict.fromkeys(row["latency"])
            return change
        failed = self.changed("failed", become("failed"))
        invalid = self.changed("invalid", become("invalid"))
        self.assertIn("ok → failed: for a test", self.compare(self.base, failed, code=3).stdout)
        self.compare(self.base, invalid, code=4)
        self.compare(failed, failed, code=0)  # already so in the base
        self.compare(failed, self.base, code=0)

    def test_nothing_in_common_is_5(self):
        other = self.run_of("other", [dict(row, case_id="x" + row["case_id"]) for row in ROWS])
        result = self.compare(self.base, other, code=5)
        self.assertTrue(result.stdout.startswith("nothing to compare"))
        self.assertIn("only in the base: ", result.stdout)
        self.assertIn("only in the new run: ", result.stdout)

    def test_a_row_that_was_planned_and_is_missing_is_0_or_5_if_strict(self):
        new = self.run_of("cut", ROWS[1:])
        self.compare(self.base, new, "--strict", code=5)  # nobody knows what its plan was
        (new / "plan.json").write_text(json.dumps({"case_ids": [r["case_id"] for r in ROWS[1:]]}))
        self.compare(self.base, new, "--strict", code=0)  # it was another plan
        (new / "plan.json").write_text(json.dumps({"case_ids": [r["case_id"] for r in ROWS]}))
        self.assertIn("has no row of it", self.compare(self.base, new, code=0).stdout)
        for form in ["github", "junit", "json", "md"]:
            self.compare(self.base, new, "--strict", "--format", form, code=5)

    def test_undecided_is_0_or_5_if_strict(self):
        def few(row):
            row["sampling"]["rounds"] = 2
        new = self.changed("few", few)
        self.assertIn("undecided", self.compare(self.base, new, code=0).stdout)
        self.compare(self.base, new, "--strict", code=5)

    # ---- what decides ----

    def test_another_machine_has_to_be_wanted(self):
        rows = [slower(row, 9) for row in ROWS]
        for row in rows:
            row["env"]["cpu"] = "Another CPU"
        new = self.run_of("machine", rows)
        self.assertIn("--across-machines", self.compare(self.base, new, code=2).stderr)
        result = self.compare(self.base, new, "--across-machines", code=0)
        self.assertIn("another machine", result.stdout)

    def test_thresholds_come_from_the_plan_of_the_new_run_and_from_flags(self):
        def seven(row):
            return slower(row, 1.07)
        new = self.changed("plain", seven)
        strict = self.changed("strict", seven, [{"thresholds": {"latency.tpot_ms": 0.05}}])
        self.compare(self.base, new, code=0)
        self.compare(self.base, strict, code=1)
        self.compare(self.base, strict / "records.jsonl", code=1)
        self.compare(strict, self.base, code=0)  # the base's plan does not count
        self.compare(self.base, new, "--threshold", "5", code=1)
        self.compare(self.base, new, "--threshold", "5%", code=1)
        self.compare(self.base, strict, "--threshold", "8", code=0)
        file = self.scratch / "thresholds.yaml"
        file.write_text("latency.tpot_ms: 0.08\n")
        self.compare(self.base, strict, "--threshold", str(file), code=0)

    def test_a_further_metric_can_decide(self):
        def fatter(row):
            row["memory"]["peak_rss_bytes"] *= 2
        new = self.changed("rss", fatter)
        self.compare(self.base, new, code=0)
        self.compare(self.base, new, "--metric", "memory.peak_rss_bytes", code=1)

    def test_a_torn_last_line_is_told(self):
        new = self.run_of("torn", ROWS)
        with open(new / "records.jsonl", "a") as file:
            file.write('{"schema": "kvm')
        self.assertIn("cut off", self.compare(self.base, new, code=0).stderr)

    # ---- forms ----

    def odd(self):
        """Two runs with names that need escapes, of which the new one is slower and broken."""
        def rename(rows):
            for row in rows:
                row["case"]["engine"] = ODD_NAME
            return rows
        rows = copy.deepcopy(ROWS)
        rows[0] = slower(rows[0], 2)
        rows[1].update(status="failed", reason="died:\n]]> \x01 & <more>")
        return (self.run_of("odd_base", rename(copy.deepcopy(ROWS))),
                self.run_of("odd_new", rename(rows)))

    def test_junit_is_xml(self):
        text = self.compare(*self.odd(), "--format", "junit", code=3).stdout
        root = xml.etree.ElementTree.fromstring(text)
        self.assertEqual(root.tag, "testsuites")
        tests = root.findall("./testsuite/testcase")
        failures = root.findall("./testsuite/testcase/failure")
        self.assertEqual(int(root.get("tests")), len(tests))
        self.assertEqual(int(root.get("failures")), len(failures))
        self.assertEqual(len(failures), 2)
        self.assertTrue(all(ODD_NAME in test.get("classname") for test in tests))
        names = [(test.get("classname"), test.get("name")) for test in tests]
        self.assertEqual(len(names), len(set(names)), "a test stands twice")
        for word in ["+100.0 %", "threshold 10 %", "→"]:
            self.assertIn(word, failures[0].text)

    def test_json_holds_everything(self):
        answer = json.loads(self.compare(*self.odd(), "--format", "json", code=3).stdout)
        self.assertEqual(answer["exit_code"], 3)
        self.assertEqual(len(answer["cases"]), len(ROWS))
        self.assertIn(ODD_NAME, answer["cases"][0]["label"])
        metric = {m["metric"]: m for m in answer["cases"][0]["metrics"]}["latency.tpot_ms.p50"]
        self.assertEqual(metric["verdict"], "worse")
        self.assertAlmostEqual(metric["change"], 1)
        self.assertEqual(metric["new"], 2 * ROWS[0]["latency"]["tpot_ms"]["p50"])

    def test_annotations_are_a_line_each(self):
        text = self.compare(*self.odd(), "--format", "github", code=3).stdout
        for line in text.splitlines():
            self.assertRegex(line, r"^::(error|warning|notice) title=[^:,]*::")
        self.assertEqual(sum(line.startswith("::error") for line in text.splitlines()), 2)

    def test_a_table_row_of_markdown_stays_one(self):
        text = self.compare(*self.odd(), "--format", "md", code=3).stdout
        rows = [line for line in text.splitlines() if line.startswith("| ❌")]
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0].replace("\\|", "").count("|"), 8)

    def test_several_files_of_one_comparison(self):
        out = self.scratch / "new" / "folder"
        result = self.compare(*self.odd(), "--out", f"json={out}/c.json",
                              "--out", f"junit={out}/c.xml", "--out", f"md={out}/c.md", code=3)
        self.assertTrue(result.stdout.startswith("a case that was ok fails"))
        self.assertEqual(json.loads((out / "c.json").read_text())["exit_code"], 3)
        xml.etree.ElementTree.parse(out / "c.xml")
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["c.json", "c.md", "c.xml"])

    def test_a_file_that_cannot_be_written_is_3(self):
        result = self.compare(self.base, self.base, "--out", "json=/dev/full", code=3)
        self.assertIn("/dev/full", result.stderr)
        self.assertTrue(result.stdout.startswith("no regression"), "said all the same")

    def test_a_pipe_is_a_file_too(self):
        result = self.compare(self.base, self.base, "--out", "md=/dev/stdout", code=0)
        self.assertIn("no regression", result.stdout)

    def test_what_is_wrong_outweighs_what_cannot_be_written(self):
        def invalid(row):
            row.update(status="invalid", reason="for a test")
            row["latency"] = dict.fromkeys(row["latency"])
        xml_file = self.scratch / "c.xml"
        self.compare(self.base, self.changed("invalid", invalid), "--out", "json=/dev/full",
                     "--out", f"junit={xml_file}", code=4)
        xml.etree.ElementTree.parse(xml_file)
        with open("/dev/full", "w") as full:
            slow = self.changed("slow", lambda row: slower(row, 1.5))
            result = subprocess.run([KVMARK, "compare", str(self.base), str(slow)], stdout=full)
        self.assertEqual(result.returncode, 3)

    # ---- history, and other tools ----

    def test_a_run_leaves_history_that_compare_reads(self):
        history = self.scratch / "history.jsonl"
        for name in ["first", "second"]:
            result = subprocess.run(
                [KVMARK, "run", str(SOURCE / "configs/smoke.yaml"), "-o",
                 str(self.scratch / name), "--engine", "contiguous,fp16", "--no-report",
                 "--set", "workload.level=attention", "--history", str(history)],
                capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
        lines = [json.loads(line) for line in history.read_text().splitlines()]
        self.assertEqual(len(lines), 4)
        self.assertEqual(len({line["run_id"] for line in lines}), 2)
        self.assertGreater(lines[0]["figures"]["latency.tpot_ms.p50"], 0)
        result = self.compare(self.scratch / "first", self.scratch / "second", "--all",
                              "--history", str(history), code=0)
        self.assertIn("noise unknown: 1 earlier runs", result.stdout)

    def test_nothing_is_added_to_what_is_no_history(self):
        records = self.base / "records.jsonl"
        before = records.read_bytes()
        result = subprocess.run([KVMARK, "run", str(SOURCE / "configs/smoke.yaml"), "-o",
                                 str(self.scratch / "run"), "--history", str(records)],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("line of a history", result.stderr)
        self.assertEqual(records.read_bytes(), before)
        self.assertFalse((self.scratch / "run").exists())

    def test_enough_history_tells_the_noise(self):
        history = self.scratch / "history.jsonl"
        row = ROWS[0]
        with open(history, "w") as file:
            for run, factor in enumerate([0.7, 0.8, 1, 1.2, 1.3]):
                line = {key: row["env"][key] for key in ["cpu", "simd", "compiler"]}
                line.update(schema="kvmark-history/1", run_id=f"run {run}", case_id=row["case_id"],
                            figures={"latency.tpot_ms.p50": factor * row["latency"]["tpot_ms"]["p50"]})
                file.write(json.dumps(line) + "\n")
        new = self.changed("slow", lambda row: slower(row, 1.5))
        self.compare(self.base, new, code=1)
        result = self.compare(self.base, new, "--all", "--history", str(history), code=0)
        self.assertIn("3σ of 5 earlier runs", result.stdout)

    def test_export_for_github_action_benchmark(self):
        out = self.scratch / "gha"
        result = subprocess.run([KVMARK, "export", str(self.base), "--format", "gha", "-o", str(out)],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ["smaller-is-better.json", "bigger-is-better.json"]:
            entries = json.loads((out / name).read_text())
            self.assertTrue(entries)
            self.assertEqual(len(entries), len({entry["name"] for entry in entries}))
            for entry in entries:
                self.assertIsInstance(entry["value"], (int, float))
                self.assertIsInstance(entry["unit"], str)
        for options in [["--format", "gha"], ["--format", "csv", "-o", str(out)]]:
            result = subprocess.run([KVMARK, "export", str(self.base), *options],
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn("-o DIR", result.stderr)


if __name__ == "__main__":
    unittest.main()
