"""Estimates from samples, by the rules of the tables (bench/record/stats.cc, bench/report)."""

import math

import numpy as np

from records import get, series

# 97.5 % quantile of Student's t for 1, 2, … degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
           2.160, 2.145, 2.131, 2.120, 2.110, 2.101)
STUDENT_OF_MORE = 2.093  # of 19; 1.96 in the limit


def student(degrees):
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else STUDENT_OF_MORE


def exponent(x, y):
    """(b, half width of its 95 % interval) of y ~ x^b, or None for fewer than two different x.

    The half width is None for two points.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    keep = (x > 0) & (y > 0)
    x, y = np.log(x[keep]), np.log(y[keep])
    if len(np.unique(x)) < 2:
        return None
    off_x, off_y = x - x.mean(), y - y.mean()
    b = float(off_x @ off_y / (off_x @ off_x))
    degrees = len(x) - 2
    if degrees == 0:
        return b, None
    rest = off_y - b * off_x
    return b, student(degrees) * math.sqrt(float(rest @ rest) / degrees / float(off_x @ off_x))


def median_interval(values):
    """(median, low, high): 95 % interval from order statistics, None and None for fewer than 6."""
    ordered = sorted(values)
    n = len(ordered)
    median = float(np.median(ordered))
    # The largest rank below which the median lies with 2.5 % or less.
    rank, below = 0, 0.0
    while rank < n:
        below += math.comb(n, rank) / 2**n
        if below > 0.025:
            break
        rank += 1
    if rank == 0:
        return median, None, None
    return median, ordered[rank - 1], ordered[n - rank]


def measured_in_turns(record, other):
    """Did their rounds alternate? Then a drift of the machine falls on both alike."""
    turn = get(record, "group_run")
    return (turn is not None and turn == get(other, "group_run")
            and all(get(r, "sampling.interleaved") is True for r in (record, other)))


def speed(record, other):
    """(times as fast as `other`, low, high), round by round where both were measured in turns.

    Else the ratio of the medians, without an interval. None where one has no rounds, or none that
    took time.
    """
    ms, other_ms = series(record, "samples.round"), series(other, "samples.round")
    if not ms or not other_ms or min(ms + other_ms) <= 0:
        return None
    if not measured_in_turns(record, other):
        return float(np.median(other_ms) / np.median(ms)), None, None
    return median_interval([theirs / own for own, theirs in zip(ms, other_ms)])
