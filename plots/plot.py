#!/usr/bin/env python3
"""Draws what the records of a run support: plot.py RUN_DIR [-o DIR]. Prints the files it wrote."""

import argparse
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np  # noqa: E402

import style  # noqa: E402
from records import ENGINE_KEYS, LENGTH_KEYS, get, group, label, load, measured  # noqa: E402


def slope(x, y):
    """Exponent of y ~ x^b over the last half (x >= max/2), or None for too few points."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    keep = (x >= x.max() / 2) & (x > 0) & (y > 0)
    if len(np.unique(x[keep])) < 2:
        return None
    return float(np.polyfit(np.log(x[keep]), np.log(y[keep]), 1)[0])


def cumulative(record):
    """(tokens, seconds since the start) of one round, or None where the record has no gaps."""
    gaps = get(record, "samples.itl_ms")
    first = get(record, "latency.ttft_ms.p50")
    if not gaps or first is None:
        return None
    stride = get(record, "samples.itl_stride", 1)
    tokens = 1 + stride * np.arange(len(gaps) + 1)
    tokens[-1] = min(tokens[-1], get(record, "case.gen_len", tokens[-1]))
    steps = np.diff(tokens)
    seconds = (first + np.concatenate([[0], np.cumsum(np.asarray(gaps) * steps)])) / 1e3
    return tokens, seconds


def crossover(slow, fast):
    """The first number of tokens from which `fast` stays ahead, or None. Both: (tokens, seconds)."""
    tokens = np.union1d(slow[0], fast[0])
    tokens = tokens[tokens <= min(slow[0][-1], fast[0][-1])]
    ahead = np.interp(tokens, *fast) < np.interp(tokens, *slow)
    if not ahead[-1]:
        return None
    behind = np.flatnonzero(~ahead)
    return int(tokens[behind[-1] + 1]) if len(behind) else int(tokens[0])


def plot_cumulative_time(records):
    """Cumulative time against generated tokens, an engine a curve; None without two points."""
    curves = [(record, cumulative(record)) for record in records]
    curves = [(record, curve) for record, curve in curves if curve is not None]
    if not curves:
        return None
    first = curves[0][0]
    # Behind a prompt even recomputing hardly grows with n, so an exponent would say nothing.
    from_empty = get(first, "case.prompt_len", 0) == 0
    figure, axes = style.new_figure(
        f"Time to generate n tokens: {get(first, 'case.model', 'unknown model')}",
        f"prompt {get(first, 'case.prompt_len', '?')}, {style.setting(first)}"
        + ("; slopes fitted over the last half" if from_empty else ""),
        [record for record, _ in curves])
    axes.set(xscale="log", yscale="log", xlabel="generated tokens n",
             ylabel="time since the start (s)")

    ends = []
    for record, (tokens, seconds) in curves:
        look = style.engine_style(get(record, "case.engine", ""))
        # Markers at equal distances on the logarithmic axis.
        marks = np.unique(np.searchsorted(tokens, np.geomspace(1, tokens[-1], 10)))
        axes.plot(tokens, seconds, lw=1.6, ms=5, markevery=list(marks), **look)
        power = slope(tokens, seconds) if from_empty else None
        text = label(record) if power is None else f"{label(record)}: slope {power:.2f}"
        ends.append((tokens[-1], seconds[-1], text, look["color"]))
    mark_crossover(axes, curves)
    style.plain_ticks(axes.xaxis)
    style.plain_ticks(axes.yaxis)
    style.label_ends(axes, ends)
    return figure


def mark_crossover(axes, curves):
    """Where the first cached engine overtakes recompute for good."""
    slow = [c for r, c in curves if get(r, "case.engine") == "recompute"]
    cached = [(r, c) for r, c in curves if get(r, "case.engine") != "recompute"]
    if not slow or not cached:
        return
    at = [(crossover(slow[0], curve), record) for record, curve in cached]
    at = [(tokens, record) for tokens, record in at if tokens is not None]
    if not at:
        axes.text(0.02, 0.97, "no cache overtakes recompute", transform=axes.transAxes, fontsize=9,
                  color="#555555", va="top")
        return
    tokens, record = min(at, key=lambda pair: pair[0])
    axes.axvline(tokens, color="#888888", lw=0.9, ls=":", zorder=0)
    left = math.log(tokens) < 0.5 * math.log(max(c[0][-1] for _, c in curves))
    axes.annotate(f"{label(record)} is ahead of recompute\nfrom token {tokens} on",
                  (tokens, 0.98), xycoords=("data", "axes fraction"),
                  xytext=(5 if left else -5, 0), textcoords="offset points", fontsize=9,
                  color="#555555", va="top", ha="left" if left else "right")


def tokens_text(n):
    """4096 → 4k."""
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else str(n)


def context_axis(axes, at):
    """A logarithmic axis with a tick at each context."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(at, [tokens_text(n) for n in at])
    axes.minorticks_off()
    axes.set_xlabel("context (tokens)")


