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
        self.choose("#ask-unit", "GiB")
        self.assertIn("is the fastest of 5; all of them fit into 120 GiB.", self.lead())
        self.choose("#ask-unit", "MiB")
        self.assertIn("is the fastest of the 2 that fit into 120 MiB; 3 do not.", self.lead())
        self.assertEqual(self.lines()["Memory"], "110 MiB, 92 % of the budget: 10 MiB for the "
                                                 "KV cache, 100 MiB of weights")
        self.assertEqual(len(self.ranking()), 2)
        self.assertIn("does not fit: 13 MiB more than the budget, 133 MiB in all",
                      self.find("#not-ranked").text)
        self.type_into("#ask-budget", "111")
        self.assertEqual(self.lead(), "Only int4:g32 in one piece (contiguous/int4:g32) fits into "
                                      "111 MiB.")
        self.assertEqual(self.texts("#ranking thead th")[2:],
                         ["TPOT p50", "95 % interval", "attention error", "KV held at most",
                          "weights", "together", "of the budget"])
        self.assertEqual(self.texts("#ranking tbody td")[1:],
                         ["16.50 ms", "15.98 to 17.02", "11 %", "10 MiB", "100 MiB", "110 MiB",
                          "99 %"])
        self.assertEqual(self.find("#ranking tbody td:nth-child(6)").get_attribute("title"),
                         f"{10 * made_up.MIB} bytes (10 MiB)")
        self.type_into("#ask-budget", "0.05")
        self.choose("#ask-unit", "GiB")
        self.assertEqual(self.lead(), "Nothing that was measured there fits into 0.05 GiB. The "
                                      "smallest, int4:g32 in one piece (contiguous/int4:g32), "
                                      "takes 110 MiB.")

    def test_what_fits_and_cannot_be_ranked_is_no_part_of_the_ranked(self):
        rows = [made_up.row(engine, 8192) for engine in made_up.STEP_MS]
        rows[-1]["generic"] = True  # the smallest one
        self.open(assembled(made_up.page(rows=rows)))
        self.type_into("#ask-budget", "150")
        self.choose("#ask-unit", "MiB")
        self.assertIn("of the 2 ranked of 3 that fit into 150 MiB; 2 do not.", self.lead())

    def test_what_the_budget_counts(self):
        label = "label[for=ask-budget]"
        self.assertEqual(self.find(label).text, "Memory budget (KV cache and weights)")
        row = made_up.row("contiguous/f32", 1024)
        row["values"]["memory.weight_bytes"] = 0
        self.open(assembled(made_up.page(rows=[row])))
        self.assertEqual(self.find(label).text, "Memory budget (KV cache)")

    def test_a_budget_has_twelve_digits_at_most(self):
        self.type_into("#ask-budget", 400 * "9")
        self.assertIn(f"fit into {12 * '9'} GiB.", self.lead())

    def test_what_is_no_budget(self):
        for typed, said in (("two", "must be a number"), ("1e3", "must be a number"),
                            ("2GB", "the unit stands beside"), ("1.5 GiB", "the unit stands"),
                            ("512MiB", "the unit stands beside"),
                            ("1,024", "without a comma"), ("1,5", "without a comma"),
                            ("0", "more than 0"), ("-2", "more than 0")):
            self.type_into("#ask-budget", typed)
            self.assertIn(said, self.answer(), typed)
            self.assertEqual(self.ranking(), [])
            field = self.find("#ask-budget")
            self.assertEqual(field.get_attribute("aria-invalid"), "true")
            self.assertIn(said, self.find("#" + field.get_attribute("aria-describedby")).text)

    def test_what_was_not_measured_there_is_not_the_smallest(self):
        rows = [made_up.row("contiguous/f32", 8192), made_up.row("contiguous/int4:g32", 1024)]
        self.open(assembled(made_up.page(rows=rows)))
        self.type_into("#ask-budget", "0.01")
        self.assertIn("The smallest, f32 in one piece", self.lead())

    def test_one_engine_is_not_chosen_among_others(self):
        self.open(assembled(made_up.page(rows=[made_up.row("contiguous/f32", 8192)])))
        self.assertEqual(self.lead(),
                         "Only f32 in one piece (contiguous/f32) was measured there.")
        self.type_into("#ask-budget", "2")
        self.assertEqual(self.lead(), "Only f32 in one piece (contiguous/f32) was measured there; "
                                      "it fits into 2 GiB.")

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
        made_up.held_against(rows, 0, 1, 1.0152, [1.0112, 1.02], "faster")
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("f32 in one piece (contiguous/f32) is the fastest of 2", self.lead())
        self.assertIn("8.375 ms of f32 in pages of 16: 1.02 times as fast, round by round (95 % "
                      "interval 1.01 to 1.02)", self.lines()["TPOT p50"])
        self.choose("#ask-metric", "decode")
        self.assertIn("1.02 times as fast", self.lines()["decode"])

        self.assertIn("Round by round: the median of the ratios", self.find("#answer .muted").text)
        self.choose("#ask-metric", "attention p50")
        self.assertNotIn("Round by round", self.answer())

    def test_the_digit_that_decides_is_shown(self):
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "paged:16/f32")]
        made_up.held_against(rows, 0, 1, 1.0112, [1.0012, 1.02], "faster")
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("1.01 times as fast, round by round (95 % interval 1.001 to 1.02)",
                      self.lines()["TPOT p50"])
        rows[0]["speeds"][0].update(ratio=1.0002, interval=[1.00011, 1.0004])
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("1.0002 times as fast, round by round (95 % interval 1.0001 to 1.0004)",
                      self.lines()["TPOT p50"])

    def test_equal_figures_decide_nothing(self):
        rows = [made_up.row(f"contiguous/{name}", 1024) for name in ("f32", "f16")]
        for row in rows:
            row.update(intervals={})
            row["values"]["latency.tpot_ms.p50"] = 0
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between", self.lead())

    def test_how_to_use_it(self):
        self.assertEqual(self.texts("#answer dd code"),
                         ["kvmark run PLAN --engine contiguous/int4:g32"])
        rows = [row for row in made_up.rows() if row["context"] == 1024 and row["format"] == "f32"]
        self.open(assembled(made_up.page(rows=rows)))  # not decided
        self.assertEqual(self.texts("#answer dd code"),
                         ["kvmark run PLAN --engine contiguous/f32,paged:16/f32"])

    def test_who_is_slower_round_by_round_is_not_first(self):
        """Medians of different rounds may say the contrary."""
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "paged:16/f32")]
        made_up.held_against(rows, 0, 1, 0.95, [0.93, 0.97], "slower")
        self.open(assembled(made_up.page(rows=rows)))
        for metric in ("TPOT p50", "decode"):
            self.choose("#ask-metric", metric)
            self.assertEqual(self.lead(),
                             "f32 in pages of 16 (paged:16/f32) is the fastest of 2.")
            self.assertIn(": 1.05 times as fast, round by round (95 % interval 1.03 to 1.08)",
                          self.lines()[metric])
            self.assertIn("paged:16/f32", self.ranking()[0])
        self.choose("#ask-metric", "attention p50")  # no figure of whole steps
        self.assertIn("Not decided between f32 in one piece", self.lead())

    def test_what_is_equally_fast_is_decided(self):
        rows = [made_up.row(engine, 1024) for engine in made_up.STEP_MS]
        for row in rows:
            row["values"]["latency.tpot_ms.p50"] = 8.25
        for slow in (2, 3, 4):
            for fast in (0, 1):
                made_up.held_against(rows, fast, slow, 1.5, [1.4, 1.6], "faster")
        made_up.held_against(rows, 0, 1, 1.001, [0.995, 1.007], "same")
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.lead(), "The fastest of 5 are f32 in one piece (contiguous/f32) and "
                                      "f32 in pages of 16 (paged:16/f32), equally fast to within "
                                      "1 %.")
        for row in (0, 1):
            rows[row]["speeds"][-1]["verdict"] = "open"
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.lead(), "Not decided between f32 in one piece (contiguous/f32) and "
                                      "f32 in pages of 16 (paged:16/f32), of 5.")

    def test_all_that_are_called_equal_are_so(self):
        rows = [made_up.row(engine, 1024) for engine in list(made_up.STEP_MS)[:3]]
        for a, b, verdict in ((0, 1, "same"), (0, 2, "same"), (1, 2, "open")):
            made_up.held_against(rows, a, b, 1, [0.99, 1.01], verdict)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between", self.lead())

    def test_without_intervals_nothing_is_decided(self):
        rows = made_up.rows()
        for row in rows:
            row.update(intervals={}, rounds=3)
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.lead(), "Not decided between int4:g32 in one piece "
                                      "(contiguous/int4:g32) and int8:g32 in one piece "
                                      "(contiguous/int8:g32), of 5.")
        self.assertEqual(self.lines()["TPOT p50"], "16.50 ms of int4:g32 in one piece, against "
                         "25 ms of int8:g32 in one piece; 3 rounds without an interval")

    def test_what_took_no_turns_is_not_decided(self):
        rows = made_up.rows()
        for i, row in enumerate(rows):
            row["turn"] = f"group {i}"
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between int4:g32 in one piece", self.lead())
        self.assertIn("not measured side by side", self.lines()["TPOT p50"])

    def test_what_the_first_loses(self):
        self.assertEqual(self.lines()["Loss"], "attention error 11 % against uncompressed f32, "
                         "on random data, which ranks formats and says nothing of a text; a real "
                         "model and a text tell more: make model, configs/smollm2.yaml")
        error, kld = "accuracy.loss.attend_rel_rms", "accuracy.loss.kld_mean"
        top1 = "accuracy.loss.top1_agreement"
        for values, said in (
                ({error: 0}, "none: it computes what uncompressed f32 does"),
                ({error: 2e-6, kld: 0}, "none: the same as f32 up to the order of sums"),
                ({error: 6e-4, kld: 4.5e-7, top1: 0.984},
                 "KLD 4.5e-7 nats, top-1 98.4 % against uncompressed f32, on the text "
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

    def test_a_large_error_is_called_so(self):
        large = "large: much of the output is error"
        self.assertNotIn(large, self.lines()["Loss"])
        rows = [made_up.row(f"contiguous/{name}", 1024) for name in ("f32", "int4:g32")]
        rows[1]["values"]["accuracy.loss.attend_rel_rms"] = 0.43
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn(f"attention error 43 % against uncompressed f32 ({large}), on random data",
                      self.lines()["Loss"])
        for row in rows:
            row["intervals"]["latency.tpot_ms.p50"] = [2, 9]  # not decided
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn(f"most with int4:g32 in one piece (43 %, {large}), against",
                      self.lines()["Loss"])

    def test_of_what_is_undecided_bytes_and_losses_are_compared(self):
        rows = [made_up.row(engine, 8192) for engine in ("contiguous/f32", "contiguous/int8:g32")]
        for row in rows:
            row["values"]["latency.tpot_ms.p50"] = 25
            row["intervals"]["latency.tpot_ms.p50"] = [24, 26]
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("Not decided between f32 in one piece", self.lead())
        self.assertIn("; least of them with int8:g32 in one piece: 118 MiB", self.lines()["Memory"])
        self.assertIn("least with f32 in one piece (attention error 0), most with int8:g32 in one "
                      "piece (0.65 %)", self.lines()["Loss"])
        rows[0]["values"]["accuracy.loss.attend_rel_rms"] = 2e-6
        self.open(assembled(made_up.page(rows=rows)))
        self.assertIn("least with f32 in one piece (the same as f32 up to the order of sums), most",
                      self.lines()["Loss"])

    def test_generic_kernels_are_not_ranked_by_time(self):
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "contiguous/f16")]
        rows[1]["generic"] = True  # the faster one
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.texts("#ranking tbody td:nth-child(3)"), ["8.250 ms"])
        self.assertIn("its kernel is the generic one, whose cost says nothing of the format",
                      self.find("#not-ranked").text)
        self.choose("#ask-metric", "KV reserved")
        self.assertIn("f16 in one piece (contiguous/f16) is the smallest of 2.", self.lead())
        for row in rows:
            row["generic"] = True
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(len(self.ranking()), 2)
        self.assertEqual(self.lines()["In doubt"],
                         "f16 in one piece and f32 in one piece (generic kernel)")

    def test_generic_kernels_are_not_ranked_by_instructions(self):
        rows = [made_up.row(engine, 1024) for engine in ("contiguous/f32", "contiguous/f16")]
        path = "counters.instructions_per_step"
        for row, count in zip(rows, (2e6, 1e6)):
            row["values"] = {path: count, "memory.kv_reserved_bytes": made_up.MIB}
        metrics = [{"path": path, "title": "instructions/step", "unit": "", "noisy": False,
                    "better": "smaller", "definition": "Counted.", "is_choice": True},
                   *made_up.page()["metrics"]]
        self.open(assembled(made_up.page(rows=rows, metrics=metrics)))
        self.assertEqual(self.lead(), "f16 in one piece (contiguous/f16) takes the fewest "
                                      "instructions of 2.")
        rows[1]["generic"] = True
        self.open(assembled(made_up.page(rows=rows, metrics=metrics)))
        self.assertEqual(self.lead(), "Only f32 in one piece (contiguous/f32) can be ranked there.")
        self.assertIn("its kernel is the generic one", self.find("#not-ranked").text)
        rows[0]["generic"] = True
        self.open(assembled(made_up.page(rows=rows, metrics=metrics)))
        self.assertIn("(generic kernel)", self.lines()["In doubt"])

    def test_superlatives(self):
        for path, title, better, said in (
                ("latency.ttft_ms.p50", "TTFT p50", "smaller", "is the fastest to the first token"),
                ("latency.itl_ms.p50", "ITL p50", "smaller", "is the fastest"),
                ("latency.itl_ms.p99", "ITL p99", "smaller", "is the fastest at p99"),
                ("latency.attend_ms.p50", "attention", "smaller",
                 "is the fastest in the attention"),
                ("latency.e2e_ms.p50", "end to end", "smaller",
                 "is the fastest from the prompt to the last token"),
                ("throughput.prefill_tok_per_s", "prefill", "bigger",
                 "is the fastest at the prompt"),
                ("throughput.decode_tok_per_s", "decode", "bigger", "is the fastest"),
                ("memory.kv_live_bytes", "KV live", "smaller", "is the smallest"),
                ("accuracy.loss.top1_agreement", "top-1", "bigger", "agrees with f32 most often"),
                ("accuracy.loss.kld_mean", "KLD", "smaller", "loses least"),
                ("accuracy.loss.attend_rel_rms", "attention error", "smaller", "loses least"),
                ("work.bandwidth_fraction", "of ceiling", "bigger",
                 "comes nearest to the read ceiling"),
                ("work.flop_fraction", "of FMA rate", "bigger", "comes nearest to the FMA rate"),
                ("counters.instructions_per_step", "instructions/step", "smaller",
                 "takes the fewest instructions"),
                ("new.metric", "new one", "smaller", "comes first by new one")):
            with self.subTest(path):
                rows = [made_up.row(f"contiguous/{name}", 1024) for name in ("f32", "f16")]
                for row, value in zip(rows, (0.25, 0.5) if better == "smaller" else (0.5, 0.25)):
                    row.update(values={path: value}, intervals={path: [value, value]})
                metric = {"path": path, "title": title, "unit": "", "better": better,
                          "noisy": True, "definition": "What it is.", "is_choice": True}
                self.open(assembled(made_up.page(rows=rows, metrics=[metric])))
                self.assertEqual(self.lead(), f"f32 in one piece (contiguous/f32) {said} of 2.")

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

    def two_levels(self):
        """Whole steps and attention, each with room of its own; attention has one context more."""
        rows = []
        for context in (1024, 2048, 8192):
            for level, room in (("model", 128), ("attention", 64)):
                for engine in ("contiguous/f32", "contiguous/f16"):
                    row = made_up.row(engine, context)
                    row["case"].update(level=level, max_seq_len=context + room)
                    if level == "attention":
                        for path in ("latency.tpot_ms.p50", "memory.weight_bytes"):
                            row["values"].pop(path)
                    if level == "attention" or context < 8192:
                        rows.append(row)
        return rows

    def chosen(self, name):
        return self.js("return document.getElementById(arguments[0]).selectedOptions[0].text",
                       f"ask-{name}")

    def test_both_levels_are_explained(self):
        self.assertFalse(self.find("#levels").is_displayed())
        self.open(assembled(made_up.page(rows=self.two_levels())))
        self.assertIn("Whole steps: what a user waits for", self.find("#levels").text)
        self.assertEqual(self.find("#ask-setting").text.split("\n"),
                         ["whole steps · made-up · 8:2 heads of 64 · 4 layers",
                          "attention alone · made-up · 8:2 heads of 64 · 4 layers"])

    def test_what_was_chosen_is_kept_where_it_is_offered(self):
        self.open(assembled(made_up.page(rows=self.two_levels())))
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-metric", "decode")
        self.choose("#ask-setting", "attention alone")
        self.assertEqual(self.chosen("lengths"), "1024 + 64 = 1088 tokens")
        self.assertEqual(self.chosen("metric"), "decode (tokens/s), highest first")
        self.choose("#ask-metric", "attention p50")
        self.choose("#ask-lengths", "8192 + 64")  # of attention alone
        self.choose("#ask-setting", "whole steps")
        self.assertEqual(self.chosen("lengths"), "2048 + 64 = 2112 tokens")
        self.assertEqual(self.chosen("metric"), "attention p50 (ms), lowest first")
        self.choose("#ask-metric", "TPOT p50")
        self.choose("#ask-setting", "attention alone")
        self.assertEqual(self.chosen("lengths"), "8192 + 64 = 8256 tokens")
        self.assertNotIn("TPOT", self.chosen("metric"))
        self.choose("#ask-setting", "whole steps")
        self.assertEqual(self.chosen("metric"), "TPOT p50 (ms), lowest first")

    def test_machines_are_not_ranked_against_each_other(self):
        self.assertEqual(self.all("#ask-machine"), [])
        rows = [made_up.row(engine, 1024) for engine in made_up.STEP_MS]
        for row in rows[:2]:
            row["machine"] = "Slow CPU with 1 cores"
        rows.append({**made_up.without_figures("contiguous/f16", 1024, "skipped", "too large"),
                     "machine": "an unnamed CPU with unknown cores"})
        self.open(assembled(made_up.page(rows=rows)))
        self.assertEqual(self.find("#ask-machine").text.split("\n"),
                         ["Slow CPU with 1 cores", "Made-up 9000 with 2 cores"])
        self.assertEqual(len(self.ranking()), 2)
        self.choose("#ask-machine", "Made-up")
        self.assertEqual(len(self.ranking()), 3)

    def test_metric_to_rank_by(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-metric", "attention error")
        self.assertIn("share the first place by attention error of 5.", self.lead())
        self.assertEqual(self.lines()["attention error"], "0")
        self.choose("#ask-metric", "KV reserved")
        self.type_into("#ask-budget", "120")
        self.choose("#ask-unit", "MiB")
        self.assertIn("is the smallest of 5; all of them fit into 120 MiB.", self.lead())
        self.choose("#ask-metric", "decode")
        self.assertIn("int4", self.ranking()[0])

    def test_a_batch_of_its_own(self):
        self.choose("#ask-lengths", "1024 + 64")
        self.choose("#ask-batch", "4")
        self.assertEqual(len(self.ranking()), 2)
        self.assertEqual(self.find("#ask-threads").tag_name, "span")  # nothing to choose
