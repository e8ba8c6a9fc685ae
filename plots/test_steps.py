"""Phases of a step, and the part of the ceiling."""

import unittest

import steps
from testing import (CACHES, LONG, PlotTest, drawn, over_contexts, quickstart, record, texts)


def bars(figure):
    return [patch for patch in figure.axes[0].patches if patch.get_width() > 0]


class TestSteps(PlotTest):
    def test_bars_are_shares_of_the_step(self):
        figure = steps.plot_steps([record("contiguous/f16")])
        widths = [bar.get_width() for bar in bars(figure)]
        self.assertEqual([round(width) for width in widths], [20, 10, 30, 10, 30])
        self.assertAlmostEqual(sum(widths), 100)
        self.assertIn("1.00 ms", texts(figure))

    def test_a_bar_for_each_engine_and_context(self):
        figure = steps.plot_steps(over_contexts(level="model"))
        self.assertEqual(len({bar.get_y() for bar in bars(figure)}), 3 * len(CACHES))
        for heading in ("context 1,024", "context 4,096", "context 16,384"):
            self.assertIn(heading, texts(figure))
        self.check_picture(figure)

    def test_one_context_has_no_heading(self):
        figure = steps.plot_steps(quickstart())
        self.assertFalse([text for text in texts(figure) if text.startswith("context")])
        self.check_picture(figure, height=3.4)

    def test_of_many_contexts_some_are_shown(self):
        prompts = [512 * n for n in range(1, 15)]
        figure = steps.plot_steps(over_contexts(level="model", prompts=prompts))
        shown = [text for text in texts(figure) if text.startswith("context")]
        self.assertEqual((len(shown), shown[-1]), (7, "context 7,168"))
        self.check_picture(figure)

    def test_a_long_list(self):
        self.check_picture(steps.plot_steps(over_contexts(LONG, level="model")))

    def test_attention_alone_has_no_phases(self):
        self.assertIsNone(steps.plot_steps(over_contexts()))

    def test_a_profile_without_attention_is_none(self):
        row = record("contiguous/f16")
        row["profile"] = {"attend_ms": None, "ffn_ms": 1.0}
        self.assertIsNone(steps.plot_steps([row]))

    def test_robust(self):
        self.check_robust(steps.plot_steps, quickstart())


class TestCeiling(PlotTest):
    def test_bars_with_intervals(self):
        figure = steps.plot_ceiling(over_contexts(prompts=[1024]))
        self.assertEqual([bar.get_width() for bar in bars(figure)], [50] * len(CACHES))
        intervals = [list(line.get_xdata()) for line in figure.axes[0].lines
                     if line.get_marker() == "|"]
        self.assertEqual(len(intervals), len(CACHES))
        for low, high in intervals:
            self.assertAlmostEqual(low, 45)
            self.assertAlmostEqual(high, 55)
        self.assertIn("50 % of 40.0 GB/s", texts(figure))
        self.check_picture(figure, height=3.4)

    def test_without_intervals(self):
        row = record("contiguous/f16")
        row["work"]["bandwidth_fraction_ci95"] = None
        figure = steps.plot_ceiling([row])
        self.assertFalse([line for line in figure.axes[0].lines if line.get_marker() == "|"])
        self.assertIn("fewer than six", " ".join(texts(figure)))

    def test_recompute_is_measured_by_its_arithmetic(self):
        row = record("recompute")
        row["work"].update({"flop_fraction": 0.25, "fma_gflop_per_s": 500.0})
        shown = texts(steps.plot_ceiling([row]))
        self.assertIn("25 % of 500 GFLOP/s", shown)

    def test_above_the_ceiling_stays_inside(self):
        row = record("contiguous/f16")
        row["work"].update({"bandwidth_fraction": 1.4, "bandwidth_fraction_ci95": [1.3, 1.6]})
        figure = steps.plot_ceiling([row])
        self.assertGreater(figure.axes[0].get_xlim()[1], 160)
        self.assertIn("above 100 %: the data fit into a cache, or the measurement of the ceiling",
                      " ".join(texts(figure)))
        self.assertNotIn("above 100 %", " ".join(texts(steps.plot_ceiling(quickstart()))))
        self.check_picture(figure)

    def test_robust(self):
        self.check_robust(steps.plot_ceiling, over_contexts())
        self.assertEqual(drawn(steps.plot_ceiling(over_contexts()).axes[0]), [])


if __name__ == "__main__":
    unittest.main()
