"""The picture of a comparison."""

import json
import os
import tempfile
import unittest

import comparison
import style
from records import BadFile
from testing import PlotTest, record, summary, texts


def metric(verdict, change, path="latency.tpot_ms.p50", threshold=0.1, **more):
    return {"metric": path, "title": path.split(".")[1], "unit": "ms", "verdict": verdict,
            "base": 1.0, "new": None if change is None else 1 + change, "change": change,
            "change_interval": None, "threshold": threshold, "note": "", **more}


def case(engine, *metrics, **more):
    return {"case_id": engine, "label": f"{engine} seed-gqa model at 0+511, 2 threads",
            "base_status": "ok", "status": "ok", "reason": "", "broke": False,
            "metrics": list(metrics), "case": {"engine": engine}, **more}


def compared(*cases, **more):
    return {"schema": "kvmark-compare/1", "base": "runs/a (commit 1)", "new": "runs/b (commit 2)",
            "verdict": "regression: 1 worse; 4 cases", "one_sided": [], "cases": list(cases),
            **more}


def typical():
    return compared(
        case("contiguous/f32", metric("worse", 0.31)),
        case("contiguous/f16", metric("same", 0.02), metric("shown", 0.5, "latency.itl_ms.p50")),
        case("paged:16/f32", metric("undecided", 0.2, threshold=0.3)),
        case("contiguous/int8:g32", metric("better", -0.2),
             metric("worse", 0.05, "memory.kv_live_bytes", 0.0),
             metric("same", 0.0, "memory.kv_peak_bytes", 0.0)),
        case("recompute", broke=True, status="failed", reason="killed"))


def dots(figure):
    """(ratio, colour) of each."""
    return [(float(line.get_xdata()[0]), line.get_color()) for line in figure.axes[0].lines
            if line.get_marker() not in ("None", "") and len(line.get_xdata()) == 1]


class TestComparison(PlotTest):
    def test_a_line_for_each_case_and_other_figures_that_changed(self):
        figure = comparison.plot_comparison(typical())
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        self.assertEqual(labels, ["f32", "f16", "paged:16/f32", "int8:g32",
                                  "int8:g32: kv_live_bytes", "recompute"])
        self.assertEqual(dots(figure), [(1.31, style.RED), (1.02, "#777777"),
                                        (1.2, style.ORANGE), (0.8, style.BLUE),
                                        (1.05, style.RED)])
        for text in ("+31 % worse", "−20 % better", "ok → failed",
                     "seed-gqa model at 0+511, 2 threads", "Regression: 1 worse; 4 cases"):
            self.assertIn(text, texts(figure))
        self.check_picture(figure, height=3.9)

    def test_verdicts_are_those_of_the_file(self):
        # Five times as slow, and yet `same`: the picture does not judge.
        figure = comparison.plot_comparison(compared(case("contiguous/f32", metric("same", 4.0))))
        self.assertEqual(dots(figure), [(5.0, "#777777")])

    def test_threshold_bands(self):
        bands = comparison.plot_comparison(typical()).axes[0].patches
        ends = [(round(band.get_x(), 3), round(band.get_x() + band.get_width(), 3))
                for band in bands]
        self.assertEqual(ends[:3], [(0.909, 1.1), (0.909, 1.1), (0.769, 1.3)])
        self.assertEqual(len(ends), 4)  # bytes have none

    def test_intervals_of_the_comparison(self):
        one = metric("worse", 0.1, change_interval=[0.05, 0.15])
        self.assertEqual(comparison.bounds_of(one, None, None), [1.05, 1.15])

    def test_intervals_of_both_runs_overlap_where_the_ratio_may_be_1(self):
        base, new = record("contiguous/f32"), record("contiguous/f32")
        base["latency"]["tpot_ms"] = summary(1.0, 0.1)
        new["latency"]["tpot_ms"] = summary(2.0, 0.1)
        low, high = comparison.bounds_of(metric("worse", 1.0), base, new)
        self.assertAlmostEqual(low, 1.8 / 1.1)
        self.assertAlmostEqual(high, 2.2 / 0.9)
        new["latency"]["tpot_ms"]["p50_ci95"] = None
        self.assertIsNone(comparison.bounds_of(metric("worse", 1.0), base, new))

    def test_runs_give_intervals_machine_and_date(self):
        rows = [record("contiguous/f32", rounds=7)]
        rows[0]["case_id"] = "contiguous/f32"
        figure = comparison.plot_comparison(typical(), rows, rows)
        self.assertIn("+31 % (−9.5 % to +11 %) worse", texts(figure))
        self.assertIn("Some CPU", " ".join(texts(figure)))
        self.check_picture(figure)

    def test_the_footer_names_both_machines(self):
        base, new = record("contiguous/f32"), record("contiguous/f32")
        base["env"] = dict(base["env"], simd="AVX2", git="0123")
        new["env"] = dict(new["env"], simd="AVX3", git="4567", cpu="Another CPU")
        shown = " ".join(texts(comparison.plot_comparison(typical(), [base], [new])))
        for part in ("Some CPU @ 2.0 GHz → Another CPU", "AVX2 → AVX3", "kvmark 0123 → 4567",
                     "· 2 cores ·"):
            self.assertIn(part, shown.replace("\n", " "))

    def test_a_change_from_nothing_has_words_but_no_dot(self):
        figure = comparison.plot_comparison(compared(case("contiguous/f32", metric(
            "worse", None, "accuracy.loss.attend_rel_rms", base=0.0, new=0.02))))
        self.assertEqual(dots(figure), [])
        self.assertIn("0 → 0.0200 worse", texts(figure))

    def test_far_out_is_drawn_at_the_edge(self):
        figure = comparison.plot_comparison(compared(case("contiguous/f32", metric("worse", 99.0))))
        self.assertLessEqual(dots(figure)[0][0], comparison.WIDEST)
        self.check_picture(figure)

    def test_many_cases_keep_the_gravest(self):
        cases = [case(f"paged:{n}/f32", metric("same", 0.0)) for n in range(60)]
        cases.append(case("contiguous/f32", metric("worse", 0.3)))
        figure = comparison.plot_comparison(compared(*cases))
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        self.assertEqual((len(labels), labels[-1]), (36, "f32"))
        self.assertIn("25 more lines", " ".join(texts(figure)))
        self.check_picture(figure)

    def test_cases_on_one_side_are_counted(self):
        one = compared(case("contiguous/f32", metric("same", 0.0)), one_sided=[{"side": "new"}])
        self.assertIn("cases on one side only: 1", " ".join(texts(
            comparison.plot_comparison(one))))

    def test_nothing_judged_is_none(self):
        self.assertIsNone(comparison.plot_comparison(compared()))
        self.assertIsNone(comparison.plot_comparison(compared(case("contiguous/f32", metric(
            "shown", 0.1)))))
        self.assertIsNone(comparison.plot_comparison(compared({})))


class TestFile(unittest.TestCase):
    def test_anything_else_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "comparison.json")
            for content in ("", "[]", "{}", json.dumps({"schema": "kvmark-compare/1"})):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
                with self.assertRaisesRegex(BadFile, "comparison.json: "):
                    comparison.read_comparison(path)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(typical(), file)
            self.assertEqual(comparison.read_comparison(path), typical())


if __name__ == "__main__":
    unittest.main()
