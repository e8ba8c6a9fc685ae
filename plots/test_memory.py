"""Bytes of the cache, and their timeline."""

import unittest

import numpy as np

import memory
from testing import CACHES, LONG, PlotTest, drawn, over_contexts, quickstart, record, texts


class TestKvBytes(PlotTest):
    def test_bars_at_one_context(self):
        figure = memory.plot_kv_bytes(quickstart())
        self.assertEqual(len(figure.axes[0].patches), 2 * 5)
        self.assertIn("0.998 MiB live, 0.998 MiB reserved", " ".join(texts(figure)))
        self.check_picture(figure, height=3.2)

    def test_weights_are_a_line_where_they_are_near_and_words_where_they_are_not(self):
        rows = quickstart()
        far = memory.plot_kv_bytes(rows)
        self.assertIn("weights take 9 MiB, 4.5 times", " ".join(texts(far)))
        self.assertNotIn("weights", texts(far))
        for row in rows:
            row["memory"]["weight_bytes"] = 2 << 20
        near = memory.plot_kv_bytes(rows)
        self.assertIn("weights", texts(near))
        self.check_picture(near)

    def test_curves_over_contexts_with_weights(self):
        rows = over_contexts(CACHES + ["recompute"], level="model")
        figure = memory.plot_kv_bytes(rows)
        axes = figure.axes[0]
        self.assertEqual(len(drawn(axes)), len(CACHES))
        self.assertEqual(len([line for line in axes.lines if line.get_marker() == "_"]),
                         len(CACHES) + 1)
        shown = texts(figure)
        self.assertIn("weights: 9 MiB", shown)
        self.assertIn("recompute: its workspace", shown)
        self.assertIn("int8:g32: 1.06 KiB a token", shown)
        self.check_picture(figure, height=5.4)

    def test_no_weights_at_attention_level(self):
        shown = texts(memory.plot_kv_bytes(over_contexts()))
        self.assertFalse([text for text in shown if text.startswith("weights")])

    def test_the_machines_memory_is_a_line_where_it_is_near_and_words_anyhow(self):
        rows = over_contexts()
        for row in rows:
            row["env"] = dict(row["env"], memory_bytes=24 << 30)
        far = texts(memory.plot_kv_bytes(rows))
        self.assertIn("the machine has 24 GiB", " ".join(far).replace("\n", " "))
        self.assertFalse([text for text in far if text.startswith("the machine's memory")])
        for row in rows:
            row["env"]["memory_bytes"] = 512 << 20
        self.assertIn("the machine's memory: 512 MiB", texts(memory.plot_kv_bytes(rows)))

    def test_bytes_of_a_layer_where_layers_follow_the_context(self):
        rows = [record("contiguous/f16", prompt, 16, "attention", layers=layers)
                for prompt, layers in ((1008, 8), (4080, 2))]
        axes = memory.plot_kv_bytes(rows).axes[0]
        self.assertEqual(list(drawn(axes)[0].get_ydata()), [0.25, 4.0])  # 2 KiB a position
        self.assertIn("a layer", axes.get_ylabel())
        self.assertIn("f16: 1 KiB a token and layer", [text.get_text() for text in axes.texts])

    def test_bars_are_those_of_one_length(self):
        rows = [record(engine, 96, 32) for engine in CACHES]
        rows += [record("contiguous/f16", 96, 128)]
        figure = memory.plot_kv_bytes(rows)
        self.assertEqual(len(figure.axes[0].patches), 2 * len(CACHES))
        self.assertIn("after 127 positions", " ".join(texts(figure)))

    def test_bytes_are_those_of_all_sequences(self):
        bars = memory.plot_kv_bytes([record(engine, batch=4) for engine in CACHES])
        self.assertIn("of all 4 sequences", bars.axes[0].get_xlabel())
        self.assertIn("after 511 positions of each sequence", " ".join(texts(bars)))
        curves = memory.plot_kv_bytes(over_contexts(batch=4))
        self.assertIn("of all 4 sequences", curves.axes[0].get_ylabel())

    def test_long_lists(self):
        self.check_picture(memory.plot_kv_bytes([record(engine) for engine in LONG]), height=7)
        self.check_picture(memory.plot_kv_bytes(over_contexts(LONG)))

    def test_nothing_kept_over_contexts(self):
        rows = over_contexts(["recompute"])
        for row in rows:
            row["memory"]["kv_reserved_bytes"] = 0
        self.assertIsNone(memory.plot_kv_bytes(rows))

    def test_robust(self):
        self.check_robust(memory.plot_kv_bytes, quickstart())
        self.check_robust(memory.plot_kv_bytes, over_contexts())


class TestTimeline(PlotTest):
    def test_a_curve_for_each_cache_in_both_panels(self):
        figure = memory.plot_memory_timeline(quickstart())
        self.assertEqual([len(drawn(axes)) for axes in figure.axes], [4, 4])
        self.check_picture(figure, height=7)

    def test_fragmentation(self):
        row = record("contiguous/f16")
        row["memory"]["timeline"] = [
            {"position": at, "live_bytes": 10 * at, "reserved_bytes": 100} for at in range(1, 9)]
        bottom = memory.plot_memory_timeline([row]).axes[1]
        np.testing.assert_allclose(drawn(bottom)[0].get_ydata(), range(90, 10, -10))

    def test_bytes_and_positions_of_a_batch(self):
        top, bottom = memory.plot_memory_timeline([record("contiguous/f16", batch=4)]).axes
        self.assertEqual(top.get_ylabel(), "MiB of all 4 sequences")
        self.assertIn("of each sequence", bottom.get_xlabel())

    def test_events_are_marked(self):
        row = record("contiguous/f16/grow:2")
        row["events"] = [{"kind": "grow", "position": 2, "bytes": 10}, {"kind": "no_reference"}]
        figure = memory.plot_memory_timeline([row])
        self.assertEqual([list(line.get_xdata()) for line in figure.axes[0].lines
                          if line.get_marker() == "v"], [[2]])
        self.assertIn("triangles: grow", " ".join(texts(figure)))
        self.assertNotIn("triangles", " ".join(texts(memory.plot_memory_timeline(quickstart()))))

    def test_few_points_or_none_are_no_picture(self):
        row = record("contiguous/f16")
        for points in (row["memory"]["timeline"][:7], [], None, [{"position": 1}] * 9):
            row["memory"]["timeline"] = points
            self.assertIsNone(memory.plot_memory_timeline([row]))
        self.assertIsNone(memory.plot_memory_timeline([record("recompute")]))

    def test_a_round_in_which_little_happens_is_no_picture(self):
        def row(live, reserved, prompt):
            made = record("contiguous/f16", prompt)
            made["memory"]["timeline"] = [
                {"position": at, "live_bytes": 1000 + live * at // 8,
                 "reserved_bytes": 2000 + reserved * at // 8} for at in range(9)]
            return made
        still = row(live=99, reserved=0, prompt=4096)
        self.assertIsNone(memory.plot_memory_timeline([still]))
        for moved in (row(live=101, reserved=0, prompt=64), row(live=0, reserved=201, prompt=64)):
            figure = memory.plot_memory_timeline([still, moved])  # not the longest
            self.assertEqual(list(drawn(figure.axes[0])[0].get_ydata())[-1],
                             moved["memory"]["timeline"][-1]["reserved_bytes"] / memory.MIB)

    def test_robust(self):
        self.check_robust(memory.plot_memory_timeline, quickstart())


if __name__ == "__main__":
    unittest.main()
