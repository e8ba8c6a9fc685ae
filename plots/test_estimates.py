"""Exponents, intervals and ratios."""

import math
import unittest

import numpy as np

import estimates
from testing import record


class TestExponent(unittest.TestCase):
    def test_of_a_power(self):
        x = np.arange(1, 9)
        b, half_width = estimates.exponent(x, 3 * x**1.5)
        self.assertAlmostEqual(b, 1.5)
        self.assertAlmostEqual(half_width, 0, places=6)

    def test_two_points_have_no_interval_and_one_nothing(self):
        self.assertEqual(estimates.exponent([1, 2], [1, 4]), (2.0, None))
        self.assertIsNone(estimates.exponent([2, 2], [1, 4]))
        self.assertIsNone(estimates.exponent([], []))

    def test_scatter_widens_the_interval(self):
        # Off by ±10 % around x^1: the half width is t(1) = 12.706 times the error of the slope.
        b, half_width = estimates.exponent([1, 2, 4], [1.1, 1.8, 4.4])
        self.assertAlmostEqual(b, 1.0)
        off = np.log([1.1, 1.8, 4.4]) - np.log([1, 2, 4])
        off -= off.mean()
        spread = np.log([1, 2, 4]) - np.log(2)
        self.assertAlmostEqual(half_width, 12.706 * np.sqrt(off @ off / (spread @ spread)))

    def test_students_t_holds_95_percent(self):
        for degrees in (*range(1, 19), 19, 40):
            t = estimates.student(degrees)
            share = within(t, degrees)
            self.assertGreaterEqual(share, 0.95 - 1e-4, degrees)
            if degrees <= 19:
                self.assertAlmostEqual(t, inverse_of_95(degrees), delta=6e-4, msg=degrees)


def within(t, degrees):
    """The part of Student's distribution that lies in [-t, t], by the trapezoid rule."""
    x = np.linspace(-t, t, 20001)
    gamma = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    density = math.exp(gamma) / math.sqrt(degrees * math.pi) * (
        1 + x * x / degrees) ** (-(degrees + 1) / 2)
    return float(np.trapz(density, x))


def inverse_of_95(degrees):
    low, high = 1.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle, degrees) > 0.95 else (middle, high)
    return low


class TestMedianInterval(unittest.TestCase):
    def test_needs_six(self):
        self.assertEqual(estimates.median_interval([3, 1, 2, 5, 4]), (3.0, None, None))
        self.assertEqual(estimates.median_interval([3, 1, 2, 5, 4, 6]), (3.5, 1, 6))

    def test_ranks_of_the_tables(self):
        # Binomial(9, 1/2): P(X <= 1) = 0.0195, P(X <= 2) = 0.09.
        self.assertEqual(estimates.median_interval(range(1, 10)), (5.0, 2, 8))


class TestSpeed(unittest.TestCase):
    def rows(self, own, other):
        rows = record("contiguous/int8:g32"), record("contiguous/f16")
        for row, rounds in zip(rows, (own, other)):
            row["samples"]["round"] = rounds
        return rows

    def test_round_by_round_where_measured_in_turns(self):
        # A drift doubles both: the ratio stays 2 in every round.
        rows = self.rows([1, 1, 1, 2, 2, 2], [2, 2, 2, 4, 4, 4])
        self.assertEqual(estimates.speed(*rows), (2.0, 2, 2))

    def test_medians_without_an_interval_else(self):
        rows = self.rows([1, 1, 1, 2, 2, 2], [2, 2, 2, 4, 4, 4])
        rows[0]["group_run"] = "another"
        self.assertEqual(estimates.speed(*rows), (2.0, None, None))

    def test_nothing_without_rounds(self):
        self.assertIsNone(estimates.speed(*self.rows([], [1.0])))
        self.assertIsNone(estimates.speed(*self.rows([1.0], None)))

    def test_nothing_for_rounds_without_time(self):
        self.assertIsNone(estimates.speed(*self.rows([0.0, 1.0], [1.0, 1.0])))
        self.assertIsNone(estimates.speed(*self.rows([1.0, 1.0], [1.0, 0.0])))


if __name__ == "__main__":
    unittest.main()
