"""What stands on a page above and below its parts."""

import json

from selenium.webdriver.common.by import By

import made_up
from browser import PageTest
from pages import assembled


class HeadAndFootTest(PageTest):
    data = made_up.page()

    def test_head(self):
        self.assertEqual(self.find("h1").text, "made-up & <b>bold</b>")
        self.assertEqual(self.driver.title.strip(), "made-up & <b>bold</b>")
        self.assertEqual(self.find("#machine").text, "Made-up 9000 · 2 cores · 2026-01-02")
        self.assertIn("don't carry over to GPUs", self.find("#caveat").text)
        sentences = self.texts("#sentences li")
        self.assertEqual(len(sentences), 3)
        self.assertIn("Undecided: paged against", sentences[1])
        self.assertIn("Warning: 1 row failed", sentences[2])
        self.assertIn("load 2.8 on 2 cores", self.find("#warnings").text)

    def test_rows_that_know_nothing_of_the_machine_do_not_spoil_the_head(self):
        environment = [{"what": "cpu", "values": ["Made-up 9000", "unknown"]},
                       {"what": "cores", "values": ["1"]}]
        self.open(assembled(made_up.page(environment=environment)))
        self.assertEqual(self.find("#machine").text, "Made-up 9000 · 1 core · 2026-01-02")

    def test_equal_titles_are_told_apart(self):
        metrics = made_up.page()["metrics"]
        for metric in metrics:
            if metric["path"] in ("memory.kv_live_bytes", "memory.kv_reserved_bytes"):
                metric["title"] = "KV"
        self.open(assembled(made_up.page(metrics=metrics)))
        own = "KV (kv_reserved_bytes)"
        self.show_view("choose axes")
        self.assertIn(own, self.find("#chart-y").text.split("\n"))
        self.assertIn(own, self.find("#table thead").text)
        self.assertEqual(self.texts("label[for='column-memory.kv_reserved_bytes']"), [f" {own}"])

    def test_the_page_is_all_that_is_loaded(self):
        self.assertEqual(self.requests(), [self.path.as_uri()])
        self.js("fetch('https://example.invalid/')")  # the page's own policy refuses it
        self.wait_for("return document.readyState", "complete")
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        self.assertTrue(any("Content Security Policy" in error for error in errors), errors)

    def test_names_are_text_only(self):
        self.assertEqual(self.all("img"), [])
        self.assertNotEqual(self.driver.title, "run")
        self.assertIn(made_up.HOSTILE, self.find("main").text)

    def test_no_value_is_shown_as_a_programs_word(self):
        for details in self.all("details"):
            self.js("arguments[0].open = arguments[0].closest('#plan') === null", details)
        text = self.find("body").text
        for word in ("null", "NaN", "undefined", "Infinity", "[object"):
            self.assertNotIn(word, text)

    def test_definitions_environment_plan_and_making(self):
        for details in self.all("#definitions details, #plan details"):
            self.press(details.find_element(By.TAG_NAME, "summary"))
        self.assertEqual(len(self.all("#definitions dt")),
                         len(self.data["metrics"]) + len(self.data["settings"]))
        self.assertIn("Made-up 9000", self.find("#environment").text)
        self.assertIn("load unknown", self.find("#environment").text)
        region = self.find("#environment .scroll")
        self.assertEqual([region.get_attribute("tabindex"), region.aria_role,
                          region.accessible_name], ["0", "region", "Environment"])
        self.assertEqual(json.loads(self.find("#plan pre").text), self.data["runs"][0]["plan"])
        self.assertIn("kvmark test", self.find("#about").text)
        self.assertIn("Chart.js 3.", self.find("#about").text)

    def test_figures_as_text(self):
        for call, text in [("number(0)", "0"), ("number(12)", "12"), ("number(0.12345)", "0.1235"),
                           ("number(12345.6)", "12346"), ("number(0.00012345)", "1.234e-4"),
                           ("number(NaN)", "—"), ("bytes(1536)", "1.5 KiB"),
                           ("bytes(123456789)", "118 MiB"), ("bytes(3 * 2 ** 30)", "3 GiB"),
                           ("bytes(2.001 * 2 ** 20)", "2 MiB"),
                           ("bytes(127.96 * 2 ** 20)", "128 MiB"),
                           ("bytes(undefined)", "—"), ("rough(0.04682)", "0.047"),
                           ("rough(4.682)", "4.7"), ("rough(4)", "4.0"), ("rough(99.7)", "100"),
                           *((f"losses.figure('accuracy.loss.top1_agreement', {part})", said)
                             for part, said in ((0.984, "98.4 %"), (0.9995, "more than 99.9 %"),
                                                (1, "100 %"))),
                           ("text(null)", "—"), ("listed(['a', 'b', 'c'])", "a, b and c")]:
            with self.subTest(call):
                self.assertEqual(self.js(f"return kvmark.{call}"), text)

    def test_pages_of_little(self):
        failed = made_up.without_figures("contiguous/f16", 1024, "failed", "died")
        bare = {**made_up.row("contiguous/f16", 1024), "cumulative": None, "timeline": None,
                "itl_quantiles_ms": None, "intervals": {}, "n": {}, "rounds": None}
        few = {**bare, "values": {"memory.kv_live_bytes": 0}}
        for name, rows in [("none", []), ("failed", [failed]), ("one", [bare]), ("few", [few])]:
            with self.subTest(name):
                self.open(assembled(made_up.page(rows=rows, summary=[], warnings=[])))
                self.assertEqual(len(self.texts("#table tbody tr")), len(rows))
                self.assertEqual(self.find("#charts").is_displayed(), name in ("one", "few"))
                self.assertEqual(self.find("#question").is_displayed(), name != "none")
                self.assert_quiet()
