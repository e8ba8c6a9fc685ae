"""Heads × sequence length of a sweep (9): a step's time in colours, small multiples by batch."""

import math

from matplotlib.colors import LogNorm

import style
import words
from records import by_engine, engine, get, number, timed_names

# What goes with the number of heads, besides the heads themselves.
HEAD_KEYS = ("heads", "kv_heads", "d_model", "ffn")
MOST_PANELS = 12


def heads(record):
    return number(record, "case.heads") or 0, number(record, "case.kv_heads") or 0


def time_of(record):
    """Milliseconds of a step; at attention level of a layer of it."""
    ms, layers = number(record, "latency.tpot_ms.p50"), number(record, "case.layers")
    if get(record, "case.level") != "attention":
        return ms
    return ms / layers if ms and layers else None


def plot_heat_map(records):
    """A panel for each engine and batch; None unless heads and lengths have two values each.

    records: equal but for engine, lengths, heads and batch.
    """
    rows = [r for r in records if time_of(r) and number(r, "case.seq_len")]
    shapes = sorted({heads(r) for r in rows})
    spans = sorted({number(r, "case.seq_len") for r in rows})
    if len(shapes) < 2 or len(spans) < 2:
        return None
    batches = sorted({number(r, "case.batch") or 1 for r in rows})
    engines = list(by_engine(rows))[:max(1, MOST_PANELS // len(batches))]
    panels = [(name, batch) for name in engines for batch in batches]
    columns = len(batches) if len(batches) > 1 else min(2, len(engines))
    lines = math.ceil(len(panels) / columns)

    first = get(rows[0], "case.level")
    what = "ms a layer" if first == "attention" else "ms a step"
    figure = style.new_figure(
        f"Heads × sequence length: {style.model(rows)}, {style.level(rows)}",
        f"{level_text(rows)}; median rounds; brighter is slower, one scale for all"
        + left_out(rows, engines), rows,
        inside=lines * (0.55 + 0.36 * len(shapes)), above=0.2)
    style.set_margins(figure, left=0.9, right=0.35)
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True, gridspec_kw={
        "hspace": 0.55 / (0.36 * len(shapes)), "wspace": 0.06})
    times = [time_of(r) for r in rows if engine(r) in engines]
    norm = LogNorm(min(times) / 1.001, max(times) * 1.001)
    called = timed_names(rows)
    for axes, (name, batch) in zip(grid.flat, panels):
        own = {(heads(r), number(r, "case.seq_len")): time_of(r) for r in rows
               if engine(r) == name and (number(r, "case.batch") or 1) == batch}
        draw_panel(axes, own, shapes, spans, norm)
        title = called[name] + (f", batch {batch}" if len(batches) > 1 else "")
        axes.set_title(f"{title} ({what})", fontsize=style.TEXT, loc="left", pad=3)
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("heads, query:KV", fontsize=style.TEXT)
    for column in range(columns):
        last = max(i for i in range(len(panels)) if i % columns == column)
        grid.flat[last].tick_params(labelbottom=True)
        grid.flat[last].set_xlabel("sequence length (tokens)", fontsize=style.TEXT)
    return figure


def level_text(rows):
    case = get(rows[0], "case", {})
    level = ("attention and append" if case.get("level") == "attention" else
             f"whole steps of {case.get('layers', '?')} layers, weights {case.get('weights', '?')}")
    return (f"{level}, heads of {case.get('head_dim', '?')} channels, {case.get('threads', '?')} "
            f"threads on {case.get('device', '?')}")


def left_out(rows, engines):
    others = len(by_engine(rows)) - len(engines)
    return f"; {others} more engines have no panel" if others > 0 else ""


def draw_panel(axes, own, shapes, spans, norm):
    """Cells with their figures; a dash where there is no figure."""
    grid = [[own.get((shape, span), math.nan) for span in spans] for shape in shapes]
    axes.set_facecolor("white")
    axes.grid(False)
    mesh = axes.pcolormesh(range(len(spans) + 1), range(len(shapes) + 1), grid, norm=norm,
                           cmap="cividis", edgecolors="white", lw=1)
    for y, line in enumerate(grid):
        for x, value in enumerate(line):
            if math.isnan(value):
                axes.text(x + 0.5, y + 0.5, "—", ha="center", va="center", color=style.GREY)
                continue
            dark = sum(mesh.cmap(norm(value))[:3]) < 1.5
            axes.text(x + 0.5, y + 0.5, words.plain(value, 2), ha="center", va="center",
                      fontsize=8.5 if len(spans) <= 6 else 7,
                      color="white" if dark else style.BLACK)
    axes.set_xticks([x + 0.5 for x in range(len(spans))], [words.tokens(n) for n in spans],
                    fontsize=8.5 if len(spans) <= 6 else 7)
    axes.set_yticks([y + 0.5 for y in range(len(shapes))], [f"{q}:{kv}" for q, kv in shapes],
                    fontsize=8.5)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
