"""Tests of the plots, on records made up here."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np  # noqa: E402
from matplotlib.text import Text  # noqa: E402

import plot  # noqa: E402
import records as reading  # noqa: E402
import style  # noqa: E402

PRESETS = {"recompute": "recompute", "contiguous/f32": "contiguous", "paged:16/f32": "paged",
           "contiguous/f16": "fp16", "contiguous/int8:g32": "compressed"}
BYTES = {"recompute": 0, "contiguous/f32": 4096, "paged:16/f32": 4100, "contiguous/f16": 2048,
         "contiguous/int8:g32": 1088, "contiguous/int4:g32": 576}


def summary(value, width=0.0):
    return {"n": 7, "mean": value, "p50": value,
            "p50_ci95": [value * (1 - width), value * (1 + width)]}


def record(engine, prompt=0, generated=511, level="model", **changes):
    """An ok row. A cached step costs 1 ms, a recomputed one 0.1 ms a token."""
    gaps = [0.1 * (n + 1) if engine == "recompute" else 1.0 for n in range(1, generated)]
    row = {
        "status": "ok",
        "case": {"engine": engine, "preset": PRESETS.get(engine, ""), "device": "cpu",
                 "model": "seed-gqa", "level": level, "weights": "f32", "layers": 4, "heads": 8,
                 "kv_heads": 2, "head_dim": 64, "prompt_len": prompt, "gen_len": generated,
                 "seq_len": prompt + generated, "max_seq_len": 1024, "batch": 1, "threads": 2},
        "sampling": {"rounds": 3},
        "latency": {"ttft_ms": summary(1.0),
                    "attend_ms": summary(0.01 * (prompt + 1) * (BYTES[engine] + 500) / 4096, 0.05)},
        "memory": {"kv_live_bytes": BYTES[engine] * (prompt + generated),
                   "kv_reserved_bytes": BYTES[engine] * max(1024, prompt + generated),
                   "kv_bytes_per_token": BYTES[engine]},
        "samples": {"itl_ms": gaps, "itl_stride": 1},
        "env": {"cpu": "Some CPU @ 2.0 GHz", "cores": 2, "compiler": "gcc", "git": "0123456789ab",
                "started": "2026-01-31T12:00:00Z"},
    }
    row.update(changes)
    return row


def failed(engine):
    """What a worker that died leaves."""
    row = record(engine, status="failed", reason="killed by signal 9")
    row.update({"latency": {"ttft_ms": None}, "samples": {"itl_ms": None}, "memory": {}})
    return row


def quickstart():
    return [record(engine) for engine in PRESETS]


def sweep():
    engines = [engine for engine in BYTES if engine != "recompute"]
    return [record(engine, prompt, 16, "attention")
            for prompt in (1024, 4096, 16384) for engine in engines]


def texts(figure):
    axes = figure.axes[0]
    return [text.get_text() for text in figure.texts + axes.texts]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(style.plt.close, "all")

    def write(self, rows, tail=""):
        with open(os.path.join(self.folder.name, "records.jsonl"), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows) + tail)

    def run_plot(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = plot.main([self.folder.name, *arguments])
        return code, out.getvalue().split(), err.getvalue()


class TestFiles(Folder):
    def test_quickstart_gives_growth_and_bytes_as_png_and_svg(self):
        self.write(quickstart())
        code, files, _ = self.run_plot()
        self.assertEqual(code, 0)
        names = [os.path.basename(file) for file in files]
        self.assertEqual(names, ["cumulative_time.png", "cumulative_time.svg", "kv_bytes.png",
                                 "kv_bytes.svg"])
        for file in files:
            self.assertGreater(os.path.getsize(file), 5000)
            self.assertEqual(os.path.dirname(file), os.path.join(self.folder.name, "plots"))

    def test_contexts_give_curves_over_the_context(self):
        self.write(sweep())
        _, files, _ = self.run_plot()
        self.assertEqual({os.path.basename(file)[:-4] for file in files},
                         {"attention_time", "kv_bytes"})

    def test_a_picture_for_each_setting(self):
        rows = quickstart() + quickstart()
        for row in rows[5:]:
            row["case"] = dict(row["case"], kv_heads=8)
        self.write(rows)
        _, files, _ = self.run_plot()
        self.assertIn("cumulative_time-2.svg", [os.path.basename(file) for file in files])

    def test_output_folder(self):
        self.write(quickstart()[:1])
        target = os.path.join(self.folder.name, "a", "b")
        _, files, _ = self.run_plot("-o", target)
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
        self.assertEqual(len(files), 4)
        self.assertIn("records.jsonl:4: the last line is cut off", err)

    def test_damage_elsewhere_is_named(self):
        self.write(quickstart()[:1], tail="{]\n" + json.dumps(record("recompute")) + "\n")
        code, files, err = self.run_plot()
        self.assertEqual((code, files), (2, []))
        self.assertIn("records.jsonl:2: not a record", err)

    def test_nothing_to_draw_is_said(self):
        self.write([failed("recompute")])
        code, files, err = self.run_plot()
        self.assertEqual((code, files), (0, []))
        self.assertIn("none of 1 records", err)

    def test_a_missing_run_is_an_error(self):
        self.assertEqual(self.run_plot()[0], 2)


class TestRobust(Folder):
    def test_one_token_has_no_growth_but_bytes(self):
        row = record("contiguous/f32", generated=1)
        row["samples"] = {"itl_ms": [], "itl_stride": None}
        self.assertEqual(len(plot.draw([row], self.folder.name)), 2)

    def test_two_tokens_and_missing_figures(self):
        row = record("contiguous/f32", generated=2)
        row["memory"] = {"kv_live_bytes": None, "kv_reserved_bytes": 5}
        row["env"] = {"compiler": None}
        row["sampling"] = {"rounds": None}
        self.assertEqual(len(plot.draw([row], self.folder.name)), 2)

    def test_rows_with_nothing_in_them(self):
        self.assertEqual(plot.draw([{"status": "ok"}, {"status": "ok", "case": None}],
                                   self.folder.name), [])


class TestFigures(Folder):
    def test_slopes_of_recompute_and_of_a_cache(self):
        shown = texts(plot.plot_cumulative_time(quickstart()))
        self.assertIn("contiguous: slope 1.00", shown)
        recompute = next(text for text in shown if text.startswith("recompute: slope"))
        self.assertAlmostEqual(float(recompute.split()[-1]), 2.0, delta=0.05)

    def test_no_slope_behind_a_prompt(self):
        shown = texts(plot.plot_cumulative_time([record(e, prompt=128) for e in PRESETS]))
        self.assertIn("contiguous", shown)
        self.assertFalse([text for text in shown if "slope" in text])

    def test_slope_takes_the_last_half(self):
        n = np.arange(1, 1001)
        self.assertAlmostEqual(plot.slope(n, np.where(n < 400, 1e7, n**2.0)), 2.0, places=6)
        self.assertIsNone(plot.slope([5], [1]))

    def test_crossover_is_where_the_cache_stays_ahead(self):
        # Recompute: 1 + 0.1 (2 + 3 + … + n) ms, cache: n ms; equal where n² + n = 20 n − 8 or so.
        slow, fast = (plot.cumulative(record(e)) for e in ("recompute", "contiguous/f32"))
        at = plot.crossover(slow, fast)
        before, after = at - 2, at - 1  # index 0 is token 1
        self.assertLess(fast[1][after], slow[1][after])
        self.assertGreaterEqual(fast[1][before], slow[1][before])
        self.assertTrue(np.all(fast[1][after:] < slow[1][after:]))
        self.assertIsNone(plot.crossover(fast, slow))

    def test_cumulative_time_starts_with_the_first_token(self):
        tokens, seconds = plot.cumulative(record("contiguous/f32", generated=4))
        self.assertEqual(list(tokens), [1, 2, 3, 4])
        np.testing.assert_allclose(seconds, [0.001, 0.002, 0.003, 0.004])

    def test_thinned_gaps_keep_the_time_scale(self):
        row = record("contiguous/f32", generated=10)
        row["samples"] = {"itl_ms": [1.0, 1.0, 1.0], "itl_stride": 4}  # 9 gaps
        tokens, seconds = plot.cumulative(row)
        self.assertEqual(list(tokens), [1, 5, 9, 10])
        self.assertAlmostEqual(seconds[-1], 0.010)

    def test_footer_names_machine_rounds_date_and_the_caveat(self):
        shown = " ".join(texts(plot.plot_kv_bytes(quickstart())))
        for part in ("Some CPU @ 2.0 GHz", "2 cores", "n = 3 rounds", "2026-01-31", style.CAVEAT):
            self.assertIn(part, shown)

    def test_the_caveat_is_for_cpus(self):
        rows = quickstart()
        for row in rows:
            row["case"] = dict(row["case"], device="cuda")
        self.assertNotIn(style.CAVEAT, texts(plot.plot_kv_bytes(rows)))

    def test_labels_do_not_overlap_and_stay_inside(self):
        figure = plot.plot_cumulative_time(quickstart())
        axes = figure.axes[0]
        figure.canvas.draw()
        # Of the text alone: an annotation's own extent has its leader line in it.
        boxes = sorted((Text.get_window_extent(text) for text in axes.texts
                        if "slope" in text.get_text()), key=lambda box: box.y0)
        self.assertEqual(len(boxes), 5)
        for below, above in zip(boxes, boxes[1:]):
            self.assertGreaterEqual(above.y0 + 1, below.y1)
        frame = axes.get_window_extent()
        self.assertTrue(all(frame.y0 - 3 <= box.y0 and box.y1 <= frame.y1 + 3 for box in boxes))


class TestStyle(unittest.TestCase):
    def test_spread_keeps_apart_around_the_mean_and_inside(self):
        np.testing.assert_allclose(style.spread([0.2, 0.5, 0.5], 0.1), [0.2, 0.45, 0.55])
        np.testing.assert_allclose(style.spread([0.99, 1.0], 0.1), [0.85, 0.95])
        np.testing.assert_allclose(style.spread([0.0, 0.0], 0.1), [0.05, 0.15])
        self.assertEqual(style.spread([], 0.1), [])

    def test_engines_differ_and_do_not_change(self):
        looks = [tuple(sorted(style.engine_style(engine).items())) for engine in BYTES]
        self.assertEqual(len(set(looks)), len(looks))
        self.assertEqual(style.engine_style("contiguous/f16"), style.engine_style("contiguous/f16"))

    def test_parameters_of_a_codec_keep_its_colour(self):
        self.assertEqual(style.engine_style("contiguous/int8:g64")["color"],
                         style.engine_style("paged:16/int8:g32/grow:2")["color"])
        self.assertIn("color", style.engine_style("contiguous/k=int8:g64,v=int4:g32"))
        self.assertIn("color", style.engine_style(""))


class TestReading(unittest.TestCase):
    def test_get_takes_null_for_missing(self):
        self.assertEqual(reading.get({"a": {"b": None}}, "a.b", 7), 7)
        self.assertEqual(reading.get({"a": {"b": 0}}, "a.b", 7), 0)
        self.assertIsNone(reading.get({"a": 1}, "a.b"))

    def test_a_gate_does_not_part_an_engine_from_its_group(self):
        rows = quickstart()
        rows[3]["case"]["gate"] = {"kld_mean_max": 1e-4}
        rows[4]["case"]["gate"] = {"kld_mean_max": 1e-2}
        self.assertEqual([len(group) for group in reading.group(rows)], [5])
        rows[0]["case"]["kv_heads"] = 8
        self.assertEqual([len(group) for group in reading.group(rows)], [1, 4])


if __name__ == "__main__":
    unittest.main()
