"""Looks, labels and numbers in words."""

import unittest

import numpy as np

import labels
import style
import words
from testing import BITS, LONG, PlotTest, quickstart, record, texts


class TestLook(unittest.TestCase):
    def test_engines_differ_and_do_not_change(self):
        every = sorted({*LONG, *BITS, "paged:16/f16", "paged:128/f16", "contiguous/f16/grow:2"})
        looks = [str(sorted(style.look(engine).items())) for engine in every]
        self.assertEqual(len(set(looks)), len(every))
        self.assertEqual(style.look("contiguous/f16"), style.look("contiguous/f16"))

    def test_engines_differ_without_colour_too(self):
        shapes = [str(sorted((key, value) for key, value in style.look(engine).items()
                             if key != "color")) for engine in LONG]
        self.assertEqual(len(set(shapes)), len(LONG))

    def test_order(self):
        engines = ["recompute", "contiguous/f32", "paged:16/f32", "paged:128/f32", "contiguous/f16",
                   "contiguous/int8:g32", "contiguous/int8:g32:asym", "contiguous/int4:g32",
                   "contiguous/k=int8:g64,v=int4:g32"]
        self.assertEqual(sorted(reversed(engines), key=style.order), engines)

    def test_parameters_of_a_codec_keep_its_colour(self):
        self.assertEqual(style.look("contiguous/int8:g64")["color"],
                         style.look("contiguous/int8:g32/grow:2")["color"])

    def test_unknown_names_have_a_look(self):
        for name in ("contiguous/k=int8:g64,v=int4:g32", "paged/x", "", "unknown"):
            self.assertIn("color", style.look(name))


class TestFigure(PlotTest):
    def test_footer_names_machine_rounds_date_and_the_caveat(self):
        shown = " ".join(texts(style.new_figure("title", "subtitle", quickstart())))
        for part in ("title", "subtitle", "Some CPU @ 2.0 GHz", "2 cores", "n = 3 rounds",
                     "kvmark 0123456789ab", "2026-01-31", style.CAVEAT):
            self.assertIn(part, shown)

    def test_the_caveat_is_for_cpus(self):
        rows = quickstart()
        for row in rows:
            row["case"]["device"] = "cuda"
        self.assertNotIn(style.CAVEAT, texts(style.new_figure("title", "subtitle", rows)))

    def test_nothing_is_known_of_the_machine(self):
        self.assertIn("unknown CPU", texts(style.new_figure("title", "subtitle", [{}])))

    def test_long_words_are_wrapped(self):
        rows = quickstart()
        for row in rows:
            row["env"]["cpu"] = "A processor with a very long name " * 5
        for subtitle in ("a subtitle of many words " * 12, "MEMORY 000-WWW " * 20):
            self.check_picture(style.new_figure("title", subtitle, rows))

    def test_pictures_are_told_apart_by_their_titles(self):
        self.assertEqual(style.subject([record("recompute")]), "seed-gqa 8:2, whole steps")
        self.assertEqual(style.subject([record("recompute", level="attention", kv_heads=8)]),
                         "seed-gqa 8:8, attention alone")

    def test_names_without_end_fit(self):
        rows = [record("x" * 10000, model="y" * 10000, tokens="z" * 10000)]
        rows[0]["env"]["cpu"] = "w" * 10000
        self.check_picture(style.new_figure(f"What it is: {style.subject(rows)}",
                                            style.setting(rows), rows))

    def test_settings_that_are_unusual_are_named(self):
        rows = quickstart()
        self.assertNotIn("pool_order", style.setting(rows))
        rows[0]["case"]["pool_order"] = "shuffled"
        self.assertIn("pool_order shuffled", style.setting(rows))

    def test_a_step_of_a_batch(self):
        rows = quickstart()
        self.assertIn("batch 1,", style.setting(rows))
        self.assertEqual((style.of_all(rows), style.of_each(rows)), ("", ""))
        rows[0]["case"]["batch"] = 4
        self.assertIn("batch 4 (a step serves all sequences),", style.setting(rows))

    def test_intervals_lie_beside_each_other(self):
        figure = style.new_figure("title", "subtitle", quickstart())
        axes = figure.subplots()
        curves = [axes.errorbar([1, 2], [1, 2], yerr=1) for _ in range(3)]
        axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
        at = [axes.transData.transform((1, 1))[0] for _ in curves]
        style.set_beside(figure, [curve.get_children() for curve in curves])
        moved = [curve.lines[0].get_transform().transform((1, 1))[0] for curve in curves]
        pixels = 4 * figure.dpi / 72
        np.testing.assert_allclose(np.subtract(moved, at), [-pixels, 0, pixels], atol=1e-6)
        bars = [curve.lines[2][0].get_transform().transform((1, 1))[0] for curve in curves]
        np.testing.assert_allclose(bars, moved)