def by_engine(records):
    """Engine name → its records by context, in order of appearance."""
    engines = {}
    for record in records:
        engines.setdefault(get(record, "case.engine", ""), []).append(record)
    for rows in engines.values():
        rows.sort(key=context)
    return engines


def context(record):
    """The depth of a decode figure: the prompt, or where there is none the whole length."""
    return get(record, "case.prompt_len", 0) or get(record, "case.gen_len", 1)


def contexts(records):
    return sorted({context(record) for record in records})


def positions(record):
    """Positions in the cache when a round ends."""
    return max(get(record, "case.prompt_len", 0), 1) + get(record, "case.gen_len", 1) - 1


def plot_attention_time(records):
    """Attention time of a step against context; None unless there are several contexts."""
    rows = [r for r in records if get(r, "latency.attend_ms.p50")]
    if len(contexts(rows)) < 2:
        return None
    first = rows[0]
    figure, axes = style.new_figure(
        f"Attention time of a decode step: {get(first, 'case.model', 'unknown model')}",
        f"level {get(first, 'case.level', '?')}, {style.setting(first)}; median with 95 % interval",
        rows)
    context_axis(axes, contexts(rows))
    axes.set(yscale="log", ylabel="attention, all layers (ms a step)")

    ends = []
    for engine, own in by_engine(rows).items():
        look = style.engine_style(engine)
        x = [context(r) for r in own]
        y = [get(r, "latency.attend_ms.p50") for r in own]
        bounds = [get(r, "latency.attend_ms.p50_ci95", [m, m]) for r, m in zip(own, y)]
        error = [[m - low for m, (low, _) in zip(y, bounds)],
                 [high - m for m, (_, high) in zip(y, bounds)]]
        axes.errorbar(x, y, yerr=error, lw=1.6, ms=6, capsize=3, **look)
        ends.append((x[-1], y[-1], label(own[-1]), look["color"]))
    style.plain_ticks(axes.yaxis)
    style.label_ends(axes, ends)
    return figure


