"""Heads × sequence length."""

import unittest

import heat_map
from testing import LONG, PlotTest, bare, failed, record, texts


def sweep(engines=("contiguous/f32", "contiguous/f16"), kv_heads=(8, 2), prompts=(96, 480),
          batches=(1,), level="model"):
    return [record(engine, prompt, 32, level, kv_heads=heads, batch=batch)
            for heads in kv_heads for prompt in prompts for batch in batches for engine in engines]


def panels(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


class TestHeatMap(PlotTest):
    def test_a_panel_for_each_engine(self):
        figure = heat_map.plot_heat_map(sweep())
        self.assertEqual([axes.get_title(loc="left") for axes in panels(figure)],
                         ["f32 (ms a step)", "f16 (ms a step)"])
        for axes in panels(figure):
            self.assertEqual(len(axes.texts), 4)
        self.check_picture(figure)

    def test_cells_lie_at_their_heads_and_length(self):
        rows = sweep(["contiguous/f16"])
        rows[1]["latency"]["tpot_ms"]["p50"] = 77.0  # 8 KV heads, 512 tokens
        axes = panels(heat_map.plot_heat_map(rows))[0]
        cell = next(text for text in axes.texts if text.get_text() == "77")
        at = [int(place) for place in cell.get_position()]
        self.assertEqual(axes.get_xticklabels()[at[0]].get_text(), "512")
        self.assertEqual(axes.get_yticklabels()[at[1]].get_text(), "8:8")

    def test_small_multiples_by_batch(self):
        figure = heat_map.plot_heat_map(sweep(batches=(1, 4)))
        self.assertEqual(len(panels(figure)), 4)
        self.assertIn("f16, batch 4 (ms a step)",
                      [axes.get_title(loc="left") for axes in panels(figure)])
        self.check_picture(figure)

    def test_generic_kernels_are_told_apart(self):
        rows = sweep()
        for row in rows:
            if row["case"]["engine"] == "contiguous/f16":
                row["kernel"] = "generic"
        self.assertIn("f16 (generic kernel) (ms a step)",
                      [axes.get_title(loc="left") for axes in panels(heat_map.plot_heat_map(rows))])

    def test_attention_of_a_layer(self):
        rows = sweep(level="attention")
        rows[0]["latency"]["tpot_ms"]["p50"] = 308.0
        rows[0]["case"]["layers"] = 4
        axes = panels(heat_map.plot_heat_map(rows))[0]
        self.assertEqual(axes.get_title(loc="left"), "f32 (ms a layer)")
        self.assertIn("77", [text.get_text() for text in axes.texts])

    def test_a_missing_cell_is_empty(self):
        rows = sweep()
        rows[0] = failed("contiguous/f32", prompt=96, generated=32)
        axes = panels(heat_map.plot_heat_map(rows))
        self.assertEqual(sum(text.get_text() == "—" for one in axes for text in one.texts), 1)

    def test_an_odd_number_of_panels(self):
        figure = heat_map.plot_heat_map(sweep(["contiguous/f32", "contiguous/f16", "paged:16/f32"]))
        self.assertEqual(len(panels(figure)), 3)
        self.check_picture(figure)

    def test_one_value_of_heads_or_length_is_none(self):
        self.assertIsNone(heat_map.plot_heat_map(sweep(kv_heads=[2])))
        self.assertIsNone(heat_map.plot_heat_map(sweep(prompts=[96])))
        self.assertIsNone(heat_map.plot_heat_map([]))
        self.assertIsNone(heat_map.plot_heat_map([bare("contiguous/f32"), {"status": "ok"}]))

    def test_a_long_list_is_cut_and_says_so(self):
        figure = heat_map.plot_heat_map(sweep(LONG))
        self.assertEqual(len(panels(figure)), heat_map.MOST_PANELS)
        self.assertIn("6 more engines have no panel", " ".join(texts(figure)).replace("\n", " "))
        self.check_picture(figure)

    def test_many_cells(self):
        figure = heat_map.plot_heat_map(sweep(kv_heads=(1, 2, 4, 8), prompts=[
            128 * n - 32 for n in range(1, 11)]))
        self.check_picture(figure)


if __name__ == "__main__":
    unittest.main()
