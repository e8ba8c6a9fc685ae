"""Two runs side by side (10): the verdicts of `kvmark compare --format json`, drawn."""

import json
from collections import namedtuple

import style
import words
from records import BadFile, get, interval, is_number, short_name
from rows import MOST_ROWS, new_rows

# Colour and marker of a verdict, the gravest first.
VERDICTS = {
    "broke": (style.RED, "X"),
    "worse": (style.RED, "D"),
    "undecided": (style.ORANGE, "o"),
    "better": (style.BLUE, "s"),
    "same": ("#777777", "o"),
}
HOLLOW = ("undecided",)
WIDEST = 20  # a ratio beyond it, or below its inverse, is drawn at the edge

# A line of the picture. ratio, bounds and threshold are None where there are none.
Line = namedtuple("Line", "block label verdict ratio bounds threshold text")


def read_comparison(path):
    """The comparison in a file. Raises OSError, and BadFile for anything else than one."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        try:
            comparison = json.load(file)
        except ValueError as error:
            raise BadFile(f"{path}: not JSON ({error})") from None
    cases = get(comparison, "cases")
    if get(comparison, "schema") != "kvmark-compare/1" or not isinstance(cases, list):
        raise BadFile(f"{path}: expected what `kvmark compare BASE NEW --format json` prints")
    return comparison


# ---- What is drawn ----

def is_time(metric):
    return metric["metric"].split(".")[0] in ("latency", "throughput")


def drawn_metrics(case):
    """What decides: times always, other figures where they changed."""
    judged = [m for m in get(case, "metrics", []) if get(m, "verdict", "shown") in VERDICTS]
    return [m for m in judged if is_time(m) or m["verdict"] != "same"]


def bounds_of(metric, base, new):
    """Bounds of new/base: those of the comparison, else from the intervals of both medians.

    base, new: the rows of the case, or None. The latter bounds hold 1 just where the two intervals
    overlap, which is when `compare` leaves a time undecided.
    """
    change = interval(metric, "change_interval")
    if change:
        return [1 + bound for bound in change]
    path, _, part = metric["metric"].rpartition(".")
    both = [row and interval(row, f"{path}.{part}_ci95") for row in (base, new)]
    if not all(both) or both[0][0] <= 0:
        return None
    (base_low, base_high), (new_low, new_high) = both
    return [new_low / base_high, new_high / base_low]


def text_of(metric, bounds):
    """"+31 % (+9 % to +47 %) worse"."""
    change = get(metric, "change")
    if is_number(change):
        text = words.signed_percent(change)
    else:
        text = " → ".join(words.plain(value) if is_number(value) else "—"
                          for value in (get(metric, "base"), get(metric, "new")))
    if bounds:
        text += " ({} to {})".format(*(words.signed_percent(bound - 1) for bound in bounds))
    return f"{text} {metric['verdict']}"


def lines_of(comparison, base_rows, new_rows_):
    """The lines of the picture, in the order of the cases."""
    lines = []
    for case in comparison["cases"]:
        name = get(case, "case.engine", "")
        label = get(case, "label", name)
        block = words.clipped(label[len(name):].strip() if label.startswith(name) else label, 100)
        if get(case, "broke"):
            lines.append(Line(block, short_name(name), "broke", None, None, None,
                              f"{get(case, 'base_status')} → {get(case, 'status')}"))
            continue
        for metric in drawn_metrics(case):
            rows = (rows_by_id.get(get(case, "case_id")) for rows_by_id in (base_rows, new_rows_))
            bounds = bounds_of(metric, *rows)
            change = get(metric, "change")
            title = short_name(name)
            if not is_time(metric):
                title += f": {get(metric, 'title', metric['metric'])}"
            lines.append(Line(block, title, metric["verdict"],
                              1 + change if is_number(change) else None, bounds,
                              get(metric, "threshold"), text_of(metric, bounds)))
    return lines


def gravest(lines):
    """As many lines as fit, the gravest first, then in their own order again."""
    order = list(VERDICTS)
    kept = sorted(range(len(lines)), key=lambda i: order.index(lines[i].verdict))[:MOST_ROWS]
    return [lines[i] for i in sorted(kept)]


def blocks_of(lines):
    """[(heading, its lines)], in order of appearance."""
    blocks = {}
    for line in lines:
        blocks.setdefault(line.block, []).append(line)
    return list(blocks.items())


# ---- The picture ----

def plot_comparison(comparison, base=(), new=()):
    """Ratio of each case with its interval, threshold band and verdict; None without a judged case.

    base, new: records of the two runs, for the intervals, the machines and the dates.
    """
    by_id = [{get(row, "case_id"): row for row in rows} for rows in (base, new)]
    every = lines_of(comparison, *by_id)
    if not every:
        return None
    blocks = blocks_of(gravest(every))
    lines = [line for _, own in blocks for line in own]
    headline = get(comparison, "verdict", "comparison")
    figure, axes, places = new_rows(
        headline[:1].upper() + headline[1:], subtitle(comparison, len(every) - len(lines)),
        [*base, *new],
        [(heading, [line.label for line in own]) for heading, own in blocks],
        [line.text for line in lines], above=0.3)
    axes.set_xscale("log")
    axes.set_xlim(*limits(lines))
    axes.axvline(1, color=style.BLACK, lw=1)
    for y, line in zip(places, lines):
        draw_line(axes, y, line)
    style.log_ticks(axes.xaxis, text=lambda ratio: f"{words.tick(ratio)}×")
    axes.set_xlabel("new / base; of times, bytes and losses less is better")
    key_above(axes, {line.verdict for line in lines})
    return figure


def subtitle(comparison, hidden):
    parts = [f"{get(comparison, 'base', '?')} → {get(comparison, 'new', '?')}",
             "grey: the threshold, within which nothing counts; figures other than times stand "
             "here where they changed"]
    if hidden:
        parts.append(f"{hidden} more lines, none graver, are left out")
    alone = get(comparison, "one_sided", [])
    if alone:
        parts.append(f"cases on one side only: {len(alone)}")
    return "; ".join(parts)


def limits(lines):
    """Around 1 and all ratios, intervals and thresholds, as far as they are not beyond WIDEST."""
    low, high = 0.8, 1.25
    for line in lines:
        beside = 1 + (line.threshold or 0)
        ratios = [r for r in (line.ratio, beside, 1 / beside, *(line.bounds or ())) if r and r > 0]
        low, high = min([low, *ratios]), max([high, *ratios])
    return max(low / 1.06, 1 / WIDEST), min(high * 1.06, WIDEST)


def draw_line(axes, y, line):
    color, marker = VERDICTS[line.verdict]
    low, high = axes.get_xlim()
    if line.threshold:
        beside = 1 + line.threshold
        axes.barh(y, beside - 1 / beside, left=1 / beside, height=0.9, color="#E8E8E8", zorder=0)
    if line.ratio is None or line.ratio <= 0:
        return
    if line.bounds:
        ends = [min(high, max(low, bound)) for bound in line.bounds]
        axes.plot(ends, [y, y], color=color, lw=2, solid_capstyle="butt")
    beyond = not low <= line.ratio <= high
    axes.plot(min(high, max(low, line.ratio)), y, ls="none", ms=8, color=color, clip_on=False,
              marker=(">" if line.ratio > 1 else "<") if beyond else marker,
              mfc="white" if line.verdict in HOLLOW else color, mew=1.5)


def key_above(axes, used):
    handles = [axes.plot([], [], ls="none", ms=8, mew=1.5, color=color, marker=marker,
                         mfc="white" if verdict in HOLLOW else color, label=verdict)[0]
               for verdict, (color, marker) in VERDICTS.items() if verdict in used]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncol=len(VERDICTS),
                frameon=False, fontsize=8.5, handletextpad=0.2, borderaxespad=0.2)
