#!/usr/bin/python3
"""Writes pages of committed records with the real program, and of what are no records.

usage: report_test.py KVMARK SOURCE_DIR [unittest options]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

KVMARK, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))

REFERENCE = SOURCE / "results/reference"
QUICKSTART = REFERENCE / "quickstart-codecs.jsonl"
BASE, NEW = REFERENCE / "cpu-speed-quick.jsonl", REFERENCE / "cpu-speed-quick-70.jsonl"


def data_of(page):
    """The JSON that a page holds."""
    found = re.search(r'<script type="application/json" id="kvmark-data">(.*?)</script>',
                      page.read_text(encoding="utf-8"), re.S)
    return json.loads(found.group(1))


class ReportTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.page = self.scratch / "out" / "page.html"

    def report(self, *arguments, code=0):
        result = subprocess.run([KVMARK, "report", *map(str, arguments), "-o", str(self.page)],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    # ---- pages ----

    def test_a_page_of_one_run(self):
        result = self.report(QUICKSTART, "--no-plots")
        self.assertEqual(result.stderr, f"page: {self.page}\n")
        self.assertEqual([path.name for path in self.page.parent.iterdir()], ["page.html"])
        rows = [json.loads(line) for line in QUICKSTART.read_text().splitlines()]
        data = data_of(self.page)
        self.assertEqual(data["schema"], "kvmark-page/1")
        self.assertEqual(data["title"], "quickstart-codecs")
        self.assertEqual([row["id"] for row in data["rows"]], [row["case_id"] for row in rows])
        for shown, row in zip(data["rows"], rows):
            self.assertEqual(shown["values"]["memory.kv_live_bytes"],
                             row["memory"]["kv_live_bytes"])
            self.assertEqual(shown["values"]["latency.itl_ms.p50"],
                             row["latency"]["itl_ms"]["p50"])
        self.assertIsNone(data["comparison"])
        self.assertEqual(data["runs"][0]["started"], "2026-11-29T22:01:11Z")

    def test_the_summary_says_what_the_rows_support(self):
        self.report(QUICKSTART, "--no-plots")
        sentences = data_of(self.page)["summary"]
        text = " ".join(sentence["text"] for sentence in sentences)
        self.assertIn("int8:g32 keeps a token in 0.53 of f16's bytes", text)
        self.assertIn("Without a cache 511 tokens took", text)
        self.assertNotIn("KLD", text)
        for sentence in sentences:  # three rounds
            if "as fast" in sentence["text"]:
                self.assertEqual(sentence["kind"], "undecided")

    def test_intervals_decide(self):
        self.report(BASE, "--no-plots")
        facts = [s["text"] for s in data_of(self.page)["summary"] if s["kind"] == "fact"]
        self.assertTrue(any("times as fast as f16 (95 % interval" in fact for fact in facts), facts)

    def test_the_plan_and_its_name_come_from_the_folder(self):
        run = self.scratch / "run"
        run.mkdir()
        shutil.copy(QUICKSTART, run / "records.jsonl")
        plan = {"run_id": "x", "plans": [{"name": "one"}, {"name": "two"}], "case_ids": []}
        (run / "plan.json").write_text(json.dumps(plan))
        self.report(run, "--no-plots")
        data = data_of(self.page)
        self.assertEqual(data["title"], "one, two")
        self.assertEqual(data["runs"][0]["plan"], plan)

    def test_two_runs_are_a_comparison(self):
        self.report(BASE, NEW, "--no-plots")
        data = data_of(self.page)
        self.assertEqual([run["role"] for run in data["runs"]], ["base", "new"])
        self.assertEqual([row["run"] for row in data["rows"]], 8 * [0] + 8 * [1])
        shown = subprocess.run([KVMARK, "compare", str(BASE), str(NEW), "--format", "json"],
                               capture_output=True, text=True)
        self.assertEqual(data["comparison"], json.loads(shown.stdout))
        self.assertIn(data["comparison"]["verdict"], data["summary"][0]["text"])

    def test_runs_of_two_machines_are_shown(self):
        other = self.scratch / "other.jsonl"
        other.write_text(NEW.read_text().replace("AMD EPYC", "Another CPU"))
        self.report(BASE, other, "--no-plots")
        verdicts = {metric["metric"]: metric["verdict"]
                    for metric in data_of(self.page)["comparison"]["cases"][0]["metrics"]}
        self.assertEqual(verdicts["latency.tpot_ms.p50"], "shown")

    def test_three_runs_are_one_table(self):
        self.report(BASE, NEW, QUICKSTART, "--no-plots")
        data = data_of(self.page)
        self.assertIsNone(data["comparison"])
        self.assertEqual([run["rows"] for run in data["runs"]], [8, 8, 20])
        self.assertEqual(len(data["rows"]), 36)

    def test_one_run_against_itself_is_said(self):
        self.report(BASE, BASE, "--no-plots")
        verdict = data_of(self.page)["comparison"]["verdict"]
        self.assertTrue(verdict.endswith("; both sides are the same run"), verdict)

    def test_a_page_of_200_rows_has_less_than_3_mib(self):
        self.report(REFERENCE / "cpu-speed.jsonl", REFERENCE / "heads.jsonl", NEW, "--no-plots")
        self.assertEqual(len(data_of(self.page)["rows"]), 200)
        self.assertLess(self.page.stat().st_size, 3 * 2**20)

    # ---- plots ----

    def test_plots_lie_beside_the_page(self):
        result = self.report(QUICKSTART)
        folder = self.page.parent / "page-plots"
        pictures = sorted(folder.glob("*.png"))
        self.assertTrue(pictures, result.stderr)
        for said in [str(folder), *(picture.stem for picture in pictures)]:
            self.assertIn(said, result.stderr)

    def test_two_runs_have_a_picture_of_their_comparison(self):
        self.report(BASE, NEW)
        names = sorted(path.name for path in (self.page.parent / "page-plots").iterdir())
        self.assertEqual(names, ["comparison.json", "comparison.png", "comparison.svg"])

    def with_own_scripts(self, module, code):
        """The program beside scripts of its own, of which one module has some more code."""
        program = self.scratch / "bin/kvmark"
        program.parent.mkdir()
        shutil.copy(KVMARK, program)
        scripts = self.scratch / "share/kvmark/plots"
        shutil.copytree(SOURCE / "plots", scripts)
        with open(scripts / module, "a", encoding="utf-8") as file:
            file.write("\n\n" + code)
        return program

    def report_with(self, program):
        """The stderr of a program whose pictures fail, which takes no page away."""
        result = subprocess.run([program, "report", QUICKSTART, "-o", self.page],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(data_of(self.page)["rows"]), 20)
        return result.stderr

    def test_a_plot_that_fails_is_said_and_takes_no_other_away(self):
        program = self.with_own_scripts(
            "loss.py", "def plot_loss(records):\n    raise ValueError('planted')\n")
        errors = self.report_with(program)
        self.assertIn("loss-1 failed: ValueError: planted", errors)
        self.assertIn("kvmark: plots: some could not be drawn", errors)
        names = {path.stem for path in (self.page.parent / "page-plots").glob("*.png")}
        self.assertIn("kv_bytes-1", names)
        self.assertNotIn("loss-1", names)

    def test_a_script_that_fails_is_not_taken_for_a_plot_that_fails(self):
        program = self.with_own_scripts(
            "records.py", "def counting(runs):\n    raise ValueError('planted')\n")
        errors = self.report_with(program)
        self.assertIn("ValueError: planted", errors)
        self.assertRegex(errors, r"kvmark: no plots: \S*plot\.py failed; its output stands")

    def test_an_interrupt_ends_the_script_too(self):
        program = self.with_own_scripts("records.py", "import os, time\n\ndef counting(runs):\n"
                                        "    print('waits', flush=True)\n    time.sleep(600)\n")
        process = subprocess.Popen([program, "report", QUICKSTART, "-o", self.page], text=True,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        while process.stderr.readline() != "waits\n":
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]  # until the script has left stderr too
        self.assertEqual((process.returncode, said), (130, "kvmark: interrupted\n"))
        self.assertEqual(len(data_of(self.page)["rows"]), 20)

    def test_a_file_in_the_place_of_the_plots_leaves_the_page(self):
        self.page.parent.mkdir()
        place = self.page.parent / "page-plots"
        place.write_text("mine")
        for runs in [(QUICKSTART,), (BASE, NEW)]:
            self.page.unlink(missing_ok=True)
            self.assertIn(f"kvmark: no plots: {place} is a file, and their folder goes there",
                          self.report(*runs).stderr)
            self.assertTrue(data_of(self.page)["rows"])
            self.assertEqual(place.read_text(), "mine")

    def test_one_run_after_two_leaves_no_comparison_behind(self):
        self.report(BASE, NEW)
        self.report(QUICKSTART)
        names = {path.name for path in (self.page.parent / "page-plots").iterdir()}
        self.assertIn("kv_bytes-1.png", names)
        self.assertFalse([name for name in names if name.startswith("comparison")])

    def test_without_the_scripts_there_is_a_page_and_a_warning(self):
        program = self.scratch / "kvmark"  # not in a tree
        shutil.copy(KVMARK, program)
        result = subprocess.run([program, "report", QUICKSTART, "-o", self.page],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no plots: plots/plot.py is not beside this build", result.stderr)
        self.assertEqual(len(data_of(self.page)["rows"]), 20)

    # ---- what cannot be ----

    def test_what_cannot_be_read_is_2_and_leaves_the_page_alone(self):
        self.page.parent.mkdir()
        self.page.write_text("the old page")
        empty = self.scratch / "empty.jsonl"
        empty.write_text("")
        foreign = self.scratch / "foreign.jsonl"
        foreign.write_text('{"schema": "other"}\n{"schema": "other"}\n')
        for run, word in [(self.scratch / "none", "no such run"),
                          (self.scratch, "records.jsonl is missing"),
                          (empty, "holds no record"),
                          (foreign, "foreign.jsonl:1")]:
            result = self.report(QUICKSTART, run, "--no-plots", code=2)
            self.assertIn(word, result.stderr)
            self.assertEqual(self.page.read_text(), "the old page")
        result = subprocess.run([KVMARK, "report"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("RUN", result.stderr)

    def test_a_page_that_cannot_be_written(self):
        self.page = self.scratch
        self.assertIn("is a folder", self.report(QUICKSTART, "--no-plots", code=2).stderr)
        self.page = pathlib.Path("/dev/full")
        self.assertIn("/dev/full", self.report(QUICKSTART, "--no-plots", code=3).stderr)

    def test_what_is_read_is_not_written(self):
        folder = self.scratch / "a run"
        folder.mkdir()
        records = folder / "records.jsonl"
        records.write_text(QUICKSTART.read_text())
        for run, self.page in [(records, records), (folder, records), (folder, folder / "plan.json")]:
            self.assertIn("this file is of the run itself", self.report(run, "--no-plots", code=2).stderr)
        self.assertEqual(records.read_text(), QUICKSTART.read_text())

    def test_a_stream_has_no_plots_beside_it(self):
        self.page = pathlib.Path("/dev/stdout")
        self.assertIn("kvmark-data", self.report(QUICKSTART).stdout)
        self.assertFalse(pathlib.Path("/dev/stdout-plots").exists())

    def test_a_torn_last_line_is_told(self):
        torn = self.scratch / "torn.jsonl"
        torn.write_text(QUICKSTART.read_text() + '{"schema": "kvm')
        self.assertIn("cut off", self.report(torn, "--no-plots").stderr)
        self.assertEqual(len(data_of(self.page)["rows"]), 20)

    # ---- a run's own page ----

    def without_scripts(self):
        """The program where it draws no pictures, which takes its time."""
        program = self.scratch / "kvmark"
        if not program.exists():
            shutil.copy(KVMARK, program)
        return program

    def run_smoke(self, name, *options, code=0, program=None, env=None):
        program = program or self.without_scripts()
        result = subprocess.run(
            [program, "run", SOURCE / "configs/smoke.yaml", "-o", self.scratch / name, "--engine",
             "contiguous,fp16", "--set", "workload.level=attention", *options],
            capture_output=True, text=True, timeout=60, env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_a_page_that_fails_takes_no_result_back(self):
        (self.scratch / "run").mkdir()
        (self.scratch / "run" / "report.html").symlink_to("/dev/full")
        result = self.run_smoke("run", code=3)
        self.assertIn("cannot write", result.stderr)
        self.assertIn("contiguous", result.stdout)
        (self.scratch / "other" / "report.html").mkdir(parents=True)
        self.assertIn("report.html: is a folder", self.run_smoke("other", code=2).stderr)

    def test_a_run_leaves_its_page(self):
        result = self.run_smoke("run")
        page = self.scratch / "run" / "report.html"
        self.assertIn(f"page: {page}\n", result.stderr)
        self.assertIn("no plots: ", result.stderr)
        data = data_of(page)
        self.assertEqual(data["title"], "smoke")
        self.assertEqual([row["label"] for row in data["rows"]], ["contiguous", "fp16"])
        self.assertTrue(data["runs"][0]["plan"]["plans"])

    def test_a_run_that_goes_on_takes_its_old_page_and_plots_away(self):
        self.run_smoke("run", program=KVMARK)
        folder = self.scratch / "run"
        plots = folder / "plots"
        drawn = {path.name for path in plots.iterdir()}
        self.assertIn("loss.png", drawn)
        again = ("run", "--resume", "--no-report")
        self.run_smoke(*again, program=KVMARK)  # all is there: nothing changes
        self.assertTrue((folder / "report.html").exists())
        self.assertEqual({path.name for path in plots.iterdir()}, drawn)
        records = folder / "records.jsonl"
        records.write_text(records.read_text().splitlines(keepends=True)[0])
        (plots / "mine.png").touch()
        self.run_smoke(*again, program=KVMARK)
        self.assertEqual(len(records.read_text().splitlines()), 2)
        self.assertFalse((folder / "report.html").exists())
        self.assertEqual([path.name for path in plots.iterdir()], ["mine.png"])

    def earlier_run(self, name):
        """The plots' folder of a run whose rows are lost, with a picture in it."""
        self.run_smoke(name)
        plots = self.scratch / name / "plots"
        plots.mkdir()
        (plots / "loss.png").touch()
        (self.scratch / name / "records.jsonl").write_text("")
        return plots

    def test_old_pictures_that_cannot_be_told_apart_stay_and_are_named(self):
        plots = self.earlier_run("run")
        result = self.run_smoke("run", "--resume", "--no-report")
        self.assertIn(f"{plots}: pictures of an earlier start stay there (plots/clear.py is not "
                      "beside this build); remove them\n", result.stderr)
        self.assertTrue((plots / "loss.png").exists())

    def test_old_pictures_go_where_no_new_ones_can_be_drawn(self):
        plots = self.earlier_run("run")
        broken = self.scratch / "modules/matplotlib.py"  # is found before the installed one
        broken.parent.mkdir()
        broken.write_text("raise ImportError('planted')\n")
        result = self.run_smoke("run", "--resume", program=KVMARK,
                                env={**os.environ, "PYTHONPATH": str(broken.parent)})
        self.assertIn("no plots: there is no python3 with matplotlib", result.stderr)
        self.assertFalse(plots.exists())

    def test_no_report_leaves_page_and_plots_out(self):
        result = self.run_smoke("run", "--no-report")
        self.assertNotIn("page: ", result.stderr)
        self.assertNotIn("plots", result.stderr)
        self.assertFalse((self.scratch / "run" / "report.html").exists())


if __name__ == "__main__":
    unittest.main()
