"""Widths, light and dark, paper, focus: what the page looks like."""

import base64

from selenium.webdriver.common.keys import Keys

import made_up
from browser import PageTest, contrast
from pages import assembled

WIDTHS = (390, 768, 1440)
GROUNDS = ("paper", "raised")
TEXTS = ("text", "muted", "accent", "worse", "better", "undecided")
# Of the words on an axis, and of the first line.
CHART_COLOURS = """[Chart.getChart('chart').options.scales.x.ticks.color,
                    Chart.getChart('chart').data.datasets[0].borderColor]"""


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

    def test_words_of_boxes_stay_in_one_line(self):
        self.resize(390)
        for name in ("chart-xlog", "chart-ylog"):
            box = f"document.querySelector('label[for={name}]')"
            self.assertEqual(self.js(f"""const words = document.createRange();
                words.selectNodeContents({box}.lastChild);
                return words.getClientRects().length"""), 1, name)

    def test_letters_of_twice_the_size_need_no_scrolling_sideways(self):
        rows = [made_up.row(engine, 1024) for engine in made_up.STEP_MS]
        rows[0]["label"] = "contiguous_" + 30 * "long_"
        path = "/data/" + 20 * "a_long_folder/"
        self.open(assembled(made_up.page(rows=rows, warnings=[f"rows of {path}"])))
        self.resize(390)
        self.js("document.documentElement.style.fontSize = '200%'")
        self.assert_no_overflow(390)

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
            paper, raised, *texts = colours
            for name, text in zip(TEXTS, texts):
                for ground in (paper, raised):
                    self.assertGreaterEqual(contrast(text, ground), 4.5, (scheme, name))

    def test_focus_is_seen(self):
        self.find("body").send_keys(Keys.TAB)
        self.assertEqual(self.js("return document.activeElement.className"), "skip")
        for _ in range(12):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            style, width, colour, tag = self.js("""const at = document.activeElement;
                const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(at);
                return [outlineStyle, outlineWidth, outlineColor, at.tagName]""")
            self.assertEqual([style, width, colour], ["solid", "2px", "rgb(11, 92, 173)"], tag)

    def chart_colours(self):
        return self.js(f"return {CHART_COLOURS}")

    def test_paper(self):
        self.light("dark")
        self.click("label[for=engine-1]")  # switched off
        self.js(f"addEventListener('beforeprint', () => {{ window.printed = {CHART_COLOURS} }})")
        self.assertEqual(self.chart_colours(), ["#e4e7eb", "#4d9cc9"])
        self.keep("paper.pdf", base64.b64decode(
            self.cdp("Page.printToPDF", printBackground=True)["data"]))
        self.assertEqual(self.js("return window.printed"), ["#1b1f24", "#0072b2"])
        self.assertEqual(self.chart_colours(), ["#e4e7eb", "#4d9cc9"])  # on the screen again
        self.light("dark", media="print")
        self.assertEqual([label.is_displayed() for label in self.all("#engines label")],
                         [True, False, True, True, True])
        self.assertFalse(self.find("#engines-all").is_displayed())
        self.assertEqual(self.texts(".on-paper")[0],
                         "Model: whole steps · made-up · 8:2 heads of 64 · 4 layers · "
                         "Tokens: prompt + generated: 8192 + 64 = 8256 tokens · Batch: 1 · "
                         "Threads: 2 · Rank by: TPOT p50 (ms), lowest first")
        self.assertEqual(self.js("return getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.resize(500)  # a sheet on its end with many columns
        self.assertGreater(self.js("return document.querySelector('td.note').offsetWidth"), 130)
        for css, shown in (("#chart", True), ("#table", True), ("#ranking", True),
                           ("#chart-form", False), ("#views", False), ("#table-form", False)):
            self.assertEqual(self.find(css).is_displayed(), shown, css)
