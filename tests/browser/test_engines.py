"""An engine looks the same on the page and in the pictures of plots/."""

import sys

import made_up
from browser import PageTest, contrast
from pages import SOURCE

sys.path.append(str(SOURCE / "plots"))

import style  # noqa: E402 (the folder comes first)

ENGINES = ["recompute", "contiguous/f32", "contiguous/f16", "contiguous/bf16",
           "contiguous/fp8:e4m3", "contiguous/int8:g32", "contiguous/int8:g64",
           "contiguous/int8:g128", "contiguous/int8:g32:asym", "contiguous/int4:g32",
           "contiguous/int4:g64", "contiguous/int4:g128:asym", "contiguous/k=int8:g64,v=int4:g32",
           "contiguous/f16/grow:4", "paged:16/f32", "paged:16/int8:g32", "paged:128/f16",
           "paged:1024/int4:g32:asym"]

# Chart.js's marks of Matplotlib's; it has none for the others, which are circles.
MARKS = {"s": "rect", "^": "triangle", "v": "triangle", "P": "cross", "D": "rectRot",
         "d": "rectRounded", "X": "crossRot", "*": "star"}
# All four colours of K and V in different formats.
OTHERS = [f"contiguous/k={key},v={value}" for key in ("f32", "f16")
          for value in ("f32", "f16", "int8:g32")]
DASHES = {"-": [], "--": [6, 4], "-.": [8, 3, 2, 3], ":": [2, 3]}


def on_the_page(look):
    """What the look in a picture is on a light page."""
    red, green, blue = (round(255 * part) for part in style.to_rgb(look["color"]))
    line = look["linestyle"]
    return {"color": [red, green, blue], "pointStyle": MARKS.get(look["marker"], "circle"),
            "isUpsideDown": look["marker"] == "v", "hollow": look.get("fillstyle") == "none",
            "dash": DASHES[line] if isinstance(line, str) else [8, 2, 2, 2, 2, 2]}


class EnginesTest(PageTest):
    data = made_up.page()

    def looks(self, engines):
        """What the page makes of engines, in its colours of now."""
        return self.js("return arguments[0].map((engine) => kvmark.engines.look(engine))", engines)

    def test_lines_and_markers_can_be_seen(self):
        self.assertLessEqual(set(style.OTHERS), {style.look(engine)["color"] for engine in OTHERS})
        for scheme in ("light", "dark"):
            self.light(scheme)
            paper = self.js("return kvmark.engines.theme().paper")
            for engine, look in zip(ENGINES + OTHERS, self.looks(ENGINES + OTHERS)):
                with self.subTest(engine, scheme=scheme):
                    self.assertGreaterEqual(contrast(look["color"], paper), 3)

    def test_names_that_every_object_has(self):
        for name in ("constructor", "__proto__", "toString"):
            look, other = self.looks([f"contiguous/{name}", "contiguous/k=f32,v=int8:g32"])
            self.assertEqual(look["pointStyle"], other["pointStyle"], name)
            self.assertRegex(look["color"], "^#[0-9a-f]{6}$", name)

    def test_looks(self):
        for engine in ENGINES:
            with self.subTest(engine):
                shown = self.js("""
                    const {color, pointStyle, pointRotation, hollow, dash} =
                        kvmark.engines.look(arguments[0], {text: '#000000', isDark: false});
                    return {color: [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16)),
                            pointStyle, isUpsideDown: pointRotation === 180, hollow, dash};""",
                                engine)
                drawn = on_the_page(style.look(engine))
                self.assertLessEqual(max(abs(a - b) for a, b in
                                         zip(shown.pop("color"), drawn.pop("color"))), 1)
                self.assertEqual(shown, drawn)
