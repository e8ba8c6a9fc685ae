"""Widths, light and dark, paper, focus: what the page looks like."""

import base64

from selenium.webdriver.common.keys import Keys

import made_up
from browser import PageTest

WIDTHS = (390, 768, 1440)
GROUNDS = ("paper", "raised")
TEXTS = ("text", "muted", "accent", "worse", "better", "undecided")


def luminance(colour):
    """Relative luminance of #rrggbb (WCAG 2)."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class LooksTest(PageTest):
    data = made_up.page()

    def test_no_width_makes_the_page_scroll_sideways(self):
        views = len(self.all("#views button"))
        for width in WIDTHS:
            self.resize(width)
            for view in range(views):
                self.click(f"#view-{view}")
                with self.subTest(width=width, view=view):
                    self.assert_no_overflow(width)
            self.click("#view-0")

    def test_dark_and_back(self):
        for scheme, paper, text in (("dark", "rgb(20, 23, 27)", "#e4e7eb"),
                                    ("light", "rgb(255, 255, 255)", "#1b1f24")):
            self.light(scheme)
            self.wait_for("return getComputedStyle(document.body).backgroundColor", paper)
            self.wait_for("return Chart.getChart('chart').options.scales.x.ticks.color", text)
            for width in WIDTHS:
                self.resize(width)
                self.shoot(f"{scheme}-{width}")

    def test_text_can_be_read(self):
        for scheme in ("light", "dark"):
            self.light(scheme)
            colours = self.js("""const style = getComputedStyle(document.documentElement);
                return arguments[0].map(name => style.getPropertyValue('--' + name).trim())""",
                              GROUNDS + TEXTS)
            paper, raised, *texts = map(luminance, colours)
            for name, text in zip(TEXTS, texts):
                for ground in (paper, raised):
                    bright, dim = max(text, ground), min(text, ground)
                    self.assertGreaterEqual((bright + 0.05) / (dim + 0.05), 4.5, (scheme, name))

    def test_focus_is_seen(self):
        self.find("body").send_keys(Keys.TAB)
        self.assertEqual(self.js("return document.activeElement.className"), "skip")
        for _ in range(12):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            style, tag = self.js("""const at = document.activeElement;
                return [getComputedStyle(at).outlineStyle, at.tagName]""")
            self.assertNotEqual(style, "none", tag)

    def test_paper(self):
        self.light("dark")
        pdf = base64.b64decode(self.cdp("Page.printToPDF", printBackground=True)["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.keep("paper.pdf", pdf)
        self.light("dark", media="print")
        self.assertEqual(self.texts(".on-paper")[0],
                         "Model: made-up, level model · 4 layers · heads 8:2 of 64 · "
                         "Context (prompt + generated): 8192 + 64 = 8256 tokens · Batch: 1 · "
                         "Threads: 2 · Rank by: TPOT p50 (ms), lowest first")
        self.assertEqual(self.js("return getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        for css, shown in (("#chart", True), ("#table", True), ("#ranking", True),
                           ("#chart-form", False), ("#views", False), ("#table-form", False)):
            self.assertEqual(self.find(css).is_displayed(), shown, css)
