"""Pages that the program writes of committed records."""

import functools
import re
import unittest

from selenium.webdriver.support.ui import Select

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
        self.choose("#ask-setting", "attention alone · llama-3-8b")
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


AGAINST = re.compile(r"of ([^:,]+): ([\d.]+) times as fast, round by round "
                     r"\(95 % interval ([\d.]+) to ([\d.]+)\)")


@unittest.skipUnless(pages.KVMARK, "needs --kvmark PROGRAM")
class SweepTest(PageTest):
    def text(self):
        return reported("sweep.jsonl")

    def choose_place(self):
        self.choose("#ask-setting", "whole steps · seed-gqa · 8:8 heads")
        self.choose("#ask-lengths", "8160 + 32 ")
        self.type_into("#ask-budget", "2")

    def rows_there(self):
        """The rows that are asked for, by their engines in words."""
        rows = self.js("return kvmark.data.rows")
        names = self.js("return kvmark.data.rows.map(kvmark.engineInWords)")
        return {name: row for name, row in zip(names, rows)
                if row["case"]["level"] == "model" and row["case"]["prompt_len"] == 8160 and
                row["case"]["kv_heads"] == 8}

    def test_which_cache_at_8k_under_2_gib(self):
        self.choose_place()
        there, lead = self.rows_there(), self.find("#answer p").text
        lines = dict(zip(self.texts("#answer dt"), self.texts("#answer dd")))
        self.assertEqual(len(self.texts("#ranking tbody tr")), len(there))
        name, engine = re.search(r"([\w:]+ in [\w ]+) \((\S+)\)", lead).groups()
        first = there[name]
        self.assertEqual(engine, first["engine"])
        self.assertIn("fit into 2 GiB", lead)
        record = next(row for row in pages.rows_of("sweep.jsonl")
                      if row["case_id"] == first["id"])
        self.assertEqual(record["case"]["engine"], engine)
        self.assertIn(f"{record['latency']['tpot_ms']['p50']:#.4g} ms", lines["TPOT p50"])
        told = AGAINST.findall(lines["TPOT p50"])
        self.assertGreater(len(told), 0)
        for other, *figures in told:
            speed = next(speed for speed in first["speeds"]
                         if self.js("return kvmark.data.rows[arguments[0]].id", speed["row"]) ==
                         there[other]["id"])
            for told_as, figure in zip(figures, (speed["ratio"], *speed["interval"])):
                self.assertAlmostEqual(float(told_as), figure, delta=0.005)

    def test_each_metric_to_choose_by_has_words(self):
        self.choose_place()
        metrics = [option.text for option in Select(self.find("#ask-metric")).options]
        self.assertGreater(len(metrics), 9)
        for metric in metrics:
            self.choose("#ask-metric", metric)
            self.assertNotIn("comes first by", self.find("#answer p").text, metric)


@unittest.skipUnless(pages.KVMARK, "needs --kvmark PROGRAM")
class TwoRunsTest(PageTest):
    def text(self):
        return reported("cpu-speed-quick-70.jsonl", "cpu-speed-quick.jsonl")

    def test_it_is_a_comparison(self):
        self.assertIn("worse", self.find("#comparison .answer").text)
        self.show_view("new against base")
        self.assertEqual(len(self.series()[0]["data"]), 8)
        self.shoot("records-comparison")
