"""The records' check must accept what the schema allows and name what it does not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).parents[1] / "check_records.py"
SCHEMA = '{"type":"object","required":["n"],"properties":{"n":{"type":["number","null"]}}}'


def run_check(records):
    with tempfile.TemporaryDirectory() as folder:
        schema, lines = pathlib.Path(folder, "schema.json"), pathlib.Path(folder, "records.jsonl")
        schema.write_text(SCHEMA, encoding="utf-8")
        lines.write_text(records, encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, CHECK, schema, lines], capture_output=True, text=True, check=False
        )
        return answer.returncode, answer.stderr


class CheckRecords(unittest.TestCase):
    def test_valid_records(self):
        self.assertEqual(run_check('{"n":1.5}\n{"n":null}\n'), (0, ""))

    def test_every_fault_is_found(self):
        for fault, expected in {
            '{"n":"1"}': "n: ",
            "{}": "'n' is a required property",
            '{"n":NaN}': "NaN is not JSON",
            '{"n":1': "records.jsonl:2",
        }.items():
            code, errors = run_check('{"n":1}\n' + fault + "\n")
            self.assertEqual(code, 1, fault)
            self.assertIn(expected, errors)

    def test_no_record_at_all(self):
        self.assertEqual(run_check("")[0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
