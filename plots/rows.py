"""Pictures of horizontal rows: a row an engine, in blocks under headings."""

import style
import words
from records import context

ROW = 0.27  # inches
MOST_ROWS = 36
SIZE = 9  # points


def blocks_by_context(records):
    """[(context, its records)], ascending; of many as many as fit, the longest among them."""
    found = {}
    for record in records:
        found.setdefault(context(record), []).append(record)
    every = sorted(found)
    fit = max(1, MOST_ROWS // max(map(len, found.values())))
    if len(every) > fit:
        steps = max(1, fit - 1)
        every = sorted({every[-1 - (len(every) - 1) * i // steps] for i in range(fit)})
    return [(at, found[at]) for at in every]


def context_heading(at, blocks):
    """A heading for a block, where there are several."""
    return f"context {words.tokens(at)}" if len(blocks) > 1 else ""


def new_rows(title, subtitle, records, blocks, values, above=0.0):
    """A figure with a line for each label of [(heading, [label, …]), …] and `values` beside them.

    Returns (figure, axes, the y of each label).
    """
    headings = sum(1 for heading, _ in blocks if heading)
    lines = headings + sum(len(own) for _, own in blocks)
    figure = style.new_figure(title, subtitle, records, inside=ROW * lines, above=above)
    axes = figure.subplots()
    places, at = [], 0
    for heading, own in blocks:
        if heading:
            axes.annotate(heading, (0.02, at), xycoords=("figure fraction", "data"), va="center",
                          fontsize=SIZE, fontweight="bold", annotation_clip=False,
                          bbox={"fc": "white", "ec": "none", "pad": 1})
            at += 1
        places += range(at, at + len(own))
        at += len(own)

    texts = [label for _, own in blocks for label in own]
    axes.set_yticks(places, texts, fontsize=SIZE)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(lines - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    style.set_margins(figure, left=0.3 + style.width_of(figure, texts, SIZE),
                      right=0.3 + style.width_of(figure, values, SIZE))
    for y, value in zip(places, values):
        axes.annotate(value, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0),
                      textcoords="offset points", va="center", fontsize=SIZE)
    return figure, axes, places
