"""Pages that the program writes of committed records."""

import functools
import unittest

import pages
from browser import PageTest

CODECS = "quickstart-codecs.jsonl"
reported = functools.cache(pages.reported)


@unittest.skipUnless(pages.KVMARK, "needs --kvmark PROGRAM")
class CodecsTest(PageTest):
    rows = pages.rows_of(CODECS)

    def text(self):
        return reported(CODECS)

    def row(self, engine, prompt):
        return next(row for row in self.rows if row["case"]["engine"] == engine and
                    row["case"]["prompt_len"] == prompt)

    def test_all_rows_are_there(self):
        self.assertEqual(len(self.texts("#table tbody tr")), len(self.rows))
        self.assertGreater(len(self.texts("#sentences li")), 1)

    def test_hover_shows_the_records_value(self):
        self.show_view("attention time against context")
        at = [one["label"] for one in self.series()].index("fp16 (contiguous/f16)")
        attend = self.row("contiguous/f16", 1024)["latency"]["attend_ms"]
        lines = self.hover(at, 0)
        self.assertIn(f"attention p50: {attend['p50']} ms", lines)
        self.assertIn(f"n = {attend['n']}", lines)

    def test_a_budget_is_answered(self):
        self.choose("#ask-setting", "llama-3-8b")
        self.choose("#ask-lengths", "16384")
        self.type_into("#ask-budget", "50")
        self.choose("#ask-unit", "MiB")
        fitting = [row["case"]["engine"] for row in self.rows
                   if row["case"]["prompt_len"] == 16384 and
                   row["memory"]["kv_reserved_bytes"] <= 50 * 2**20]
        self.assertEqual(len(self.texts("#ranking tbody tr")), len(fitting))

    def test_every_view_at_every_width(self):
        for width in (390, 1440):
            self.resize(width)
            for view in range(len(self.all("#views button"))):
                self.click(f"#view-{view}")
                self.assertGreater(len(self.series()), 0)
                self.assert_no_overflow(width)
            self.click("#view-0")
            self.shoot(f"records-{width}")


@unittest.skipUnless(pages.KVMARK, "needs --kvmark PROGRAM")
class TwoRunsTest(PageTest):
    def text(self):
        return reported("cpu-speed-quick-70.jsonl", "cpu-speed-quick.jsonl")

    def test_it_is_a_comparison(self):
        self.assertIn("worse", self.find("#comparison .answer").text)
        self.show_view("new against base")
        self.assertEqual(len(self.series()[0]["data"]), 8)
        self.shoot("records-comparison")