def bytes_text(count):
    """1572864 → 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 999.5 or unit == "GiB":
            return f"{count:.3g} {unit}"
        count /= 1024
    return ""


def plot_kv_bytes(records):
    """Live and reserved bytes: bars at one context, curves over several; None without rows."""
    keys = ("memory.kv_live_bytes", "memory.kv_reserved_bytes")
    rows = [r for r in records if all(get(r, key) is not None for key in keys)]
    if not rows:
        return None
    return kv_bytes_bars(rows) if len(contexts(rows)) == 1 else kv_bytes_curves(rows)


def kv_bytes_bars(rows):
    first = rows[0]
    figure, axes = style.new_figure(
        f"Bytes of the KV cache: {get(first, 'case.model', 'unknown model')}",
        f"{positions(first)} positions, max_seq_len {get(first, 'case.max_seq_len', '?')}, "
        f"{style.setting(first)}",
        rows, height=2.2 + 0.42 * len(rows))
    # Names stand where other plots have none, figures to the right of the bars.
    figure.subplots_adjust(left=0.26, right=0.72)

    largest = max(get(r, "memory.kv_reserved_bytes") for r in rows) or 1
    unit = 1024 ** min(3, int(math.log(largest, 1024)))
    for y, record in enumerate(rows):
        live = get(record, "memory.kv_live_bytes")
        reserved = get(record, "memory.kv_reserved_bytes")
        color = style.engine_style(get(record, "case.engine", ""))["color"]
        axes.barh(y, reserved / unit, height=0.62, facecolor="white", edgecolor=color, hatch="////",
                  lw=1)
        axes.barh(y, live / unit, height=0.62, color=color)
        axes.annotate(f"{bytes_text(live)} live\n{bytes_text(reserved)} reserved",
                      (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=8.5)
    axes.set_yticks(range(len(rows)), [label(r) for r in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.02 * largest / unit)
    axes.set_xlabel(f"{bytes_text(unit)[2:]} (filled: live rows, hatched: reserved)")
    return figure


def kv_bytes_curves(rows):
    rows = [r for r in rows if get(r, "memory.kv_live_bytes") > 0]  # recompute keeps nothing
    if not rows:
        return None
    first = rows[0]
    figure, axes = style.new_figure(
        f"Bytes of the KV cache: {get(first, 'case.model', 'unknown model')}",
        f"{style.setting(first)}; curves: live rows, dashes: reserved", rows)
    context_axis(axes, contexts(rows))
    axes.set(yscale="log", ylabel="KV cache (MiB)")

    ends = []
    for engine, own in by_engine(rows).items():
        look = style.engine_style(engine)
        x = [context(r) for r in own]
        live = [get(r, "memory.kv_live_bytes") / 2**20 for r in own]
        reserved = [get(r, "memory.kv_reserved_bytes") / 2**20 for r in own]
        axes.plot(x, live, lw=1.6, ms=6, **look)
        axes.plot(x, reserved, ls="none", marker="_", ms=13, mew=1.6, color=look["color"])
        per_token = get(own[-1], "memory.kv_bytes_per_token")
        text = label(own[-1])
        if per_token is not None:
            text += f": {bytes_text(per_token)}/token"
        ends.append((x[-1], live[-1], text, look["color"]))
    style.plain_ticks(axes.yaxis)
    style.label_ends(axes, ends)
    return figure


# Name of the file, function, and the keys in which the records of one picture may differ.
PLOTS = (
    ("cumulative_time", plot_cumulative_time, "model", ENGINE_KEYS),
    ("attention_time", plot_attention_time, None, ENGINE_KEYS + LENGTH_KEYS),
    ("kv_bytes", plot_kv_bytes, None, ENGINE_KEYS + LENGTH_KEYS),
)


def draw(records, folder):
    """Draws every plot that the records support; returns the paths of the files."""
    rows = measured(records)
    written = []
    for name, function, level, apart_from in PLOTS:
        wanted = [r for r in rows if level is None or get(r, "case.level") == level]
        figures = [function(one) for one in group(wanted, apart_from)]
        figures = [figure for figure in figures if figure is not None]
        for number, figure in enumerate(figures, 1):
            suffix = f"-{number}" if len(figures) > 1 else ""
            written += style.save(figure, folder, name + suffix)
    return written


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", metavar="RUN_DIR", help="folder of a run, or a file of records")
    parser.add_argument("-o", "--output", metavar="DIR", help="default: RUN_DIR/plots")
    options = parser.parse_args(arguments)

    try:
        records = load(options.run)
    except (OSError, ValueError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    base = options.run if os.path.isdir(options.run) else os.path.dirname(options.run) or "."
    folder = options.output or os.path.join(base, "plots")
    os.makedirs(folder, exist_ok=True)

    written = draw(records, folder)
    for path in written:
        print(path)
    if not written:
        print(f"plot.py: {options.run}: none of {len(records)} records can be drawn",
              file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
