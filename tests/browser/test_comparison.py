"""The page of two runs."""

import made_up
from browser import PageTest
from pages import assembled


class ComparisonTest(PageTest):
    data = made_up.comparison_page()

    def test_verdict_cases_and_surroundings(self):
        self.assertEqual(self.find("#comparison .answer").text, "broken: 1 case failed")
        self.assertIn("6 cases; metrics: 1 worse, 1 undecided, 1 better, 7 same.",
                      self.find("#comparison-body").text)
        rows = self.texts("#comparison-table tbody tr")
        self.assertEqual(len(rows), 3)
        self.assertIn("✗ worseTPOT p50 baseTPOT p50 newTPOT p50 changeTPOT p50 threshold3σ of 12",
                      rows[0])
        self.assertIn("? undecided", rows[1])
        self.assertIn("✓ better", rows[2])
        items = self.texts("#comparison li")
        self.assertIn("✗ broke: bf16 at 1024+64: ok → failed: killed by SIGKILL " +
                      made_up.HOSTILE, items)
        self.assertIn(f"vanished from the new side: old engine {made_up.HOSTILE}", items)
        self.assertIn("git: aaaa → bbbb", items)
        self.click("#comparison-all")
        rows = self.texts("#comparison-table tbody tr")
        self.assertEqual(len(rows), 10)
        self.assertIn("KV live base", rows[4])
        self.assertIn("KV live new—KV live threshold", rows[4])  # a change without a text
        self.shoot("comparison")

    def test_ratios_are_drawn_with_their_verdicts(self):
        self.show_view("new against base")
        ratios, band = self.series()
        self.assertEqual([point["x"] for point in ratios["data"]], [1.25, 1, 0.75, 1, 1])
        self.assertEqual([round(x, 6) for x in band["data"][0]["x"]], [0.909091, 1.1])
        self.assertEqual(self.find("#chart-ratio").text, "TPOT p50\nKV live")
        lines = self.hover(0, 0)
        self.assertIn("worse: 8.25 → 10.3125 ms", lines)
        self.assertIn("3σ of 12 earlier runs", lines)

    def test_both_runs_are_in_the_charts_and_the_question(self):
        self.show_view("step times")
        self.assertEqual(len(self.series()), 10)
        self.assertIn("From pale to full: base; new.", self.find("#chart-note").text)
        self.assertEqual(len(self.texts("#ranking tbody tr")), 5)
        self.choose("#ask-run", "base")
        self.assertIn("against 3.125 ms of int8", self.find("#answer").text)

    def test_doubts_say_of_which_run(self):
        page = made_up.comparison_page()
        page["rows"][9]["doubts"] = ["threads had to wait for a core"]  # new, the fastest
        self.open(assembled(page))
        self.assertIn("In doubt, new", self.texts("#answer dt"))

    def test_widths(self):
        for width in (390, 1440):
            self.resize(width)
            self.assert_no_overflow(width)
            self.shoot(f"comparison-{width}")

    def test_what_hovering_says_fits_into_a_narrow_chart(self):
        self.resize(390)
        self.assert_no_overflow(390)
        self.show_view("new against base")
        self.assertIn("1024+64", self.hover(0, 3))
        left, width, chart = self.js("""const chart = Chart.getChart('chart');
            return [chart.tooltip.x, chart.tooltip.width, chart.width]""")
        self.assertGreaterEqual(left, 0)
        self.assertLessEqual(left + width, chart)
