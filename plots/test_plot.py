"""The command: what it draws of a run, and what it says."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from unittest import mock

import plot
from test_comparison import typical
from test_heat_map import sweep
from testing import failed, over_contexts, quickstart, record


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
        return code, out.getvalue().split(), err.getvalue()

    def names(self, files):
        return [os.path.basename(file) for file in files]

    def test_quickstart(self):
        self.write(quickstart())
        code, files, err = self.run_plot()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.names(files), [
            f"{name}.{kind}" for name in ("cumulative_time", "kv_bytes", "loss", "steps", "ceiling",
                                          "latency", "memory_timeline") for kind in ("png", "svg")])
        for file in files:
            self.assertGreater(os.path.getsize(file), 5000)
            self.assertEqual(os.path.dirname(file), os.path.join(self.folder, "plots"))

    def test_contexts_give_curves_over_the_context(self):
        self.write(over_contexts())
        _, files, _ = self.run_plot()
        self.assertEqual({name[:-4] for name in self.names(files)}, {
            "attention_time", "kv_bytes", "loss", "break_even", "steps", "ceiling", "latency",
            "memory_timeline"})

    def test_a_sweep_of_heads_has_a_heat_map(self):
        self.write(sweep())
        names = self.names(self.run_plot()[1])
        self.assertIn("heat_map.svg", names)
        self.assertIn("step_time-1.svg", names)
        self.assertIn("step_time-2.svg", names)

    def test_a_setting_has_the_same_number_in_all_plots(self):
        self.write(quickstart() + over_contexts())
        names = self.names(self.run_plot()[1])
        self.assertIn("cumulative_time-1.png", names)
        self.assertIn("attention_time-2.png", names)
        self.assertIn("loss-2.png", names)

    def test_settings_beyond_the_limit_are_said(self):
        self.write([record("contiguous/f16", seed=seed) for seed in range(3)])
        with mock.patch.object(plot, "MOST_PICTURES", 2):
            _, files, err = self.run_plot()
            self.assertIn("kv_bytes-2.png", self.names(files))
            self.assertNotIn("kv_bytes-3.png", self.names(files))
            self.assertIn("3 settings", err)
            _, files, err = self.run_plot(self.folder, "--all")
        self.assertIn("kv_bytes-3.png", self.names(files))
        self.assertEqual(err, "")

    def test_several_runs_are_drawn_together(self):
        two = [self.write([row], name=f"{i}.jsonl") for i, row in enumerate(quickstart()[:2])]
        _, files, _ = self.run_plot(*two)
        self.assertIn("kv_bytes.png", self.names(files))

    def test_output_folder(self):
        self.write(quickstart()[:1])
        target = os.path.join(self.folder, "a", "b")
        _, files, _ = self.run_plot(self.folder, "-o", target)
        self.assertTrue(files and all(file.startswith(target) for file in files))

    def test_svg_is_the_same_every_time(self):
        self.write(quickstart()[:2])
        pictures = []
        for _ in range(2):
            _, files, _ = self.run_plot()
            svg = next(file for file in files if file.endswith("cumulative_time.svg"))
            with open(svg, encoding="utf-8") as file:
                pictures.append(file.read())
        self.assertEqual(*pictures)

    def test_failed_rows_and_a_torn_line_do_not_stop_the_others(self):
        self.write([failed("recompute")] + quickstart()[1:3], tail='{"status": "o')
        code, files, err = self.run_plot()
        self.assertEqual(code, 0)
        self.assertIn("cumulative_time.png", self.names(files))
        self.assertIn("records.jsonl:4: the last line is cut off", err)

    def test_damage_elsewhere_is_named(self):
        self.write(quickstart()[:1], tail="{]\n" + json.dumps(record("recompute")) + "\n")
        code, files, err = self.run_plot()
        self.assertEqual((code, files), (2, []))
        self.assertIn("records.jsonl:2: not a record", err)

    def test_nothing_to_draw_is_said(self):
        self.write([failed("recompute"), {"status": "ok"}, {"status": "ok", "case": None}])
        code, files, err = self.run_plot()
        self.assertEqual((code, files), (0, []))
        self.assertIn("nothing in it can be drawn", err)

    def test_a_missing_run_is_an_error(self):
        code, _, err = self.run_plot()
        self.assertEqual(code, 2)
        self.assertIn("records.jsonl", err)

    def test_a_comparison(self):
        run = self.write(quickstart())
        compared = self.write([typical()], name="comparison.json")
        code, files, err = self.run_plot(run, run, "--compare", compared)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.names(files), ["comparison.png", "comparison.svg"])
        self.assertEqual(self.names(self.run_plot("--compare", compared)[1]), self.names(files))
        self.assertEqual(self.run_plot("--compare", run)[0], 2)

    def test_wrong_usage(self):
        run = self.write(quickstart())
        for arguments in (["--compare", run, run], ["-o", self.folder]):
            with self.assertRaises(SystemExit) as caught:
                self.run_plot(*arguments)
            self.assertEqual(caught.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
