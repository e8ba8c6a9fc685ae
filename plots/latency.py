"""How the gaps between tokens are distributed (7)."""

import math

import numpy as np

import labels
import style
import words
from records import engine, fullest, get, number, series, timed_names

KEY_SIZE = 8.5  # points
FEWEST_GAPS = 10  # that have a distribution worth a look
FEWEST_OF_P99 = 200


def plot_latency(records):
    """ECDF of the inter-token latency, with p50 and p99; None without enough gaps.

    The curve and its marks are those of the median round, of which the record has the gaps; the
    figures in the key are those of all rounds. p99 is marked where a round has the gaps that it
    needs. No interval: gaps of a round depend on each other.
    """
    rows = fullest([r for r in records if len(series(r, "samples.itl_ms")) >= FEWEST_GAPS
                    and min(series(r, "samples.itl_ms")) > 0])
    if not rows:
        return None
    called = timed_names(rows)
    # Without the rest of the decoder there are no tokens, only steps.
    model = get(rows[0], "case.level") != "attention"
    prompt, generated = (number(rows[0], f"case.{key}") or 0 for key in ("prompt_len", "gen_len"))
    figure = style.new_figure(
        f"Time {'between two tokens' if model else 'from step to step'}: {style.subject(rows)}",
        f"{words.tokens(generated)} {'tokens' if model else 'positions'}{style.of_each(rows)} "
        f"after {words.tokens(prompt)}, {style.setting(rows)}; curve, with marks at p50 and p99: "
        "the median round; figures beside: all n gaps of all rounds",
        rows, inside=labels.room(1 + len(rows)))
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="inter-token latency (ms)" if model else "from step to step (ms)",
             ylabel="share of the gaps (%)",
             ylim=(-3, 103))
    limits = limits_of(rows)
    axes.set_xlim(limits)
    for share, name in ((50, "p50"), (99, "p99")):
        axes.annotate(name, (0, share), xycoords=("axes fraction", "data"), xytext=(4, -2),
                      textcoords="offset points", va="top", fontsize=KEY_SIZE, color=style.GREY)
    curves = []
    for record in rows:
        look = style.look(engine(record))
        gaps = np.sort(series(record, "samples.itl_ms"))
        share = 100 * np.arange(1, len(gaps) + 1) / len(gaps)
        line, = axes.plot(gaps, share, drawstyle="steps-post", markevery=max(1, len(gaps) // 6),
                          **{**look, "ms": 5})
        mark_quantiles(axes, gaps, look)
        if gaps[-1] > limits[1]:
            name_at_edge(axes, called[engine(record)], gaps, limits[1], look["color"])
        p50, p99 = (number(record, f"latency.itl_ms.{part}") for part in ("p50", "p99"))
        n = number(record, "latency.itl_ms.n")
        text = (f"{called[engine(record)]}: p50 {words.plain(p50) if p50 else '—'}"
                f", p99 {words.plain(p99) if p99 else '—'} (n = {n or '?'})")
        curves.append((p50 or gaps[len(gaps) // 2], line, text))
    style.log_ticks(axes.xaxis)
    key_beside(axes, [(line, text) for _, line, text in sorted(curves, key=lambda c: c[0])])
    return figure


def limits_of(rows):
    """Around the gaps of the caches: recompute, far slower, would hide theirs."""
    shown = [r for r in rows if engine(r) != "recompute"] or rows
    found = [gap for record in shown for gap in series(record, "samples.itl_ms")]
    return min(found) / 1.2, max(found) * 1.2


def mark_quantiles(axes, gaps, look):
    """Marks on the curve of some sorted gaps."""
    big = {**look, "linestyle": "none", "ms": 8, "mec": style.BLACK, "mew": 0.8, "zorder": 4}
    for share in (50, 99) if len(gaps) >= FEWEST_OF_P99 else (50,):
        axes.plot(gaps[math.ceil(share / 100 * len(gaps)) - 1], share, **big)


def name_at_edge(axes, name, gaps, edge, color):
    """Says whose curve leaves the frame at its right edge."""
    share = 100 * np.searchsorted(gaps, edge, side="right") / len(gaps)
    axes.annotate(f"{name} goes on →", (1, share), xycoords=("axes fraction", "data"),
                  xytext=(-2, 4), textcoords="offset points", ha="right", fontsize=KEY_SIZE,
                  color=style.darker(color))


def key_beside(axes, curves):
    """A key right of the axes: all curves end at 100 %, so labels at their ends would not help."""
    texts = [text for _, text in curves]
    style.set_margins(axes.figure, right=0.75 + style.width_of(axes.figure, texts, KEY_SIZE))
    axes.legend([line for line, _ in curves], texts, loc="upper left", bbox_to_anchor=(1.01, 1),
                frameon=False, fontsize=KEY_SIZE, handlelength=2.6, borderaxespad=0,
                title="ms, the lowest p50 first", title_fontsize=KEY_SIZE, alignment="left")
