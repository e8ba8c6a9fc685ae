"""What stands on a page above and below its parts."""

import json

from selenium.webdriver.common.by import By

import made_up
from browser import PageTest


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
        self.assertIn("—", self.find("#environment").text)
        self.assertEqual(json.loads(self.find("#plan pre").text), self.data["runs"][0]["plan"])
        self.assertIn("kvmark test", self.find("#about").text)
        self.assertIn("Chart.js 3.", self.find("#about").text)
