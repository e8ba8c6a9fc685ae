"""What a format loses against what it saves (3)."""

from collections import namedtuple

import labels
import style
import words
from records import engine, fullest, get, number, positions, timed_names


NO_LOSS = "no loss"
LARGEST = 15  # points, of a marker
MOST_APART = 60  # points, between markers of one place

# A marker with its label. size: diameter in points, marker: its artists.
Point = namedtuple("Point", "x y text color size marker")


def front(points):
    """Which of (bits, loss) no other one beats in one without losing in the other; by bits."""
    best = [p for p in points
            if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)]
    return sorted(set(best))


def plot_loss(records):
    """Loss against bits of an element, marker area by speed, with the Pareto front.

    The loss is the divergence on real text where there is one, else the error of the attention
    output; never both in one picture. None without a format that keeps something.
    """
    kept = [r for r in records if number(r, "memory.kv_bits_per_element")]
    scored = [r for r in kept if number(r, "accuracy.loss.kld_mean") is not None]
    metric = "accuracy.loss.kld_mean" if scored else "accuracy.loss.attend_rel_rms"
    rows = fullest([r for r in kept if number(r, metric) is not None])
    if not rows:
        return None
    called = timed_names(rows)
    rate, unit = rate_of(rows)
    speeds = [speed if (speed := number(r, rate)) and speed > 0 else None for r in rows]
    fastest = max(filter(None, speeds), default=None)
    figure = style.new_figure(
        f"What a format loses: {style.subject(rows)}", subtitle(rows, scored, unit, fastest), rows,
        inside=max(4.2, 0.3 * len(rows)))
    axes = figure.subplots()
    bits = [number(r, "memory.kv_bits_per_element") for r in rows]
    losses = [max(0, number(r, metric)) for r in rows]
    bits_axis(axes, bits)
    zero = loss_axis(axes, losses)
    axes.set_ylabel("KLD to the f32 cache, mean (nats)" if scored
                    else "relative error of the attention output")

    shown = [value or zero for value in losses]
    edge = front(list(zip(bits, shown)))
    corners = [corner for a, b in zip(edge, edge[1:]) for corner in (a, (b[0], a[1]))] + edge[-1:]
    axes.plot(*zip(*corners), color=style.PALE, lw=1.2, ls=(0, (4, 2)), zorder=1)
    places = {}  # engines that share one, as those of one format in several layouts, share a label
    for record, x, y, speed in zip(rows, bits, shown, speeds):
        look = style.look(engine(record))
        size = LARGEST * max(0.3, (speed / fastest) ** 0.5) if speed else 6
        marker = axes.plot(x, y, ms=size, **{**look, "linestyle": "none"})
        text = called[engine(record)] + (f" {words.plain(speed)} {unit}" if speed else "")
        places.setdefault((f"{x:.2g}", f"{y:.2g}"), []).append(
            Point(x, y, text, look["color"], size, marker))
    labels.label_points(axes, [shared(points) for points in places.values()], corners)
    for points in places.values():
        style.set_beside(figure, [point.marker for point in points], apart(points), MOST_APART)
    return figure


def rate_of(rows):
    """(path, unit) of the speed: without the rest of the decoder there are no tokens, only steps,
    each of which serves all sequences."""
    if get(rows[0], "case.level") == "attention":
        return "throughput.decode_tok_per_s_per_seq", "steps/s"
    return "throughput.decode_tok_per_s", "tokens/s"


def apart(points):
    """Points from one marker to the next, so that none hides another."""
    return max(point.size for point in points)


def shared(points):
    """One label for points that lie on each other: a line each, beside all of their markers."""
    first = points[0]
    width = min(apart(points) * len(points), MOST_APART + apart(points))
    return (first.x, first.y, "\n".join(point.text for point in points),
            first.color if len(points) == 1 else style.BLACK, width)


def subtitle(rows, scored, unit, fastest):
    after = f"after {words.tokens(positions(rows[0]))} positions{style.of_each(rows)}"
    if scored:
        judged = f"{number(rows[0], 'accuracy.loss.positions') or '?'} scored positions of text"
    elif get(rows[0], "case.level") == "attention":
        judged = f"{after}; synthetic data ranks formats, it does not judge them"
    else:
        judged = f"{after}; the error ranks formats, it does not judge them"
    parts = [style.setting(rows), judged]
    if fastest:
        whose = style.of_all(rows) if unit == "tokens/s" else ""
        parts.append(f"area of a marker: {unit}{whose}" + (f" {after}" if scored else ""))
    parts.append("dashes: the Pareto front")
    return "; ".join(parts)


def bits_axis(axes, bits):
    """A logarithmic axis with the usual widths as ticks."""
    axes.set_xscale("log")
    low, high = min(bits) / 1.35, max(bits) * 1.35
    axes.set_xlim(low, high)
    ticks = [n for n in (1, 2, 4, 8, 16, 32, 64) if low <= n <= high]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("bits of an element of the cache, scales counted")


def loss_axis(axes, losses):
    """A logarithmic axis with a strip below it where nothing is lost; returns its middle."""
    axes.set_yscale("log")
    positive = [value for value in losses if value]
    if not positive:
        axes.set_ylim(0.1, 10)
        axes.set_yticks([1], [NO_LOSS])
        axes.set_yticks([], minor=True)
        return 1
    beside = 2 * (max(positive) / min(positive)) ** 0.1
    low, high = min(positive) / beside, max(positive) * beside
    axes.set_ylim(low, high)
    style.log_ticks(axes.yaxis)
    if 0 not in losses:
        return None
    zero = low / beside
    above = [at for at in axes.get_yticks() if at > low]
    axes.axhspan(zero / beside, low, color="#F3F3F3", zorder=0)
    axes.set_ylim(zero / beside, high)
    axes.set_yticks([zero, *above], [NO_LOSS, *map(words.tick, above)])
    axes.set_yticks([], minor=True)
    return zero
