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

    def lead(self):
        return self.find("#answer p").text

    def lines(self):
        """What stands beneath the lead, by its term."""
        return dict(zip(self.texts("#answer dt"), self.texts("#answer dd")))

    def test_the_answer_changes_with_the_budget(self):
        self.choose("#ask-lengths", "8192 + 64")
        self.assertEqual(self.lead(), "int4:g32 in one piece (contiguous/int4:g32) is the fastest "
                                      "of 5.")
        self.assertEqual(self.lines()["TPOT p50"], "16.50 ms (95 % interval 15.98 to 17.02), "
                                                   "against 25 ms of int8:g32 in one piece")
        self.assertEqual(len(self.ranking()), 5)
        # 100 MiB of weights, 1 MiB more than is live, and 9, 17, 32 or 64 MiB of live rows.
        self.type_into("#ask-budget", "120")
        self.choose("#ask-unit", "MiB")
        self.assertIn("is the fastest of the 2 that fit into 120 MiB.", self.lead())
        self.assertEqual(self.lines()["Memory"], "110 MiB, 91.67 % of the budget: 10 MiB for the "
                                                 "KV cache, 100 MiB of weights")
        self.assertEqual(len(self.ranking()), 2)
        self.assertIn("does not fit: 133 MiB, 13 MiB too much", self.find("#not-ranked").text)
        self.type_into("#ask-budget", "111")
        self.assertEqual(self.lead(), "Only int4:g32 in one piece (contiguous/int4:g32) fits into "
                                      "111 MiB.")
        self.type_into("#ask-budget", "0.05")
        self.choose("#ask-unit", "GiB")
        self.assertEqual(self.lead(), "Nothing that was measured there fits into 0.05 GiB. The "
                                      "smallest, int4:g32 in one piece (contiguous/int4:g32), "
                                      "takes 110 MiB.")

    def test_what_is_no_budget(self):
        for typed, said in (("two", "must be a number"), ("1e3", "must be a number"),
                            ("1,024", "without a comma"), ("1,5", "without a comma"),
                            ("0", "more than 0"), ("-2", "more than 0")):
            self.type_into("#ask-budget", typed)
            self.assertIn(said, self.answer(), typed)
            self.assertEqual(self.ranking(), [])
            self.assertEqual(self.find("#ask-budget").get_attribute("aria-invalid"), "true")

    def test_what_was_not_measured_there_is_not_the_smallest(self):
        rows = [made_up.row("contiguous/f32", 8192), made_up.row("contiguous/int4:g32", 1024)]
        self.open(assembled(made_up.page(rows=rows)))
        self.type_into("#ask-budget", "0.01")
        self.assertIn("The smallest, f32 in one piece", self.lead())

    def test_overlapping_intervals_decide_nothing(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-metric", "TPOT p50")
        self.assertIn("is the fastest of 5", self.lead())
        # With both layouts of f32 alone:
        rows = [row for row in made_up.rows() if row["context"] == 1024 and row["format"] == "f32"]
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.lead(), "Not decided between f32 in one piece (contiguous/f32) and "
                                      "f32 in pages of 16 (paged:16/f32).")
        self.assertIn("against 8.375 ms of f32 in pages of 16; the intervals overlap",
                      self.lines()["TPOT p50"])

    def test_rounds_decide_where_rows_took_turns(self):
        """What disturbed the machine widens both intervals, and not their ratio."""
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "paged:16/f32")]
        rows[0]["speeds"] = [{"row": 1, "ratio": 1.0152, "interval": [1.0112, 1.02],
                              "verdict": "faster"}]
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("f32 in one piece (contiguous/f32) is the fastest of 2", self.lead())
        self.assertIn("8.375 ms of f32 in pages of 16: 1.02 times as fast, round by round (95 % "
                      "interval 1.01 to 1.02)", self.lines()["TPOT p50"])
        self.choose("#ask-metric", "decode")
        self.assertIn("1.02 times as fast", self.lines()["decode"])
        rows[0]["speeds"][0].update(interval=[0.991, 1.009], verdict="same")
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between", self.lead())
        self.assertTrue(self.lines()["TPOT p50"].endswith("(95 % interval 0.99 to 1.01)"))

    def test_without_intervals_nothing_is_decided(self):
        rows = made_up.rows()
        for row in rows:
            row.update(intervals={}, rounds=3)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.lead(), "Not decided between int4:g32 in one piece "
                                      "(contiguous/int4:g32) and int8:g32 in one piece "
                                      "(contiguous/int8:g32).")
        self.assertEqual(self.lines()["TPOT p50"], "int4:g32 in one piece came out first with "
                         "16.50 ms, against 25 ms of int8:g32 in one piece; 3 rounds without an "
                         "interval")

    def test_what_took_no_turns_is_not_decided(self):
        rows = made_up.rows()
        for i, row in enumerate(rows):
            row["turn"] = f"group {i}"
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between int4:g32 in one piece", self.lead())
        self.assertIn("not measured side by side", self.lines()["TPOT p50"])

    def test_what_the_first_loses(self):
        self.assertEqual(self.lines()["Loss"], "attention error 0.1100 against uncompressed f32, "
                         "on random data, which ranks formats and says nothing of a text")
        error, kld = "accuracy.loss.attend_rel_rms", "accuracy.loss.kld_mean"
        top1 = "accuracy.loss.top1_agreement"
        for values, said in (
                ({error: 0}, "none: it computes what uncompressed f32 does"),
                ({error: 2e-6, kld: 0}, "none: the same as f32 up to the order of sums"),
                ({error: 6e-4, kld: 4.5e-7, top1: 0.984},
                 "KLD 4.500e-7 nats, top-1 agreement 98.40 % against uncompressed f32, on the text "
                 "my.txt"),
                ({}, "not measured")):
            row = made_up.row("contiguous/f16", 1024)
            row["values"].pop(error)
            row["values"].update(values)
            row["case"]["score.text"] = "my.txt"
            metrics = made_up.page()["metrics"]
            for path, title, unit in ((kld, "KLD", "nats"), (top1, "top-1", "")):
                metrics.append({"path": path, "title": title, "unit": unit, "better": "smaller",
                                "noisy": False, "definition": f"What {title} is."})
            self.open(assembled(made_up.page(rows=[row], metrics=metrics)))
            self.assertEqual(self.lines()["Loss"], said)

    def test_of_what_is_undecided_bytes_and_losses_are_compared(self):
        rows = [made_up.row(engine, 8192) for engine in ("contiguous/f32", "contiguous/int8:g32")]
        for row in rows:
            row["values"]["latency.tpot_ms.p50"] = 25
            row["intervals"]["latency.tpot_ms.p50"] = [24, 26]
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between f32 in one piece", self.lead())
        self.assertIn("; least of them with int8:g32 in one piece: 118 MiB", self.lines()["Memory"])
        self.assertIn("least with f32 in one piece (attention error 0), most with int8:g32 in one "
                      "piece (0.006500)", self.lines()["Loss"])

    def test_generic_kernels_are_not_ranked_by_time(self):
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "contiguous/f16")]
        rows[1]["generic"] = True  # the faster one
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.texts("#ranking tbody td:nth-child(3)"), ["8.250"])
        self.assertIn("its kernel is the generic one, whose speed says nothing of the format",
                      self.find("#not-ranked").text)
        self.choose("#ask-metric", "KV reserved")
        self.assertIn("f16 in one piece (contiguous/f16) is the smallest of 2.", self.lead())
        for row in rows:
            row["generic"] = True
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(len(self.ranking()), 2)
        self.assertEqual(self.lines()["In doubt"],
                         "f16 in one piece and f32 in one piece (generic kernel)")

    def test_layers_that_follow_the_context(self):
        rows = [made_up.row("contiguous/f32", context) for context in (1024, 8192)]
        for row, layers in zip(rows, (32, 4)):
            row["case"].update(level="attention", layers=layers)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("4 to 32 layers", self.find("#ask-setting").text)
        self.assertTrue(self.lead().startswith("Attention of 4 layers alone: "), self.lead())
        self.choose("#ask-lengths", "1024 + 64")
        self.assertTrue(self.lead().startswith("Attention of 32 layers alone: "), self.lead())

    def test_one_token_has_no_speed_of_decoding(self):
        row = made_up.row("contiguous/f32", 1024)
        row["case"]["gen_len"] = 1
        row["values"] = {"latency.ttft_ms.p50": 4, "memory.kv_reserved_bytes": made_up.MIB}
        ttft = {"path": "latency.ttft_ms.p50", "title": "TTFT p50", "unit": "ms", "noisy": True,
                "better": "smaller", "definition": "Time to first token.", "is_choice": True}
        other = {**row, "engine": "contiguous/f16", "format": "f16", "values": {
            **row["values"], "latency.ttft_ms.p50": 9}}
        self.open(assembled(made_up.page(rows=[row, other],
                                         metrics=[ttft, *made_up.page()["metrics"]])))
        self.assertEqual(self.lead(), "f32 in one piece (contiguous/f32) is the fastest to the "
                                      "first token of 2.")
        self.assertIn("TTFT p50: Time to first token.", self.answer())
        self.assertEqual(self.find("#ask-metric").text.split("\n"),
                         ["TTFT p50 (ms), lowest first", "KV reserved, lowest first"])

    def test_settings_that_go_with_the_model_are_not_said(self):
        rows = [made_up.row("contiguous/f32", 1024), made_up.row("contiguous/f32", 1024)]
        for row, model, theta in zip(rows, "ab", (10000, 500000)):
            row["case"].update(model=model, **{"rope.theta": theta})
        self.open(assembled(made_up.page(rows=rows)))
        self.assertNotIn("rope", self.find("#ask-setting").text)
        self.show_view("choose axes")
        self.assertNotIn("rope", self.find("#chart-form").text)
        # With the same model's name only that tells the settings apart; with another shape not.
        rows[1]["case"]["model"] = "a"
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("rope.theta 10000", self.find("#ask-setting").text)
        rows[1]["case"]["head_dim"] = 128
        self.open(assembled(made_up.page(rows=rows)))
        self.assertNotIn("rope", self.find("#ask-setting").text)

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
        self.assertIn("are equal.", self.lead())
        self.assertEqual(self.lines()["attention error"], "0")
        self.choose("#ask-metric", "decode")
        self.assertIn("int4", self.ranking()[0])

    def test_a_batch_of_its_own(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-batch", "4")
        self.assertEqual(len(self.ranking()), 2)
        self.assertEqual(self.find("#ask-threads").tag_name, "span")  # nothing to choose
