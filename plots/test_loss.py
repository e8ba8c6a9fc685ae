"""Loss against bytes."""

import unittest

import loss
import style
from testing import BITS, CACHES, LONG, PlotTest, over_contexts, record, texts


def points(figure):
    return [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]


def scored(row, kld):
    row["accuracy"]["loss"].update({"kld_mean": kld, "positions": 1024})
    return row


class TestLoss(PlotTest):
    def test_a_point_for_each_format(self):
        figure = loss.plot_loss([record(engine) for engine in BITS])
        self.assertEqual(sorted(float(line.get_xdata()[0]) for line in points(figure)),
                         [4.5, 8.5, 16, 32, 32])  # recompute keeps nothing
        self.assertIn("attention output", figure.axes[0].get_ylabel())
        self.check_picture(figure, height=6)

    def test_divergence_and_attention_error_are_never_mixed(self):
        rows = [scored(record("contiguous/int8:g32"), 5e-4), scored(record("contiguous/f16"), 4e-7),
                record("contiguous/int4:g32")]
        figure = loss.plot_loss(rows)
        self.assertEqual(len(points(figure)), 2)
        self.assertIn("KLD", figure.axes[0].get_ylabel())
        self.assertIn("1024 scored positions", " ".join(texts(figure)))

    def test_front(self):
        self.assertEqual(loss.front([(32, 0), (32, 0), (16, 2), (8, 1), (4, 3)]),
                         [(4, 3), (8, 1), (32, 0)])

    def test_front_is_drawn_in_steps(self):
        figure = loss.plot_loss([record(engine) for engine in ("contiguous/f16",
                                                               "contiguous/int8:g32")])
        front = next(line for line in figure.axes[0].lines if len(line.get_xdata()) == 3)
        self.assertEqual(list(front.get_xdata()), [8.5, 16, 16])
        self.assertEqual(list(front.get_ydata()), [2e-2, 2e-2, 5e-4])

    def test_a_loss_of_zero_has_its_place(self):
        figure = loss.plot_loss([record("contiguous/f32"), record("contiguous/f16")])
        axes = figure.axes[0]
        self.assertEqual(axes.get_yticklabels()[0].get_text(), "no loss")
        strip, = axes.patches
        edges = strip.get_xy()[:, 1]
        self.assertTrue(edges.min() < axes.get_yticks()[0] < edges.max() < 5e-4)
        zero = axes.get_yticks()[0]
        self.assertIn(zero, [line.get_ydata()[0] for line in points(figure)])
        self.assertLess(zero, 5e-4)

    def test_engines_of_one_format_share_a_label(self):
        figure = loss.plot_loss([record(engine) for engine in ("contiguous/f32", "paged:16/f32",
                                                               "contiguous/f16")])
        self.assertEqual(len(points(figure)), 3)
        self.assertEqual([text for text in texts(figure) if "1000 tokens/s" in text],
                         ["f32 1000 tokens/s\npaged:16/f32 1000 tokens/s", "f16 1000 tokens/s"])

    def test_engines_of_one_format_lie_beside_each_other(self):
        figure = loss.plot_loss([record(engine) for engine in ("contiguous/f32", "paged:16/f32",
                                                               "contiguous/f16")])
        f32, paged, _ = points(figure)
        at = [line.get_transform().transform((line.get_xdata()[0], line.get_ydata()[0]))[0]
              for line in (f32, paged)]
        self.assertGreaterEqual(at[1] - at[0], f32.get_markersize() * figure.dpi / 72 - 1e-6)
        own = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
        both = own["f32 1000 tokens/s\npaged:16/f32 1000 tokens/s"]
        self.assertEqual(both, style.darker(style.BLACK))
        self.assertEqual(own["f16 1000 tokens/s"], style.darker(style.GREEN))

    def test_a_rate_below_zero_is_none(self):
        rows = [record("contiguous/f16"), record("contiguous/int8:g32")]
        rows[0]["throughput"]["decode_tok_per_s"] = -1.5
        self.assertIn("f16", texts(loss.plot_loss(rows)))

    def test_only_zeros(self):
        figure = loss.plot_loss([record("contiguous/f32")])
        self.assertEqual([text.get_text() for text in figure.axes[0].get_yticklabels()],
                         ["no loss"])
        self.check_picture(figure)

    def test_area_is_speed(self):
        rows = [record("contiguous/f16", ms=4.0), record("contiguous/int8:g32", ms=1.0)]
        slow, fast = points(loss.plot_loss(rows))
        self.assertAlmostEqual(slow.get_markersize() / fast.get_markersize(), 0.5)

    def test_rates_of_a_batch(self):
        rows = [record("contiguous/f16", 64, 16, "attention", batch=4)]
        shown = " ".join(texts(loss.plot_loss(rows)))
        self.assertIn("f16 1000 steps/s", shown)  # a step serves all of them
        self.assertNotIn("of all 4", shown)
        shown = " ".join(texts(loss.plot_loss([record("contiguous/f16", 64, 16, batch=4)])))
        self.assertIn("f16 4000 tokens/s", shown)
        self.assertIn("area of a marker: tokens/s of all 4 sequences", shown)
        self.assertIn("after 79 positions of each sequence", shown)

    def test_generic_kernels_are_marked_beside_others(self):
        rows = [record("contiguous/f16"), record("contiguous/int8:g32")]
        rows[1]["kernel"] = "generic"
        self.assertIn("int8:g32 (generic kernel) 1000 tokens/s", texts(loss.plot_loss(rows)))
        self.check_picture(loss.plot_loss(rows))

    def test_no_speed(self):
        rows = [record("contiguous/f16"), record("contiguous/int8:g32")]
        for row in rows:
            row["throughput"] = None
        figure = loss.plot_loss(rows)
        self.assertNotIn("area", " ".join(texts(figure)))
        self.assertIn("f16", texts(figure))

    def test_one_length_alone(self):
        figure = loss.plot_loss(over_contexts())
        self.assertEqual(len(points(figure)), len(CACHES))
        self.assertIn("steps/s", " ".join(texts(figure)))

    def test_a_long_list(self):
        rows = [record(engine) for engine in LONG]
        for i, row in enumerate(rows):
            row["memory"]["kv_bits_per_element"] = 4.5 + i % 3
            row["accuracy"]["loss"]["attend_rel_rms"] = 0.1 + 0.01 * i
        self.check_picture(loss.plot_loss(rows))

    def test_robust(self):
        self.check_robust(loss.plot_loss, [record(engine) for engine in CACHES])


if __name__ == "__main__":
    unittest.main()
