"""Growth of a run with its tokens, and of a step with its context."""

import unittest

import numpy as np

import growth
import style
from testing import (CACHES, LONG, PlotTest, drawn, over_contexts, quickstart, record, summary,
                     texts)


class TestCumulativeTime(PlotTest):
    def test_a_curve_for_each_engine(self):
        figure = growth.plot_cumulative_time(quickstart())
        self.assertEqual(len(drawn(figure.axes[0])), 5)
        self.check_picture(figure, height=5.4)

    def test_slopes_of_recompute_and_of_a_cache(self):
        shown = texts(growth.plot_cumulative_time(quickstart()))
        self.assertIn("contiguous: 0.511 s, slope 1.00", shown)
        recompute = next(text for text in shown if text.startswith("recompute:"))
        self.assertAlmostEqual(float(recompute.split()[-1]), 2.0, delta=0.05)

    def test_no_slope_behind_a_prompt_or_of_few_tokens(self):
        for rows in ([record(engine, prompt=128) for engine in CACHES],
                     [record(engine, generated=32) for engine in CACHES]):
            shown = texts(growth.plot_cumulative_time(rows))
            self.assertFalse([text for text in shown if ", slope 1" in text])

    def test_slope_takes_the_last_half(self):
        n = np.arange(1, 1001)
        self.assertAlmostEqual(growth.growth(n, np.where(n < 400, 1e7, n**2.0)), 2.0, places=6)

    def test_crossover_is_where_the_cache_stays_ahead(self):
        # Recompute: 1 + 0.1 (2 + 3 + … + n) ms, cache: n ms; equal where n² + n = 20 n − 8 or so.
        slow, fast = (growth.cumulative(record(e)) for e in ("recompute", "contiguous/f32"))
        at = growth.crossover(slow, fast)
        before, after = at - 2, at - 1  # index 0 is token 1
        self.assertLess(fast[1][after], slow[1][after])
        self.assertGreaterEqual(fast[1][before], slow[1][before])
        self.assertTrue(np.all(fast[1][after:] < slow[1][after:]))
        self.assertIsNone(growth.crossover(fast, slow))
        shown = texts(growth.plot_cumulative_time(quickstart()))
        ahead = f"contiguous is ahead of recompute\nfrom token {at} on"
        self.assertIn(ahead + ", in 3 rounds", shown)
        sure = [record(e, rounds=6) for e in ("recompute", "contiguous/f32")]
        self.assertIn(ahead, texts(growth.plot_cumulative_time(sure)))

    def test_no_crossover(self):
        rows = [record("recompute"), record("contiguous/f32", ms=1000.0)]
        self.assertIn("no cache overtakes recompute", texts(growth.plot_cumulative_time(rows)))

    def test_starts_with_the_first_token(self):
        tokens, seconds = growth.cumulative(record("contiguous/f32", generated=4))
        self.assertEqual(list(tokens), [1, 2, 3, 4])
        np.testing.assert_allclose(seconds, [0.001, 0.002, 0.003, 0.004])

    def test_thinned_gaps_keep_the_time_scale(self):
        row = record("contiguous/f32", generated=10)
        row["samples"] = {"itl_ms": [1.0, 1.0, 1.0], "itl_stride": 4}  # 9 gaps
        tokens, seconds = growth.cumulative(row)
        self.assertEqual(list(tokens), [1, 5, 9, 10])
        self.assertAlmostEqual(seconds[-1], 0.010)

    def test_one_token_has_no_growth_and_two_have(self):
        self.assertIsNone(growth.plot_cumulative_time([record("contiguous/f32", generated=1)]))
        self.check_picture(growth.plot_cumulative_time([record("contiguous/f32", generated=2)]))

    def test_interval_of_the_whole_run(self):
        row = record("contiguous/f32")
        self.assertFalse(growth.plot_cumulative_time([row]).axes[0].collections)
        row["latency"]["e2e_ms"] = summary(511.0, 0.1)
        bar, = growth.plot_cumulative_time([row]).axes[0].collections
        np.testing.assert_allclose(bar.get_segments()[0][:, 1], [0.4599, 0.5621])

    def test_tokens_are_those_of_each_sequence(self):
        figure = growth.plot_cumulative_time([record("contiguous/f32", batch=4)])
        self.assertEqual(figure.axes[0].get_xlabel(), "generated tokens n of each sequence")
        self.assertIn("Time to generate n tokens of each sequence: seed-gqa", texts(figure))
        self.check_picture(figure)

    def test_robust(self):
        self.check_robust(growth.plot_cumulative_time, quickstart())


