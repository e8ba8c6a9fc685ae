"""The question box: which cache should I use?"""

import made_up
from browser import PageTest
from pages import assembled


class QuestionTest(PageTest):
    data = made_up.page()

    def answer(self):
        return self.find("#answer").text

    def ranking(self):
        return self.texts("#ranking tbody th")

    def test_the_answer_changes_with_the_budget(self):
        self.choose("#ask-lengths", "8192 + 64")
        self.assertTrue(self.answer().startswith(
            "int4:g32 in one piece is the fastest of 5: TPOT p50 16.50 ms (95 % interval 15.98 to "
            "17.02), against 25 ms of int8:g32 in one piece."), self.answer())
        self.assertEqual(len(self.ranking()), 5)
        # 100 MiB of weights, 1 MiB more than is live, and 9, 17, 32 or 64 MiB of live rows.
        self.type_into("#ask-budget", "120")
        self.choose("#ask-unit", "MiB")
        self.assertIn("of the 2 that fit into 120 MiB", self.answer())
        self.assertEqual(len(self.ranking()), 2)
        self.assertIn("does not fit: 133 MiB, 13 MiB too much", self.find("#not-ranked").text)
        self.type_into("#ask-budget", "111")
        self.assertTrue(self.answer().startswith("Only int4:g32 in one piece fits into 111 MiB"),
                        self.answer())
        self.type_into("#ask-budget", "0,05")
        self.choose("#ask-unit", "GiB")
        self.assertIn("Nothing that was measured there fits into 0.05 GiB. The smallest, int4:g32 "
                      "in one piece, takes 110 MiB.", self.answer())
        self.type_into("#ask-budget", "two")
        self.assertIn("must be a number", self.answer())

    def test_overlapping_intervals_decide_nothing(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-metric", "TPOT p50")
        self.assertIn("is the fastest of 5", self.answer())
        # With both layouts of f32 alone:
        rows = [row for row in made_up.rows() if row["context"] == 1024 and row["format"] == "f32"]
        self.open(assembled(made_up.page(rows=rows)))
        self.assertTrue(self.answer().startswith(
            "Not decided between f32 in one piece and f32 in pages of 16: their intervals of TPOT "
            "p50 overlap;"), self.answer())

    def test_without_intervals_nothing_is_decided(self):
        rows = made_up.rows()
        for row in rows:
            row.update(intervals={}, rounds=3)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertTrue(self.answer().startswith(
            "int4:g32 in one piece came out first: TPOT p50 16.50 ms, against 25 ms. 3 rounds "
            "without an interval: not decided between int4:g32 in one piece and int8:g32 in one "
            "piece."), self.answer())

    def test_what_took_no_turns_is_not_decided(self):
        rows = made_up.rows()
        for i, row in enumerate(rows):
            row["turn"] = f"group {i}"
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not measured side by side: not decided between int4:g32 in one piece and "
                      "int8:g32 in one piece.", self.answer())

    def test_times_of_the_attention_alone_are_called_so(self):
        self.assertFalse(self.answer().startswith("Attention"), self.answer())
        rows = made_up.rows()
        for row in rows:
            row["case"]["level"] = "attention"
            row["values"].pop("memory.weight_bytes", None)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertTrue(self.answer().startswith("Attention of 4 layers alone: "), self.answer())
        self.assertIn("not the weights, the program", self.find("#answer-details").text)

    def test_a_cache_that_grows_needs_its_peak(self):
        rows = made_up.rows()
        for row in rows:
            row["values"]["memory.kv_peak_bytes"] = 60 * made_up.MIB
        self.open(assembled(made_up.page(rows=rows)))
        self.choose("#ask-lengths", "1024 + 64")
        self.type_into("#ask-budget", "150")
        self.choose("#ask-unit", "MiB")
        self.assertIn("takes 160 MiB", self.answer())

    def test_reasons_of_what_is_not_ranked(self):
        self.choose("#ask-lengths", "2048 + 64")
        self.assertIn("Nothing that was measured there can be ranked.", self.answer())
        reasons = self.find("#not-ranked").text
        self.assertIn("invalid: attend_rel_rms 0.11 above the gate", reasons)
        self.assertIn("skipped: needs 9 GiB", reasons)
        self.assertIn("paged:16/f32): not measured there", reasons)

    def test_metric_to_rank_by(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-metric", "attention error")
        self.assertIn("f32 in one piece and f32 in pages of 16 are equal: attention error 0.",
                      self.answer())
        self.choose("#ask-metric", "decode")
        self.assertIn("int4", self.ranking()[0])

    def test_a_batch_of_its_own(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-batch", "4")
        self.assertEqual(len(self.ranking()), 2)
        self.assertEqual(self.find("#ask-threads").tag_name, "span")  # nothing to choose
