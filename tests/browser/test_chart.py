"""The chart: views, axes, hovering, engines."""

from selenium.webdriver.common.keys import Keys

import made_up
from browser import PageTest


class ChartTest(PageTest):
    data = made_up.page()

    def test_every_view_draws(self):
        titles = self.texts("#views button")
        self.assertEqual(titles, ["time against tokens", "attention time against context",
                                  "attention time against batch", "KV bytes against context",
                                  "loss against bits", "fraction of the ceiling", "step times",
                                  "memory over tokens", "choose axes"])
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
        self.assertIn("rows with no figure, or none above 0,", self.find("#chart-note").text)
