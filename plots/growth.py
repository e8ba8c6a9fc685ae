"""How time grows: of a whole run with its tokens (1a), of a step with its context (1b, 1c)."""

import math

import numpy as np

import labels
import style
import words
from estimates import exponent
from records import (by_engine, context, contexts, engine, fullest, get, interval, names, number,
                     one_length_each, positions_seen, series, timed_names)

GROWTH_TOKENS = 64  # a shorter run says little about how its time grows
FEWEST_POINTS = 3  # two would fit any exponent
VAGUE_SLOPE = 1  # the half width of an interval that says nothing
FEWEST_ROUNDS = 6  # fewer carry no interval
MOST_LIMITS = 5  # lines of words in a picture


# ---- 1a: cumulative time against tokens ----

def cumulative(record):
    """(tokens, seconds since the start) of the median round, or None where there are no gaps."""
    gaps = series(record, "samples.itl_ms")
    first = number(record, "latency.ttft_ms.p50")
    if not gaps or first is None:
        return None
    stride = number(record, "samples.itl_stride") or 1
    tokens = 1 + stride * np.arange(len(gaps) + 1)
    tokens[-1] = min(tokens[-1], number(record, "case.gen_len") or tokens[-1])
    seconds = (first + np.concatenate([[0], np.cumsum(gaps * np.diff(tokens))])) / 1e3
    return tokens, seconds


def growth(tokens, seconds):
    """The exponent over the last half, as what a run costs at its start hides how it grows."""
    late = tokens >= tokens[-1] / 2
    fit = exponent(tokens[late], seconds[late])
    return fit and fit[0]


def crossover(slow, fast):
    """The first token from which `fast` stays ahead, or None. Both: (tokens, seconds).

    Of the first token both do the same work; which is ahead there says nothing.
    """
    tokens = np.union1d(slow[0], fast[0])
    tokens = tokens[(tokens > 1) & (tokens <= min(slow[0][-1], fast[0][-1]))]
    ahead = np.interp(tokens, *fast) < np.interp(tokens, *slow)
    if not ahead[-1]:
        return None
    behind = np.flatnonzero(~ahead)
    return int(tokens[behind[-1] + 1]) if len(behind) else int(tokens[0])


def plot_cumulative_time(records):
    """Time since the start against generated tokens, an engine a curve; None of few tokens."""
    rows = fullest([record for record in records if (curve := cumulative(record))
                    and curve[0][-1] >= GROWTH_TOKENS])
    if not rows:
        return None
    called = timed_names(rows)
    prompt = number(rows[0], "case.prompt_len") or 0
    bounds = [interval(record, "latency.e2e_ms.p50_ci95") for record in rows]
    # Behind a prompt even recomputing hardly grows with n, so an exponent would say nothing.
    from_empty = prompt == 0
    figure = style.new_figure(
        f"Time to generate n tokens{style.of_each(rows)}: {style.subject(rows)}",
        ("from an empty cache" if from_empty
         else f"after a prompt of {words.tokens(prompt)} tokens")
        + f", {style.setting(rows)}; the median round of each"
        + (", at its end the 95 % interval of a whole round" if any(bounds) else "")
        + ("; slope: the exponent of n over the last half" if from_empty else ""),
        rows, inside=labels.room(len(rows)))
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel=f"generated tokens n{style.of_each(rows)}",
             ylabel="time since the start (s)")

    curves, ends, intervals = [], [], []
    for record, bound in zip(rows, bounds):
        tokens, seconds = cumulative(record)
        curves.append((record, (tokens, seconds)))
        look = style.look(engine(record))
        # Markers at equal distances on the logarithmic axis.
        marks = np.unique(np.searchsorted(tokens, np.geomspace(1, tokens[-1], 10)))
        axes.plot(tokens, seconds, markevery=list(marks), **look)
        if bound:
            around = style.errors(seconds[-1:], [[ms / 1e3 for ms in bound]])
            intervals.append(axes.errorbar(tokens[-1:], seconds[-1:], yerr=around, ls="none",
                                           capsize=3, color=look["color"]).get_children())
        text = f"{called[engine(record)]}: {words.plain(seconds[-1])} s"
        power = growth(tokens, seconds) if from_empty else None
        if power is not None:
            text += f", slope {power:.2f}"
        ends.append((tokens[-1], seconds[-1], text, look["color"]))
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)
    labels.label_ends(axes, ends)
    style.set_beside(figure, intervals)
    mark_crossover(axes, curves, called)
    return figure


def mark_crossover(axes, curves, called):
    """Where the first cached engine overtakes recompute for good."""
    slow = [curve for record, curve in curves if engine(record) == "recompute"]
    cached = [(record, curve) for record, curve in curves if engine(record) != "recompute"]
    if not slow or not cached:
        return
    found = [(crossover(slow[0], curve), record) for record, curve in cached]
    found = [(tokens, record) for tokens, record in found if tokens is not None]
    if not found:
        axes.text(0.02, 0.98, "no cache overtakes recompute", transform=axes.transAxes,
                  fontsize=style.TEXT, color=style.GREY, va="top")
        return
    tokens, record = min(found, key=lambda pair: pair[0])
    axes.axvline(tokens, color=style.PALE, lw=0.9, ls=":", zorder=0)
    last = max(curve[0][-1] for _, curve in curves)
    left = math.log(tokens) < 0.4 * math.log(last)
    rounds = min(number(r, "sampling.rounds") or 1 for r, _ in curves)
    since = f"token {words.tokens(tokens)} on"
    if rounds < FEWEST_ROUNDS:
        since = f"about {since}, in {rounds:g} round{'' if rounds == 1 else 's'}"
    axes.annotate(f"{called[engine(record)]} is ahead of recompute\nfrom {since}",
                  (tokens, 0.98), xycoords=("data", "axes fraction"),
                  xytext=(5 if left else -5, 0), textcoords="offset points", fontsize=style.TEXT,
                  color=style.GREY, va="top", ha="left" if left else "right")