class TestAttentionTime(PlotTest):
    def test_a_curve_for_each_engine(self):
        figure = growth.plot_attention_time(over_contexts())
        self.assertEqual(len(drawn(figure.axes[0])), len(CACHES))
        self.check_picture(figure, height=5.4)

    def test_slopes_with_intervals_from_three_contexts_on(self):
        def row(prompt):  # 1 ns for each position that a step sees
            made = record("contiguous/f16", prompt, 16, "attention")
            made["latency"]["attend_ms"] = summary(1e-6 * (prompt + 8), 0.05)
            return made
        rows = [row(prompt) for prompt in (1024, 4096, 16384)]
        self.assertIn("fp16: 0.0164 ms, slope 1.00 ± 0.00", texts(growth.plot_attention_time(rows)))
        self.assertIn("fp16: 0.00410 ms", texts(growth.plot_attention_time(rows[:2])))

    def test_time_of_a_layer_where_layers_follow_the_context(self):
        rows = [record("contiguous/f16", prompt, 16, "attention", layers=layers)
                for prompt, layers in ((1024, 8), (4096, 2))]
        for row in rows:
            row["latency"]["attend_ms"] = summary(8.0)
        axes = growth.plot_attention_time(rows).axes[0]
        self.assertEqual(list(drawn(axes)[0].get_ydata()), [1.0, 4.0])
        self.assertIn("a layer", axes.get_ylabel())

    def test_whole_steps_have_another_picture(self):
        self.assertIsNone(growth.plot_attention_time(over_contexts(level="model")))

    def test_one_context_is_none(self):
        self.assertIsNone(growth.plot_attention_time(over_contexts(prompts=[1024])))

    def test_a_long_list_of_engines(self):
        figure = growth.plot_attention_time(over_contexts(LONG))
        self.assertEqual(len(drawn(figure.axes[0])), len(LONG))
        self.check_picture(figure)

    def test_robust(self):
        self.check_robust(growth.plot_attention_time, over_contexts())


class TestStepTime(PlotTest):
    def rows(self, prompts=(1024, 4096, 16384), weights=8 << 20):
        rows = over_contexts(level="model", prompts=prompts)
        for row in rows:
            row["work"]["weight_bytes_read_per_step"] = weights
        return rows

    def test_a_curve_for_each_engine(self):
        figure = growth.plot_step_time(self.rows())
        self.assertEqual(len(drawn(figure.axes[0])), len(CACHES))
        self.check_picture(figure, height=5.4)

    def test_weights_dominate_below(self):
        row = record("contiguous/f16", 1016, 16)
        row["work"] = {"kv_bytes_read_per_step": 1024 * 100,
                       "weight_bytes_read_per_step": 5000 * 100}
        self.assertEqual(growth.weights_dominate_below(row), 5000)
        self.assertIsNone(growth.weights_dominate_below(record("recompute")))
        row["work"]["kv_bytes_read_per_step"] = None
        self.assertIsNone(growth.weights_dominate_below(row))

    def test_marked_only_within_the_axis(self):
        def said(**rows):
            return next(t for t in texts(growth.plot_step_time(self.rows(**rows)))
                        if "dominate" in t)
        # 4,096 bytes a position in f32: as many as 8 MiB of weights at 2,048, of 1 MiB at 256.
        self.assertIn("≈ 2.0k (contiguous/f32, paged:16/f32)", said())
        self.assertIn("weights dominate a step's bytes at every", said(weights=8 << 30))
        self.assertIn("the cache dominates", said(weights=1 << 10))

    def test_attention_alone_has_another_picture(self):
        self.assertIsNone(growth.plot_step_time(over_contexts()))

    def test_without_bytes_nothing_is_marked(self):
        rows = self.rows()
        for row in rows:
            row["work"] = None
        self.assertFalse([t for t in texts(growth.plot_step_time(rows)) if "dominate" in t])

    def test_robust(self):
        self.check_robust(growth.plot_step_time, self.rows())

    def test_the_footer_is_there(self):
        self.assertIn(style.CAVEAT, texts(growth.plot_step_time(self.rows())))


if __name__ == "__main__":
    unittest.main()
