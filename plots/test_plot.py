"""The command: what it draws of a run, and what it says."""

import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import plot
from test_comparison import compared, typical
from test_heat_map import sweep
from testing import LONG, failed, over_contexts, quickstart, record


def fails(rows):
    raise ValueError(f"{len(rows)} rows")


class TestCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, rows, tail="", name="records.jsonl"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows) + tail)
        return path

    def run_plot(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = plot.main([*arguments] or [self.folder])
        names = [name for line in out.getvalue().split("\n") if line.startswith("  ")
                 for name in line.split()]
        return code, names, err.getvalue()

    def test_quickstart(self):
        self.write(quickstart())
        code, names, err = self.run_plot()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(names, ["cumulative_time", "kv_bytes", "loss", "steps", "ceiling",
                                 "latency", "memory_timeline"])
        files = os.listdir(os.path.join(self.folder, "plots"))
        self.assertEqual(set(files), {f"{n}.{kind}" for n in names for kind in ("png", "svg")})
        for file in files:
            self.assertGreater(os.path.getsize(os.path.join(self.folder, "plots", file)), 5000)

    def test_contexts_give_curves_over_the_context(self):
        self.write(over_contexts())
        _, names, _ = self.run_plot()
        self.assertEqual(set(names), {
            "attention_time", "kv_bytes", "loss", "break_even", "ceiling", "latency",
            "memory_timeline"})

    def test_a_sweep_of_heads_has_a_heat_map(self):
        self.write(sweep())
        names = self.run_plot()[1]
        self.assertIn("heat_map-1", names)
        self.assertIn("step_time-1", names)
        self.assertIn("step_time-2", names)

    def test_a_setting_has_the_same_number_in_all_plots(self):
        self.write(quickstart() + over_contexts())
        names = self.run_plot()[1]
        self.assertIn("cumulative_time-1", names)
        self.assertIn("attention_time-2", names)
        self.assertIn("loss-2", names)

    def test_numbers_are_explained(self):
        self.write(quickstart() + over_contexts(kv_heads=8))
        self.run_plot()
        with open(os.path.join(self.folder, "plots", plot.SETTINGS), encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.assertEqual(lines[1:3], ["1: level model, layers 4, kv_heads 2",
                                      "2: level attention, kv_heads 8"])

    def test_settings_at_attention_level_may_lack_layers(self):
        rows = quickstart()[1:2] + over_contexts(kv_heads=8)
        for row in rows[1:]:
            del row["case"]["layers"]
        self.write(rows)
        code, names, err = self.run_plot()
        self.assertEqual((code, err), (0, ""))
        self.assertIn("loss-2", names)

    def test_pictures_of_an_earlier_start_go(self):
        self.write(quickstart() + over_contexts())
        self.run_plot()
        folder = os.path.join(self.folder, "plots")
        for file in ("comparison.json", "mine.png"):
            open(os.path.join(folder, file), "w", encoding="utf-8").close()
        self.write(quickstart()[:1])
        names = self.run_plot()[1]
        self.assertEqual(set(os.listdir(folder)), {
            "mine.png", *(f"{name}.{kind}" for name in names for kind in ("png", "svg"))})
        with open(os.path.join(self.folder, "records.jsonl"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        self.run_plot()
        self.assertEqual(os.listdir(folder), ["mine.png"])

    def test_a_fault_of_the_program_takes_no_picture_away(self):
        self.write(quickstart()[:1])
        names = self.run_plot()[1]
        with mock.patch.object(plot, "counting", fails), self.assertRaises(ValueError):
            self.run_plot()
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "plots"))), 2 * len(names))

    def test_what_cannot_be_read_takes_no_picture_away(self):
        self.write(quickstart()[:1])
        names = self.run_plot()[1]
        self.write(quickstart()[:1], tail="{]\n{}\n")
        self.assertEqual(self.run_plot()[0], 2)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "plots"))), 2 * len(names))

    def test_a_plot_that_fails_is_named_and_the_others_are_drawn(self):
        self.write(quickstart())
        plots = [plot.Plot("loss", fails, plot.SETTING) if one.name == "loss" else one
                 for one in plot.PLOTS]
        with mock.patch.object(plot, "PLOTS", plots):
            code, names, err = self.run_plot()
        self.assertEqual(code, plot.SOME_FAILED)
        self.assertEqual(names, ["cumulative_time", "kv_bytes", "steps", "ceiling", "latency",
                                 "memory_timeline"])
        self.assertEqual(err, "plot.py: loss failed: ValueError: 5 rows\n")

    def test_settings_beyond_the_limit_are_said(self):
        self.write([record("contiguous/f16", seed=seed) for seed in range(3)])
        with mock.patch.object(plot, "MOST_PICTURES", 2):
            _, names, err = self.run_plot()
            self.assertIn("kv_bytes-2", names)
            self.assertNotIn("kv_bytes-3", names)
            self.assertIn("3 settings", err)
            _, names, err = self.run_plot(self.folder, "--all")
        self.assertIn("kv_bytes-3", names)
        self.assertEqual(err, "")

    def test_several_runs_are_drawn_together(self):
        two = [self.write([row], name=f"{i}.jsonl") for i, row in enumerate(quickstart()[:2])]
        _, names, err = self.run_plot(*two)
        self.assertIn("kv_bytes", names)
        self.assertEqual(err, "")

    def test_a_case_of_two_runs_is_drawn_from_the_last_and_that_is_said(self):
        path = self.write(quickstart()[:2])
        _, names, err = self.run_plot(path, path)
        self.assertIn("kv_bytes", names)
        self.assertIn("cases that several of the runs have: 2; drawn from the last", err)

    def test_output_folder(self):
        self.write(quickstart()[:1])
        target = os.path.join(self.folder, "a", "b")
        _, names, _ = self.run_plot(self.folder, "-o", target)
        self.assertEqual(len(os.listdir(target)), 2 * len(names))

    def test_svg_is_the_same_every_time(self):
        self.write(quickstart()[:2])
        pictures = []
        for _ in range(2):
            self.run_plot()
            svg = os.path.join(self.folder, "plots", "cumulative_time.svg")
            with open(svg, encoding="utf-8") as file:
                pictures.append(file.read())
            os.remove(svg)
        self.assertEqual(*pictures)

    def test_failed_rows_and_a_torn_line_do_not_stop_the_others(self):
        self.write([failed("recompute")] + quickstart()[1:3], tail='{"status": "o')
        code, names, err = self.run_plot()
        self.assertEqual(code, 0)
        self.assertIn("cumulative_time", names)
        self.assertIn("records.jsonl:4: the last line is cut off", err)

    def test_damage_elsewhere_is_named(self):
        self.write(quickstart()[:1], tail="{]\n" + json.dumps(record("recompute")) + "\n")
        code, names, err = self.run_plot()
        self.assertEqual((code, names), (2, []))
        self.assertIn("records.jsonl:2: not a record", err)

    def test_nothing_to_draw_is_said(self):
        self.write([failed("recompute"), {"status": "ok"}, {"status": "ok", "case": None}])
        code, names, err = self.run_plot()
        self.assertEqual((code, names), (0, []))
        self.assertIn("nothing in it can be drawn", err)

    def test_a_comparison_of_nothing_is_said(self):
        run = self.write(quickstart())
        compared_ = self.write([compared()], name="comparison.json")
        code, names, err = self.run_plot(run, run, "--compare", compared_)
        self.assertEqual((code, names), (0, []))
        self.assertIn("no case that both runs have can be judged", err)

    def start_drawing(self):
        """plot.py in a session of its own, with more pictures to draw than it has drawn."""
        self.write([record(engine, seed=seed) for engine in LONG for seed in range(8)])
        process = subprocess.Popen([sys.executable, plot.__file__, self.folder],
                                   stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        while not glob.glob(f"{self.folder}/plots/.drawing-*/*"):
            self.assertIsNone(process.poll())
        return process

    def test_an_interrupt_ends_it_with_its_children_and_leaves_whole_pictures(self):
        folder = os.path.join(self.folder, "plots")
        for to_all in (True, False):  # Ctrl-C, or a signal to it alone
            process = self.start_drawing()
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(60), plot.INTERRUPTED)
            with self.assertRaises(ProcessLookupError):
                os.killpg(process.pid, 0)
            self.assertFalse(glob.glob(f"{folder}/.drawing-*"))
            for path in glob.glob(f"{folder}/*"):
                with open(path, "rb") as file:
                    self.assertRegex(file.read()[-12:], rb"IEND....$|</svg>\n$", path)

    def test_children_end_with_a_parent_that_is_killed(self):
        process = self.start_drawing()
        process.kill()
        process.communicate(timeout=60)  # until no child has its stdout

    def test_a_missing_run_is_an_error(self):
        code, _, err = self.run_plot()
        self.assertEqual(code, 2)
        self.assertIn("records.jsonl", err)

    def test_a_comparison(self):
        run = self.write(quickstart())
        compared = self.write([typical()], name="comparison.json")
        code, names, err = self.run_plot(run, run, "--compare", compared)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(names, ["comparison"])
        self.assertEqual(self.run_plot("--compare", compared)[1], names)
        beside = self.run_plot(run, run, "--compare", compared, "-o", self.folder)
        self.assertEqual(beside[:2], (0, names))  # what is read stays
        self.assertTrue(os.path.exists(compared))
        self.assertEqual(self.run_plot("--compare", run)[0], 2)

    def test_wrong_usage(self):
        run = self.write(quickstart())
        for arguments in (["--compare", run, run], ["-o", self.folder]):
            with self.assertRaises(SystemExit) as caught:
                self.run_plot(*arguments)
            self.assertEqual(caught.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
