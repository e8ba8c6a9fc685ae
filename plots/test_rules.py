"""Rules that stand in the program too (bench/): pictures, page and tables must not disagree."""

import pathlib
import re
import unittest

import break_even
import estimates
import growth
import records
import style

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"


def value_of(constant):
    """What a constant of the program is set to: a number, or the text between its braces."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(BENCH.rglob("*.[ch]*"))]
    found = [value for text in texts for value in re.findall(
        rf"\b(?:constexpr|const)\b[^;=]*\b{constant}(?:\[\])? = ([^;]*);", text)]
    if len(found) != 1:
        raise AssertionError(f"{constant} is set {len(found)} times in {BENCH}")
    value = found[0]
    return value.strip("{}\n ") if value.startswith("{") else float(value)


def strings_of(constant):
    return tuple(re.findall(r'"(.*?)"', value_of(constant)))


class TestRules(unittest.TestCase):
    def test_what_is_too_little_to_say(self):
        self.assertEqual(growth.GROWTH_TOKENS, value_of("kGrowthTokens"))
        self.assertEqual(growth.FEWEST_ROUNDS, value_of("kIntervalSamples"))

    def test_which_speed_is_the_same(self):
        self.assertEqual(break_even.SAME_SPEED, value_of("kSameSpeed"))

    def test_quantiles(self):
        quantiles = tuple(float(number) for number in value_of("kStudent").split(","))
        self.assertEqual(estimates.STUDENT, quantiles)
        self.assertEqual(estimates.STUDENT_OF_MORE, value_of("kStudentOfMore"))

    def test_keys_of_a_case(self):
        self.assertEqual(records.ENGINE_KEYS, strings_of("kEngineKeys"))
        self.assertEqual(records.LENGTH_KEYS, strings_of("kLengthKeys"))

    def test_which_settings_are_usual(self):
        words = {"true": True, "false": False}
        usual = re.findall(r'\{"(\w+)", (?:"(\w+)"|(\w+))\}', "{" + value_of("kUsual") + "}")
        self.assertEqual(style.UNUSUAL, {key: text or words[word] for key, text, word in usual})


if __name__ == "__main__":
    unittest.main()
