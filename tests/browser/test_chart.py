"""The chart: views, axes, hovering, engines."""

from selenium.webdriver.common.keys import Keys

import made_up
from browser import PageTest
from pages import assembled


class ChartTest(PageTest):
    data = made_up.page()

    def test_every_view_draws(self):
        titles = self.texts("#views button")
        self.assertEqual(titles, ["time against tokens", "step time against context",
                                  "attention time against context", "attention time against batch",
                                  "KV bytes against context", "loss against bits",
                                  "fraction of the ceiling", "step times", "memory over tokens",
                                  "choose axes"])
        for title in titles:
            with self.subTest(title):
                self.show_view(title)
                self.assertGreater(sum(len(one["data"]) for one in self.series()), 2)
                self.assertEqual(self.texts("#views button[aria-pressed=true]"), [title])
                self.shoot("view-" + title.replace(" ", "-"))

    def test_hover_shows_the_records_value(self):
        self.show_view("attention time against context")
        at = [one["label"] for one in self.series()].index("fp16 (contiguous/f16)")
        lines = self.hover(at, 0)
        row = next(r for r in self.data["rows"] if r["engine"] == "contiguous/f16")
        value = row["values"]["latency.attend_ms.p50"]
        self.assertIn(f"attention p50: {value} ms", lines)
        self.assertIn("95 % interval 3.234 to 3.516 ms", lines)
        self.assertIn("7 rounds", lines)
        self.assertIn("doubt: threads had to wait for a core", lines)
        self.show_view("KV bytes against context")
        kv = row["values"]["memory.kv_reserved_bytes"]
        self.assertIn(f"KV reserved: {kv} bytes (5 MiB)", self.hover(at, 0))

    def test_engines_are_switched_by_mouse_and_keyboard(self):
        self.show_view("attention time against context")
        self.assertEqual(len(self.series()), 5)
        self.click("label[for=engine-1]")
        self.assertNotIn("paged (paged:16/f32)", [one["label"] for one in self.series()])
        self.assertEqual(len(self.series()), 4)
        self.assertEqual(self.js("return document.activeElement.id"), "engine-1")
        self.find("#engine-1").send_keys(Keys.SPACE)
        self.assertEqual(len(self.series()), 5)
        self.click("#engines-none")
        self.assertIn("Nothing to draw here.", self.find("#chart-note").text)
        self.click("#engines-all")
        self.assertEqual(len(self.series()), 5)

    def test_logarithmic_and_linear(self):
        self.show_view("attention time against context")
        self.assertEqual(self.scale_types(), ["logarithmic", "logarithmic"])
        self.click("#chart-ylog")
        self.assertEqual(self.scale_types(), ["logarithmic", "linear"])
        self.click("#chart-xlog")
        self.assertEqual(self.scale_types(), ["linear", "linear"])

    def test_axes_of_choice(self):
        self.show_view("choose axes")
        self.choose("#chart-x", "batch")
        self.choose("#chart-lengths", "1024")
        self.choose("#chart-y", "TPOT p50")
        f32 = next(one for one in self.series() if "contiguous/f32" in one["label"])
        self.assertEqual([(p["x"], p["y"]) for p in f32["data"]], [(1, 8.25), (4, 33)])
        self.choose("#chart-x", "engine, as bars")
        self.assertEqual(len(self.series()[0]["data"]), 5)
        self.choose("#chart-x", "bits/element")
        self.assertEqual(sorted({p["x"] for one in self.series() for p in one["data"]}),
                         [4.5, 8.5, 16, 32])

    def test_zero_on_a_logarithmic_axis_is_left_out_and_said(self):
        self.show_view("loss against bits")
        self.assertIn("Not above 0, so not on a logarithmic axis: contiguous (contiguous/f32) and "
                      "paged (paged:16/f32).", self.find("#chart-note").text)
        self.click("#chart-ylog")
        self.assertNotIn("logarithmic", self.find("#chart-note").text)

    def test_charts_begin_with_the_setting_that_is_asked_for(self):
        rows = [made_up.row(engine, context) for context in (1024, 8192)
                for engine in made_up.STEP_MS]
        for i, row in enumerate(rows):
            row["case"]["level"] = "attention" if i % 2 == 0 else "model"
            row["group"] = i % 2
            row["cumulative"] = row["cumulative"] if i % 2 == 0 else None
        self.open(assembled(made_up.page(rows=rows, groups=[
            {"heading": "attention"}, {"heading": "whole steps"}])))
        self.assertIn('"level","model"',
                      self.js("return document.getElementById('ask-setting').value"))
        self.assertEqual(self.js("return document.getElementById('chart-group').value"), "1")
        self.assertEqual(self.find("#chart-title").text, "TPOT p50 against context")

    def test_engines_of_several_runs_or_machines_are_told_apart(self):
        for changes in ({"run": 1}, {"machine": "Slow CPU with 1 core"}):
            rows = [made_up.row("contiguous/f16", context) for _ in range(2)
                    for context in (1024, 8192)]
            for row in rows[2:]:
                row.update(changes)
            runs = [{**made_up.page()["runs"][0], "name": name}
                    for name in ("results/a", "results/b")[:1 + rows[2]["run"]]]
            self.open(assembled(made_up.page(rows=rows, runs=runs)))
            for view in ("step time against context", "loss against bits", "step times"):
                self.show_view(view)
                colours = self.js("""return Chart.getChart('chart').data.datasets.map(
                    ({borderColor}) => borderColor)""")
                self.assertEqual([colour[7:] for colour in colours], ["80", ""], (changes, view))
                self.assertIn("From pale to full: ", self.find("#chart-note").text)
            self.show_view("fraction of the ceiling")
            self.assertEqual([colour[7:] for colour in self.js(
                "return Chart.getChart('chart').data.datasets[0].backgroundColor")], ["80", ""])

    def test_any_size_can_be_drawn(self):
        loss = "accuracy.loss.attend_rel_rms"
        for values in ((1e308, 1e-10), (1e308, 5e-324), (1.7e308, 1e307), (5e-324, 1e-310)):
            rows = [made_up.row(f"contiguous/{name}", 1024) for name in ("f16", "int8:g32")]
            for row, value in zip(rows, values):
                row["values"][loss] = value
            self.open(assembled(made_up.page(rows=rows)))
            self.show_view("loss against bits")
            for _ in range(2):  # logarithmic, then linear
                ticks = self.js("return Chart.getChart('chart').scales.y.ticks.length")
                self.assertLess(ticks, 30, values)
                self.click("#chart-ylog")

    def test_attention_of_different_layers_is_drawn_a_layer(self):
        rows = [made_up.row("contiguous/f32", context) for context in (1024, 8192)]
        for row, layers in zip(rows, (32, 4)):
            row["case"].update(level="attention", layers=layers)
            row["values"].update({"latency.attend_ms.p50": 16.0,
                                  "memory.kv_reserved_bytes": 64 * made_up.MIB})
            row["intervals"]["latency.attend_ms.p50"] = [12, 20]
        self.open(assembled(made_up.page(rows=rows)))
        self.show_view("attention time against context")
        self.assertEqual(len(self.series()), 1)
        self.assertEqual([(p["x"], p["ylo"], p["y"], p["yhi"]) for p in self.series()[0]["data"]],
                         [(1024, 0.375, 0.5, 0.625), (8192, 3, 4, 5)])
        self.assertEqual(self.axis_titles(), ["context (tokens)", "attention p50 (ms a layer)"])
        self.assertEqual(self.find("#chart-title").text, "attention p50 a layer against context")
        lines = self.hover(0, 0)
        self.assertIn("attention p50: 16 ms", lines)
        self.assertIn("of 32 layers", lines)
        self.show_view("KV bytes against context")
        self.assertEqual([p["y"] for p in self.series()[0]["data"]], [2, 16])
        self.assertEqual(self.axis_titles()[1], "KV reserved (MiB a layer)")

    def test_as_many_layers_everywhere_are_drawn_as_they_are(self):
        self.show_view("KV bytes against context")
        self.assertEqual(self.axis_titles()[1], "KV reserved (MiB)")

    def test_generic_kernels_are_named(self):
        rows = [made_up.row("contiguous/f16", context) for context in (1024, 8192)]
        rows[0]["generic"] = True
        self.open(assembled(made_up.page(rows=rows)))
        self.show_view("attention time against context")
        self.assertIn("doubt: generic kernel", self.hover(0, 0))
        self.assertNotIn("doubt: generic kernel", self.hover(0, 1))

    def test_growth_is_offered_from_enough_tokens_on(self):
        self.assertIn("time against tokens", self.texts("#views button"))
        self.open(assembled(made_up.page(
            limits={**made_up.page()["limits"], "growth_tokens": 65})))
        self.assertNotIn("time against tokens", self.texts("#views button"))