class TestTicks(unittest.TestCase):
    def ticks(self, low, high):
        axes = style.new_figure("", "", [{}]).subplots()
        axes.set(yscale="log", ylim=(low, high))
        style.log_ticks(axes.yaxis)
        return [text.get_text() for text in axes.get_yticklabels()]

    def test_as_fine_as_the_axis_is_short(self):
        self.assertEqual(self.ticks(1e-4, 20), ["1e-4", "0.001", "0.01", "0.1", "1", "10"])
        self.assertEqual(self.ticks(0.9, 11), ["1", "2", "5", "10"])
        self.assertEqual(self.ticks(0.4, 1.6), ["0.4", "0.5", "0.7", "1", "1.5"])
        self.assertGreaterEqual(len(self.ticks(0.97, 1.04)), 3)

    def test_contexts_are_thinned_but_the_longest_stays(self):
        axes = style.new_figure("", "", [{}]).subplots()
        style.context_axis(axes, list(range(100, 2100, 100)))
        shown = [text.get_text() for text in axes.get_xticklabels()]
        self.assertLessEqual(len(shown), style.MOST_TICKS)
        self.assertEqual(shown[-1], "2,000")


class TestLabels(PlotTest):
    def test_spread_keeps_apart_around_the_mean_and_inside(self):
        np.testing.assert_allclose(labels.spread([0.2, 0.5, 0.5], 0.1), [0.2, 0.45, 0.55])
        np.testing.assert_allclose(labels.spread([0.99, 1.0], 0.1), [0.85, 0.95])
        np.testing.assert_allclose(labels.spread([0.0, 0.0], 0.1), [0.05, 0.15])
        self.assertEqual(labels.spread([], 0.1), [])

    def test_many_ends_at_one_place(self):
        figure = style.new_figure("title", "subtitle", quickstart(), inside=labels.room(30))
        axes = figure.subplots()
        axes.plot([1, 2], [1, 2])
        labels.label_ends(axes, [(2, 2, f"the label of curve {i}", style.BLUE) for i in range(30)])
        self.check_picture(figure)

    def test_points_at_one_place(self):
        figure = style.new_figure("title", "subtitle", quickstart())
        axes = figure.subplots()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        labels.label_points(axes, [(0.5, 0.5, f"point {i}", style.BLUE, 8) for i in range(12)])
        self.check_picture(figure)


class TestWords(unittest.TestCase):
    def test_plain(self):
        for value, text in ((0, "0"), (0.99961, "1.00"), (1234.5, "1234"), (0.04126, "0.0413"),
                            (4.5e-7, "4.5e-7"), (7.741, "7.74")):
            self.assertEqual(words.plain(value), text)

    def test_tick(self):
        for value, text in ((0.001, "0.001"), (1e-6, "1e-6"), (20, "20"), (2e7, "2e7"), (0, "0")):
            self.assertEqual(words.tick(value), text)

    def test_sizes_and_counts(self):
        self.assertEqual(words.binary(1572864), "1.5 MiB")
        self.assertEqual(words.binary(0), "0 B")
        self.assertEqual(words.tokens(480), "480")
        self.assertEqual(words.tokens(8160), "8,160")
        self.assertEqual(words.about_tokens(6349), "≈ 6,300")
        self.assertEqual(words.about_tokens(33.3), "≈ 33")
        self.assertEqual(words.clipped("x" * 61), "x" * 59 + "…")
        self.assertEqual(words.clipped("x" * 60), "x" * 60)

    def test_changes(self):
        self.assertEqual(words.signed_percent(0.0312), "+3.1 %")
        self.assertEqual(words.signed_percent(-0.4), "−40 %")
        self.assertEqual(words.span([3, 3]), "3")
        self.assertEqual(words.span([7, 3]), "3–7")


if __name__ == "__main__":
    unittest.main()
