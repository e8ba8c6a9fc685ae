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
        self.assertIn("f32: 0.511 s, slope 1.00", shown)
        recompute = next(text for text in shown if text.startswith("recompute:"))
        self.assertAlmostEqual(float(recompute.split()[-1]), 2.0, delta=0.05)

    def test_no_slope_behind_a_prompt(self):
        rows = [record(engine, prompt=1280) for engine in CACHES]
        shown = texts(growth.plot_cumulative_time(rows))
        self.assertFalse([text for text in shown if ", slope 1" in text])
        self.assertTrue(shown[1].startswith("after a prompt of 1,280 tokens"), shown)

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
        ahead = "f32 is ahead of recompute\nfrom "
        self.assertIn(f"{ahead}about token {at} on, in 3 rounds", shown)
        sure = [record(e, rounds=6) for e in ("recompute", "contiguous/f32")]
        self.assertIn(f"{ahead}token {at} on", texts(growth.plot_cumulative_time(sure)))

    def test_of_the_first_token_all_do_the_same_work(self):
        slow, fast = (np.array([1, 2, 3]), np.array([2, 4, 8])), (np.array([1, 2, 3]), np.ones(3))
        self.assertEqual(growth.crossover(slow, fast), 2)

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

    def test_few_tokens_are_no_picture(self):
        for few in (1, 63):
            self.assertIsNone(growth.plot_cumulative_time([record("contiguous/f32",
                                                                  generated=few)]))
        self.check_picture(growth.plot_cumulative_time([record("contiguous/f32", generated=64)]))

    def test_interval_of_the_whole_run(self):
        row = record("contiguous/f32")
        figure = growth.plot_cumulative_time([row])
        self.assertFalse(figure.axes[0].collections)
        self.assertNotIn("interval", " ".join(texts(figure)))
        row["latency"]["e2e_ms"] = summary(511.0, 0.1)
        figure = growth.plot_cumulative_time([row])
        self.assertIn("at its end the 95 % interval", " ".join(texts(figure)))
        bar, = figure.axes[0].collections
        np.testing.assert_allclose(bar.get_segments()[0][:, 1], [0.4599, 0.5621])

    def test_tokens_are_those_of_each_sequence(self):
        figure = growth.plot_cumulative_time([record("contiguous/f32", batch=4)])
        self.assertEqual(figure.axes[0].get_xlabel(), "generated tokens n of each sequence")
        self.assertIn("Time to generate n tokens of each sequence: seed-gqa 8:2, whole steps",
                      texts(figure))
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
            made["latency"]["tpot_ms"] = summary(1e-6 * (prompt + 8), 0.05)
            return made
        rows = [row(prompt) for prompt in (1024, 4096, 16384)]
        self.assertIn("f16: 0.0164 ms, slope 1.00 ± 0.00", texts(growth.plot_attention_time(rows)))
        self.assertIn("f16: 0.00410 ms", texts(growth.plot_attention_time(rows[:2])))

    def test_a_vague_slope_is_not_told(self):
        rows = over_contexts(["contiguous/f16"])
        for row, ms in zip(rows, (1, 100, 2)):
            row["latency"]["tpot_ms"] = summary(ms)
        self.assertIn("f16: 2.00 ms", texts(growth.plot_attention_time(rows)))

    def test_the_interval_is_that_of_rounds(self):
        rows = over_contexts(["contiguous/f16"])
        for row in rows:
            row["latency"]["tpot_ms"] = summary(1.0, 0.4)
            row["latency"]["attend_ms"] = summary(1.0, 0.01, 10000)
        bars, = growth.plot_attention_time(rows).axes[0].collections
        for bar in bars.get_segments():
            np.testing.assert_allclose(bar[:, 1], [0.6, 1.4])

    def test_time_of_a_layer_where_layers_follow_the_context(self):
        rows = [record("contiguous/f16", prompt, 16, "attention", layers=layers)
                for prompt, layers in ((1024, 8), (4096, 2))]
        for row in rows:
            row["latency"]["tpot_ms"] = summary(8.0)
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

    def test_weights_are_told_of_every_engine(self):
        def said(**rows):
            return next(t for t in texts(growth.plot_step_time(self.rows(**rows)))
                        if "more bytes of weights" in t).split("\n")[1:]
        # 4,096 bytes a position in f32: as many as 8 MiB of weights at 2,048, of 16 MiB at 4,096.
        self.assertEqual(said(), ["below ≈ 2,000: f32, paged:16/f32", "below ≈ 4,100: f16",
                                  "below ≈ 7,700: int8:g32", "below ≈ 15,000: int4:g32"])
        self.assertEqual(said(weights=32 << 20), [
            "below ≈ 8,200: f32, paged:16/f32", "below ≈ 16,000: f16",
            "at every context here: int8:g32, int4:g32"])
        self.assertEqual(said(weights=1 << 10), [
            "at no context here: f32, paged:16/f32, f16, int8:g32, int4:g32"])

    def test_attention_alone_has_another_picture(self):
        self.assertIsNone(growth.plot_step_time(over_contexts()))

    def test_without_bytes_nothing_is_marked(self):
        rows = self.rows()
        for row in rows:
            row["work"] = None
        self.assertFalse([t for t in texts(growth.plot_step_time(rows)) if "weights than" in t])

    def test_robust(self):
        self.check_robust(growth.plot_step_time, self.rows())

    def test_the_footer_is_there(self):
        self.assertIn(style.CAVEAT, texts(growth.plot_step_time(self.rows())))


if __name__ == "__main__":
    unittest.main()
