"""Reading and grouping."""

import os
import tempfile
import unittest

import records as reading
from testing import bare, failed, over_contexts, quickstart, record


class TestValues(unittest.TestCase):
    def test_get_takes_null_for_missing(self):
        self.assertEqual(reading.get({"a": {"b": None}}, "a.b", 7), 7)
        self.assertEqual(reading.get({"a": {"b": 0}}, "a.b", 7), 0)
        self.assertIsNone(reading.get({"a": 1}, "a.b"))

    def test_numbers_are_finite_numbers(self):
        row = {"a": [True, "3", float("nan"), float("inf"), None], "n": 0, "b": True, "s": "1"}
        self.assertEqual(reading.number(row, "n"), 0)
        for path in ("a", "b", "s", "missing"):
            self.assertIsNone(reading.number(row, path))
        self.assertEqual(reading.series(row, "a"), [])

    def test_an_interval_has_two_bounds(self):
        self.assertEqual(reading.interval({"a": [1, 2]}, "a"), [1, 2])
        self.assertIsNone(reading.interval({"a": [1]}, "a"))
        self.assertIsNone(reading.interval({"a": [1, None]}, "a"))

    def test_context_is_the_prompt_or_else_the_length(self):
        self.assertEqual(reading.context(record("recompute", prompt=64)), 64)
        self.assertEqual(reading.context(record("recompute")), 511)
        self.assertEqual(reading.positions(record("recompute")), 511)
        self.assertEqual(reading.positions_seen(record("recompute", 1024, 16)), 1032)


class TestChoice(unittest.TestCase):
    def test_the_last_row_of_a_case_counts(self):
        first, again, other = (record(e) for e in ("paged:16/f32", "paged:16/f32", "recompute"))
        again["status"] = "failed"
        self.assertEqual(reading.latest([first, other, again]), [again, other])
        again["env"] = {"cpu": "another"}  # resumed there
        self.assertEqual(reading.latest([first, other, again]), [again, other])

    def test_rows_without_an_id_all_stay(self):
        rows = [bare("recompute"), bare("recompute")]
        self.assertEqual(len(reading.latest(rows)), 2)

    def test_figures_of_a_row_that_misses_its_gate_count(self):
        row = record("contiguous/int4:g32")
        self.assertTrue(reading.has_figures(row))
        row["status"] = "invalid"
        self.assertTrue(reading.has_figures(row))
        row["accuracy"]["correct"]["passed"] = False
        self.assertFalse(reading.has_figures(row))
        self.assertFalse(reading.has_figures(failed("recompute")))
        self.assertFalse(reading.has_figures({"status": "invalid", "accuracy": None}))

    def test_counted_instructions_are_figures_too(self):
        row = {"status": "invalid", "accuracy": {"correct": {"passed": True}},
               "latency": {"tpot_ms": None}, "counters": {"instructions_per_step": None}}
        self.assertFalse(reading.has_figures(row))
        row["counters"]["instructions_per_step"] = 1000
        self.assertTrue(reading.has_figures(row))

    def test_a_case_of_several_runs_counts_once(self):
        first, alone, last = (record(e) for e in ("paged:16/f32", "recompute", "paged:16/f32"))
        self.assertEqual(reading.counting([[first, alone], [last]]), ([last, alone], 1))
        last["status"] = "failed"  # takes nothing back
        self.assertEqual(reading.counting([[first, alone], [last]]), ([first, alone], 0))
        again = record("paged:16/f32")  # as after --resume: of one run, so nothing to say
        self.assertEqual(reading.counting([[first, again]]), ([again], 0))
        again["env"] = {"cpu": "another"}
        self.assertEqual(reading.counting([[first], [again]]), ([first, again], 0))

    def test_a_gate_does_not_part_an_engine_from_its_group(self):
        rows = quickstart()
        rows[3]["case"]["gate"] = {"kld_mean_max": 1e-4}
        self.assertEqual([len(group) for group in reading.group(rows)], [5])
        rows[0]["case"]["kv_heads"] = 8
        self.assertEqual([len(group) for group in reading.group(rows)], [1, 4])

    def test_machines_have_groups_of_their_own(self):
        rows = quickstart()
        rows[1]["env"] = {"cpu": "another"}
        self.assertEqual([len(group) for group in reading.group(rows)], [4, 1])

    def test_layers_part_whole_steps_only(self):
        for level, groups in (("attention", 1), ("model", 2)):
            rows = [record("contiguous/f16", level=level, layers=layers) for layers in (4, 8)]
            self.assertEqual(len(reading.group(rows)), groups)

    def test_fullest_is_the_longest_with_most_engines(self):
        rows = over_contexts(["contiguous/f16", "recompute"])
        self.assertEqual({reading.context(r) for r in reading.fullest(rows)}, {16384})
        self.assertEqual({reading.context(r) for r in reading.fullest(rows[:-1])}, {4096})
        self.assertEqual(reading.fullest([]), [])

    def test_one_length_of_each_context(self):
        rows = over_contexts(["contiguous/f16", "contiguous/f32"])
        shorter = record("contiguous/f16", 4096, 2, "attention")
        self.assertEqual(reading.one_length_each([shorter, *rows]), rows)

    def test_generic_kernels_are_told_apart_where_others_are_not(self):
        rows = [record("contiguous/f16"), record("contiguous/int8:g32")]
        rows[1]["kernel"] = "generic"
        self.assertEqual(reading.timed_names(rows), {
            "contiguous/f16": "f16", "contiguous/int8:g32": "int8:g32 (generic kernel)"})
        rows[0]["kernel"] = "generic"
        self.assertEqual(reading.timed_names(rows), reading.names(rows))

    def test_engines_are_called_by_their_formats(self):
        self.assertEqual(list(reading.names(quickstart()).values()),
                         ["recompute", "f32", "paged:16/f32", "f16", "int8:g32"])
        self.assertEqual(reading.short_name("contiguous/f16/grow:2"), "f16/grow:2")
        self.assertEqual(reading.short_name("contiguous"), "contiguous")
        self.assertEqual(len(reading.short_name("x" * 10000)), 60)


class TestFile(unittest.TestCase):
    def test_a_mark_at_the_start_is_no_damage(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.jsonl")
            with open(path, "w", encoding="utf-8-sig") as file:
                file.write('{"status": "ok"}\n{}\n')
            self.assertEqual(reading.load(folder), [{"status": "ok"}, {}])


if __name__ == "__main__":
    unittest.main()
