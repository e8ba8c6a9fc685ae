"""One look for all plots: an engine has the same colour, marker and line in every picture."""

import zlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

from records import get  # noqa: E402

# Okabe & Ito's palette, safe for colour-blind readers; its yellow is too pale for lines.
BLACK, BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
BROWN = "#8C6D31"

# Codec → colour and marker. The layout decides the line.
CODECS = {
    "f32": (BLUE, "s"),
    "f16": (GREEN, "^"),
    "bf16": (SKY, "v"),
    "fp8": (BROWN, "P"),
    "int8": (RED, "D"),
    "int4": (PURPLE, "X"),
}
PAGED_F32 = (ORANGE, "o")  # lies on top of contiguous f32, so colour must tell them apart
OTHERS = [SKY, BROWN, PURPLE, GREEN]

CAVEAT = "CPU figures don't carry over to GPUs"

plt.rcParams.update({
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "kvmark",  # the same picture gives the same file
})


def engine_style(engine):
    """Keyword arguments of plot() for an engine's canonical name."""
    parts = engine.split("/")
    if parts[0] == "recompute":
        return {"color": BLACK, "marker": "o", "linestyle": "-"}
    codec = parts[1].split(":")[0] if len(parts) > 1 else ""
    paged = parts[0].startswith("paged")
    if paged and codec == "f32":
        color, marker = PAGED_F32
    elif codec in CODECS:
        color, marker = CODECS[codec]
    else:
        color, marker = OTHERS[zlib.crc32(engine.encode()) % len(OTHERS)], "*"
    return {"color": color, "marker": marker, "linestyle": "--" if paged else "-"}


def setting(record):
    """The settings of a group in a line."""
    case = get(record, "case", {})
    known = lambda key: case.get(key, "?")  # noqa: E731
    return (f"{known('layers')} layers, heads {known('heads')}:{known('kv_heads')} of "
            f"{known('head_dim')}, weights {known('weights')}, batch {known('batch')}, "
            f"threads {known('threads')}, {known('device')}")


def machine(records):
    """Where and when the records were made, and how many rounds stand behind a figure."""
    env = next((get(r, "env") for r in records if get(r, "env.compiler")), {})
    rounds = sorted({get(r, "sampling.rounds") for r in records if get(r, "sampling.rounds")})
    parts = [env.get("cpu") or "unknown CPU"]
    if env.get("gpu"):
        parts.append(env["gpu"])
    if env.get("cores"):
        parts.append(f"{env['cores']} cores")
    if rounds:
        parts.append("n = " + "–".join(str(n) for n in dict.fromkeys([rounds[0], rounds[-1]])) +
                     (" round" if rounds == [1] else " rounds"))
    if env.get("git"):
        parts.append("kvmark " + env["git"])
    if env.get("started"):
        parts.append(env["started"][:10])
    return " · ".join(parts)


def new_figure(title, subtitle, records, height=5.0):
    """A figure with its heading and its footer; returns (figure, axes)."""
    figure, axes = plt.subplots(figsize=(8.6, height))
    figure.subplots_adjust(left=0.1, right=0.74, top=1 - 0.72 / height, bottom=0.98 / height)
    figure.text(0.02, 1 - 0.3 / height, title, fontsize=13, fontweight="bold")
    figure.text(0.02, 1 - 0.53 / height, subtitle, fontsize=9, color="#555555")
    devices = {get(record, "case.device") for record in records}
    figure.text(0.02, 0.27 / height, machine(records), fontsize=7.5, color="#555555")
    if devices == {"cpu"}:
        figure.text(0.02, 0.1 / height, CAVEAT, fontsize=7.5, color="#555555")
    return figure, axes


def spread(wanted, gap):
    """The ascending positions nearest to `wanted` (ascending, in [0, 1]) that lie `gap` apart.

    Least squares: neighbours that are too close form a block around their mean (pool adjacent
    violators), which may not leave [0, 1].
    """
    blocks = []  # [sum, count] of wanted positions, each less the gaps below it
    for i, at in enumerate(wanted):
        blocks.append([at - i * gap, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    means = [total / count for total, count in blocks for _ in range(count)]
    low, high = gap / 2, 1 - gap / 2 - (len(wanted) - 1) * gap
    return [max(low, min(high, mean)) + i * gap for i, mean in enumerate(means)]


def label_ends(axes, ends):
    """Writes labels beside the right ends of curves, spread so that none overlap.

    ends: list of (x, y, text, colour) in data coordinates. Call when the limits are final.
    """
    axes.figure.canvas.draw()
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = sorted(ends, key=lambda end: end[1])
    points = [to_axes.transform(end[:2]) for end in ends]
    line = 14 * axes.figure.dpi / 72 / axes.get_window_extent().height
    for (x, y), at, end in zip(points, spread([y for _, y in points], line), ends):
        axes.annotate(end[2], xy=(x, y), xytext=(1.05, at), xycoords="axes fraction",
                      textcoords="axes fraction", fontsize=9, color=end[3], va="center",
                      annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": end[3], "lw": 0.7, "alpha": 0.6,
                                  "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4})


def plain_ticks(axis):
    """Plain numbers on a logarithmic axis; 1, 2 and 5 of each decade where it spans few."""
    low, high = axis.get_view_interval()
    few = high / low < 300
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure, folder, name):
    """Writes PNG and SVG; returns the paths."""
    paths = [f"{folder}/{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        # A date in the file would make equal pictures differ. Tight: long names need room.
        figure.savefig(path, bbox_inches="tight", pad_inches=0.15,
                       metadata={"Date": None} if path.endswith("svg") else None)
    plt.close(figure)
    return paths
