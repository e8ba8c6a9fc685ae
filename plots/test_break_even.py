"""Speed against f16, and where it crosses 1."""

import unittest

import break_even
from testing import CACHES, LONG, PlotTest, drawn, over_contexts, record, texts


def rows_of(ratios, rounds=6, engine="contiguous/int8:g32"):
    """f16 and another engine, `ratios` times as fast at contexts of 1k, 4k, 16k, …"""
    rows = []
    for i, ratio in enumerate(ratios):
        rows += [record(name, 1024 * 4**i, 16, "attention", ms, rounds)
                 for name, ms in (("contiguous/f16", 1.0), (engine, 1 / ratio))]
    return rows


class TestBreakEven(PlotTest):
    def test_a_curve_for_each_other_engine(self):
        figure = break_even.plot_break_even(over_contexts(rounds=6))
        self.assertEqual(len(drawn(figure.axes[0])), len(CACHES) - 1)
        self.check_picture(figure, height=5.4)

    def test_speed_is_relative_to_f16(self):
        figure = break_even.plot_break_even(rows_of([0.5, 2]))
        self.assertEqual(list(drawn(figure.axes[0])[0].get_ydata()), [0.5, 2])

    def test_the_crossing_is_marked_where_intervals_decide(self):
        # 0.5 at 1k and 2 at 4k: in the middle on a logarithmic axis, at 2k.
        self.assertIn("int8:g32: 2.00×, ahead from ≈ 2,000",
                      texts(break_even.plot_break_even(rows_of([0.5, 2]))))
        self.assertIn("int8:g32: 0.500×, behind from ≈ 2,000",
                      texts(break_even.plot_break_even(rows_of([2, 0.5]))))

    def test_the_bar_is_explained_where_there_is_one(self):
        for ratios, is_explained in (([0.5, 2], True), ([1.5, 2], False)):
            shown = " ".join(texts(break_even.plot_break_even(rows_of(ratios))))
            self.assertEqual("a bar on the line of 1" in shown, is_explained)

    def test_no_crossing_without_intervals_or_on_one_side(self):
        for rows in (rows_of([0.5, 2], rounds=5), rows_of([1.5, 2])):
            self.assertFalse([text for text in texts(break_even.plot_break_even(rows))
                              if "ahead from" in text])
        self.assertIn("no crossing is decided",
                      " ".join(texts(break_even.plot_break_even(rows_of([0.5, 2], rounds=5)))))

    def test_what_is_not_decided_lies_between(self):
        points = [(1024, 0.5, 0.4, 0.6), (2048, 0.9, 0.8, 1.1), (4096, 1.1, 0.9, 1.2),
                  (8192, 2, 1.9, 2.1)]
        at, before, after, ahead = break_even.crossing_of(points)
        self.assertEqual((before, after, ahead), (1024, 8192, True))
        self.assertTrue(2048 < at < 4096)
        self.assertIsNone(break_even.crossing_of(points[:3]))
        self.assertIsNone(break_even.crossing_of([(1, 0.5, None, None), (2, 2, None, None)]))

    def test_as_fast_is_neither_side(self):
        before, near = (1024, 0.5, 0.4, 0.6), (4096, 1.005, 1.001, 1.009)
        self.assertIsNone(break_even.crossing_of([before, near]))
        nearly = (1024, 0.995, 0.991, 0.999)
        self.assertIsNone(break_even.crossing_of([nearly, (4096, 2, 1.9, 2.1)]))
        at, *between = break_even.crossing_of([before, near, (8192, 1.03, 1.02, 1.04)])
        self.assertEqual(between, [1024, 8192, True])
        self.assertTrue(1024 < at < 4096)
        # Wider than that, it is ahead, if only just.
        self.assertEqual(break_even.crossing_of([before, (4096, 1.005, 1.001, 1.02)])[2], 4096)

    def test_the_last_crossing_counts(self):
        points = [(1, 2, 1.9, 2.1), (4, 0.5, 0.4, 0.6), (16, 2, 1.9, 2.1)]
        self.assertAlmostEqual(break_even.crossing_of(points)[0], 8)

    def test_needs_f16_and_two_contexts(self):
        self.assertIsNone(break_even.plot_break_even(over_contexts(["contiguous/f32"])))
        self.assertIsNone(break_even.plot_break_even(rows_of([2])))
        self.assertIsNone(break_even.plot_break_even(over_contexts(["contiguous/f16"])))

    def test_pages_of_f16_where_there_is_no_other(self):
        rows = over_contexts(["paged:16/f16", "paged:16/f32"])
        self.assertIn("paged:16/f16", texts(break_even.plot_break_even(rows)))

    def test_recompute_is_left_out(self):
        rows = over_contexts(["contiguous/f16", "recompute", "contiguous/f32"])
        self.assertEqual(len(drawn(break_even.plot_break_even(rows).axes[0])), 1)

    def test_generic_kernels_are_left_out_and_named(self):
        rows = over_contexts(["contiguous/f16", "contiguous/f32", "contiguous/int8:g32"])
        for row in rows[2::3]:
            row["kernel"] = "generic"
        figure = break_even.plot_break_even(rows)
        self.assertEqual(len(drawn(figure.axes[0])), 1)
        self.assertIn("left out: int8:g32, whose kernel is generic",
                      " ".join(texts(figure)).replace("\n", " "))
        for row in rows:
            row["kernel"] = "generic"  # alike again
        self.assertEqual(len(drawn(break_even.plot_break_even(rows).axes[0])), 2)

    def test_a_point_without_rounds_that_took_time_is_left_out(self):
        rows = rows_of([0.5, 1.5, 2])
        rows[3]["samples"]["round"] = [0.0] * 6
        curve, = drawn(break_even.plot_break_even(rows).axes[0])
        self.assertEqual(list(curve.get_ydata()), [0.5, 2])

    def test_a_context_of_two_lengths_is_drawn_once(self):
        rows = rows_of([0.5, 2])
        rows.append(record("contiguous/f16", 4096, 2, "attention", rounds=6))
        curve, = drawn(break_even.plot_break_even(rows).axes[0])
        self.assertEqual(list(curve.get_ydata()), [0.5, 2])

    def test_a_long_list(self):
        self.check_picture(break_even.plot_break_even(over_contexts(LONG, rounds=6)))

    def test_robust(self):
        self.check_robust(break_even.plot_break_even, over_contexts())


if __name__ == "__main__":
    unittest.main()
