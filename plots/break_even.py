"""From which context on a format pays (4): its speed against f16, crossing 1."""

import math

import labels
import style
import words
from estimates import speed
from records import (by_engine, context, contexts, engine, generic_beside, lengths, names,
                     one_length_each, series)

REFERENCES = ("contiguous/f16", "paged:16/f16")
SAME_SPEED = 0.01  # an interval so near to 1 is no difference to a user


def plot_break_even(records):
    """Speed of each engine relative to f16 against context; None below two contexts with both.

    Round by round where both were measured in turns, with the 95 % interval of the median ratio.
    Recompute is left out: what no cache costs is not a question of the format. So are generic
    kernels beside others: their speed is not that of the format.
    """
    every = one_length_each([r for r in records if series(r, "samples.round")
                             and engine(r) != "recompute"])
    generic = generic_beside(every)
    rows = [r for r in every if engine(r) not in generic]
    reference = next((name for name in REFERENCES if name in by_engine(rows)), None)
    if reference is None:
        return None
    theirs = {lengths(r): r for r in by_engine(rows)[reference]}
    curves = {}
    for name, own in by_engine(rows).items():
        if name == reference:
            continue
        ratios = [(context(r), speed(r, theirs[lengths(r)])) for r in own if lengths(r) in theirs]
        points = [(at, *ratio) for at, ratio in ratios if ratio]
        if len(points) > 1:
            curves[name] = points
    if not curves:
        return None

    called = names(every)
    crossings = {name: crossing_of(points) for name, points in curves.items()}
    figure = style.new_figure(
        f"Speed against {called[reference]}: {style.subject(rows)}",
        f"{style.setting(rows)}; " + (
            "round by round, median with its 95 % interval" + (
                "; a bar on the line of 1: where an engine crosses it, between contexts whose "
                "intervals lie on either side and not all within "
                f"{100 * SAME_SPEED:g} % of it" if any(crossings.values()) else "")
            if have_intervals(curves) else
            "medians of fewer than six rounds: without intervals no crossing is decided")
        + left_out([called[name] for name in by_engine(every) if name in generic]),
        rows, inside=labels.room(len(curves)))
    axes = figure.subplots()
    style.context_axis(axes, contexts(rows))
    axes.set(yscale="log", ylabel=f"times as fast as {called[reference]}")
    axes.axhline(1, color=style.BLACK, lw=1)
    draw_curves(axes, curves, crossings, called,
                {"x": max(contexts(rows)), "name": called[reference]})
    return figure


def have_intervals(curves):
    return any(low is not None for points in curves.values() for _, _, low, _ in points)


def left_out(generic):
    if not generic:
        return ""
    return (f"; left out: {', '.join(generic)}, whose "
            + ("kernels are generic" if len(generic) > 1 else "kernel is generic"))


def draw_curves(axes, curves, crossings, called, reference):
    ends = [(reference["x"], 1, reference["name"], style.BLACK)]
    drawn = []
    for name, points in curves.items():
        look = style.look(name)
        x, ratios, lows, highs = zip(*points)
        bounds = [None if low is None else (low, high) for low, high in zip(lows, highs)]
        curve = axes.errorbar(x, ratios, yerr=style.errors(ratios, bounds), capsize=3, **look)
        drawn.append([*curve.get_children()])
        text = f"{called[name]}: {words.plain(ratios[-1])}×"
        if crossings[name]:
            at, before, after, ahead = crossings[name]
            axes.plot([before, after], [1, 1], lw=6, alpha=0.35, solid_capstyle="butt",
                      color=look["color"], zorder=2.5)
            drawn[-1] += axes.plot(at, 1, **{**look, "ms": 9, "fillstyle": "none", "mew": 1.6},
                                   zorder=4)
            text += f", {'ahead' if ahead else 'behind'} from {words.about_tokens(at)}"
        ends.append((x[-1], ratios[-1], text, look["color"]))
    style.log_ticks(axes.yaxis)
    labels.label_ends(axes, ends)
    if have_intervals(curves):
        style.set_beside(axes.figure, drawn)


def is_ahead(low, high):
    """By the interval of its speed (bench/report/ratio.cc); None where it is as fast, or open."""
    if low is None or (low >= 1 - SAME_SPEED and high <= 1 + SAME_SPEED):
        return None
    if low > 1:
        return True
    return False if high < 1 else None


def crossing_of(points):
    """(context, that before, that after, is it ahead after?) of the last crossing of 1, or None.

    points: (context, ratio, low, high) by context. Before and after are contexts whose intervals
    decide for opposite sides; between them the medians say where, on a logarithmic axis.
    """
    sides = [(i, is_ahead(low, high)) for i, (_, _, low, high) in enumerate(points)]
    sides = [(i, ahead) for i, ahead in sides if ahead is not None]
    turns = [(a, b, ahead) for (a, was), (b, ahead) in zip(sides, sides[1:]) if was != ahead]
    if not turns:
        return None
    first, last, ahead = turns[-1]
    for i in range(first, last):
        (x, ratio, *_), (next_x, next_ratio, *_) = points[i], points[i + 1]
        if (ratio > 1) != ahead and (next_ratio > 1) == ahead:
            share = math.log(ratio) / (math.log(ratio) - math.log(next_ratio))
            at = math.exp(math.log(x) + share * (math.log(next_x) - math.log(x)))
            return at, points[first][0], points[last][0], ahead
    return None