# ---- 1b and 1c: a step against the context ----

def plot_attention_time(records):
    """Time of a step at attention level against context; None below two contexts.

    That of rounds: the steps of one depend on each other, so an interval over all steps of all
    rounds, as that of latency.attend_ms, would be far too narrow.
    """
    rows = one_length_each([r for r in records if get(r, "case.level") == "attention"
                            and number(r, "case.layers") and number(r, "latency.tpot_ms.p50")])
    if len(contexts(rows)) < 2:
        return None
    # Plans may let the layers follow the context; then only the time of a layer has one meaning.
    shared = len({number(r, "case.layers") for r in rows}) > 1
    figure = style.new_figure(
        f"Attention and append of a decode step: {style.subject(rows)}",
        over_contexts_in_words(rows),
        rows, inside=labels.room(len(by_engine(rows))))
    axes = figure.subplots()
    unit = "ms a layer" if shared else "ms"
    curves_over_context(axes, rows, unit,
                        share=lambda r: number(r, "case.layers") if shared else 1)
    axes.set_ylabel(f"attention and append ({unit})")
    return figure


def plot_step_time(records):
    """Time of a whole step against context, and where weights dominate; None below two contexts."""
    rows = one_length_each([r for r in records if get(r, "case.level") == "model"
                            and number(r, "latency.tpot_ms.p50")])
    if len(contexts(rows)) < 2:
        return None
    figure = style.new_figure(
        f"Time of a decode step: {style.subject(rows)}", over_contexts_in_words(rows),
        rows, inside=labels.room(len(by_engine(rows))))
    axes = figure.subplots()
    curves_over_context(axes, rows, "ms")
    axes.set_ylabel("decode step (ms)")
    mark_weights(axes, rows)
    return figure


def over_contexts_in_words(rows):
    return (f"{style.setting(rows)}; a step's mean in a round, median of the rounds with its 95 % "
            "interval where there are six; slope: exponent of the positions that a step sees, "
            f"where it is known to less than ± {VAGUE_SLOPE}")


def curves_over_context(axes, rows, unit, share=lambda record: 1):
    """A curve of medians for each engine, with intervals and fitted slopes; on logarithmic axes."""
    called = timed_names(rows)
    metric = "latency.tpot_ms"
    style.context_axis(axes, contexts(rows))
    axes.set_yscale("log")
    curves, ends = [], []
    for name, own in by_engine(rows).items():
        look = style.look(name)
        x = [context(r) for r in own]
        y = [number(r, f"{metric}.p50") / share(r) for r in own]
        bounds = [interval(r, f"{metric}.p50_ci95") for r in own]
        bounds = [found and [bound / share(r) for bound in found] for found, r in zip(bounds, own)]
        curve = axes.errorbar(x, y, yerr=style.errors(y, bounds), capsize=3, **look)
        curves.append(curve.get_children())
        text = f"{called[name]}: {words.plain(y[-1])} {unit}"
        if len(set(x)) >= FEWEST_POINTS:
            slope, half_width = exponent([positions_seen(r) for r in own], y)
            if half_width < VAGUE_SLOPE:
                text += f", slope {slope:.2f} ± {half_width:.2f}"
        ends.append((x[-1], y[-1], text, look["color"]))
    style.log_ticks(axes.yaxis)
    labels.label_ends(axes, ends)
    if any(interval(r, f"{metric}.p50_ci95") for r in rows):
        style.set_beside(axes.figure, curves)


def weights_dominate_below(record):
    """The context at which a step reads as many bytes of the cache as of weights, or None."""
    cache = number(record, "work.kv_bytes_read_per_step")
    weights = number(record, "work.weight_bytes_read_per_step")
    if not cache or not weights or engine(record) == "recompute":
        return None
    return weights / (cache / positions_seen(record))


def mark_weights(axes, rows):
    """Says below which context a step reads more bytes of weights than of the cache."""
    limits = {name: weights_dominate_below(one[-1]) for name, one in by_engine(rows).items()}
    limits = {name: at for name, at in limits.items() if at is not None}
    if not limits:
        return
    low, high = min(contexts(rows)), max(contexts(rows))
    inside = {name: at for name, at in limits.items() if low <= at <= high}
    for name, at in inside.items():
        axes.axvline(at, ymax=0.06, color=style.look(name)["color"], lw=2)
    first = min(limits.values())
    if first > low:  # there it holds of all engines
        left, right = axes.get_xlim()
        axes.axvspan(left, min(first, right), color="#F3F3F3", zorder=0)
    lines = ["a step reads more bytes of weights than of the cache",
             *limits_in_words(limits, low, high, names(rows))]
    axes.text(0.02, 0.98, "\n".join(lines), transform=axes.transAxes, fontsize=style.TEXT - 0.5,
              color=style.GREY, va="top",
              bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 2})


def limits_in_words(limits, low, high, called):
    """A line for each limit, with its engines; the first and the last of many."""
    engines = {}
    for name, at in sorted(limits.items(), key=lambda item: item[1]):
        where = (f"below {words.about_tokens(at)}" if low <= at <= high else
                 "at no context here" if at < low else "at every context here")
        engines.setdefault(where, []).append(called[name])
    lines = [f"{where}: {', '.join(own)}" for where, own in engines.items()]
    return lines if len(lines) <= MOST_LIMITS else [lines[0], "…", lines[-1]]
