"""Distribution of the gaps between tokens."""

import unittest

import latency
from testing import LONG, PlotTest, drawn, quickstart, record, summary, texts


def key(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def quantiles(figure):
    """(x, y) of the marks."""
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0]))
            for line in figure.axes[0].lines if len(line.get_xdata()) == 1]


class TestLatency(PlotTest):
    def test_a_curve_for_each_engine(self):
        figure = latency.plot_latency(quickstart())
        self.assertEqual(len(drawn(figure.axes[0])), 5)
        self.check_picture(figure, height=5.4)

    def test_without_the_rest_of_the_decoder_there_are_steps(self):
        figure = latency.plot_latency([record("contiguous/f16", 64, 32, "attention")])
        self.assertIn("Time from step to step: seed-gqa 8:2, attention alone", texts(figure))
        self.assertNotIn("token", " ".join([*texts(figure), figure.axes[0].get_xlabel()]))

    def test_the_curve_is_the_share_of_gaps(self):
        row = record("contiguous/f16")
        row["samples"]["itl_ms"] = [3.0, 1.0] * 5
        curve = drawn(latency.plot_latency([row]).axes[0])[0]
        self.assertEqual(list(curve.get_xdata()), [1] * 5 + [3] * 5)
        self.assertEqual(list(curve.get_ydata()), list(range(10, 110, 10)))

    def test_marks_lie_on_the_curve_and_figures_are_of_all_gaps(self):
        row = record("contiguous/f16")
        row["samples"]["itl_ms"] = [float(gap) for gap in range(200, 0, -1)]
        figure = latency.plot_latency([row])
        curve = drawn(figure.axes[0])[0]
        self.assertEqual(quantiles(figure), [(100, 50), (198, 99)])
        for mark in quantiles(figure):
            self.assertIn(mark, list(zip(curve.get_xdata(), curve.get_ydata())))
        self.assertEqual(key(figure), ["f16: p50 1.00, p99 1.20 (n = 510)"])

    def test_no_p99_of_few_gaps(self):
        row = record("contiguous/f16", generated=100)
        figure = latency.plot_latency([row])
        self.assertEqual(quantiles(figure), [(1.0, 50)])
        self.assertEqual(key(figure), ["f16: p50 1.00, p99 — (n = 99)"])

    def test_recompute_does_not_squeeze_the_caches(self):
        slow = record("recompute")
        slow["latency"]["itl_ms"] = summary(25.0, 0.1, 510)
        figure = latency.plot_latency([slow, record("contiguous/f16")])
        self.assertLess(figure.axes[0].get_xlim()[1], 2)
        self.assertIn("recompute goes on →", texts(figure))
        self.assertNotIn("f16 goes on →", texts(figure))
        self.check_picture(figure)
        alone = latency.plot_latency([record("recompute")])
        self.assertGreater(alone.axes[0].get_xlim()[1], 51)
        self.assertNotIn("recompute goes on →", texts(alone))

    def test_fastest_first(self):
        rows = [record("contiguous/f32", ms=2.0), record("contiguous/f16", ms=1.0)]
        self.assertEqual([text.split(":")[0] for text in key(latency.plot_latency(rows))],
                         ["f16", "f32"])

    def test_few_gaps_or_none_are_no_picture(self):
        row = record("contiguous/f16")
        for gaps in ([1.0, 2.0] * 4, [], None, [0.0, 1.0] * 5):
            row["samples"]["itl_ms"] = gaps
            self.assertIsNone(latency.plot_latency([row]))

    def test_missing_quantiles(self):
        row = record("contiguous/f16")
        row["latency"]["itl_ms"] = None
        figure = latency.plot_latency([row])
        self.assertEqual(len(quantiles(figure)), 2)  # those of the curve
        self.assertEqual(key(figure), ["f16: p50 —, p99 — (n = ?)"])

    def test_a_long_list_fits_beside_the_axes(self):
        rows = [record(engine, ms=1 + 0.1 * i) for i, engine in enumerate(LONG)]
        for row in rows:
            row["latency"]["itl_ms"] = summary(1234.5, 0.01, 100000)
        figure = latency.plot_latency(rows)
        figure.canvas.draw()
        box = figure.axes[0].get_legend().get_window_extent()
        self.assertLessEqual(box.x1, figure.bbox.x1)
        self.assertGreaterEqual(box.y0, 0)

    def test_robust(self):
        self.check_robust(latency.plot_latency, quickstart())


if __name__ == "__main__":
    unittest.main()
