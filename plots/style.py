"""One look for all plots: an engine has the same colour, marker and line in every picture."""

import os
import textwrap
import zlib

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

import words
from records import get, number

# Okabe & Ito's palette, safe for colour-blind readers; its yellow is too pale for lines, its orange
# and sky blue are darker here, to be seen on white.
BLACK, BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#000000", "#0072B2", "#C48700", "#009E73", "#D55E00", "#CC79A7", "#4999C6")
BROWN = "#8C6D31"
GREY, PALE = "#555555", "#999999"  # what is said beside the data

FAMILIES = {"f32": BLUE, "f16": GREEN, "bf16": SKY, "fp8": BROWN, "int8": RED, "int4": PURPLE}
MARKERS = {
    "f32": "s", "f16": "^", "bf16": "v", "fp8:e4m3": "P",
    "int8:g32": "D", "int8:g64": "d", "int8:g128": "p",
    "int4:g32": "X", "int4:g64": "*", "int4:g128": "h",
}
OTHERS = ["#882255", "#999933", "#3D998A", "#332288"]  # K and V in different formats

CAVEAT = "CPU figures don't carry over to GPUs"

WIDTH = 9.0  # inches, of every picture
LEFT = 0.02  # where words around the picture begin, as a part of its width
TITLE, SUBTITLE, TICKS, TEXT, FOOTER = 13, 9, 10, 9, 7.5  # points

matplotlib.rcParams.update({
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "font.size": TICKS,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_locale": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "hatch.linewidth": 0.8,
    "svg.hashsalt": "kvmark",  # the same picture gives the same file
})


# ---- Engines ----

def darker(color, share=0.35):
    return tuple((1 - share) * part for part in to_rgb(color))


def look(engine):
    """Keyword arguments of plot() for an engine's canonical name.

    Colour: the family of the format, darker where it is paged. Marker: the format; hollow with a
    zero point, half filled where it is paged. Line: the layout and its size of blocks.
    """
    layout, _, rest = engine.partition("/")
    if layout == "recompute":
        return {"color": BLACK, "marker": "o", "linestyle": "-"}
    codec, _, policy = rest.partition("/")
    base = codec[:-len(":asym")] if codec.endswith(":asym") else codec
    color = FAMILIES.get(base.split(":")[0]) or OTHERS[zlib.crc32(codec.encode()) % len(OTHERS)]
    kind = {"color": color, "marker": MARKERS.get(base, "8"), "linestyle": "-",
            "markerfacecoloralt": "white"}
    if layout.startswith("paged"):
        block = int("".join(filter(str.isdigit, layout)) or 16)
        kind["linestyle"] = "--" if block <= 32 else "-." if block <= 256 else ":"
        kind["fillstyle"] = "left"
        # It lies on top of contiguous f32, from which its colour must tell it apart.
        kind["color"] = ORANGE if base == "f32" else darker(color)
    elif policy:
        kind["linestyle"] = (0, (5, 1, 1, 1, 1, 1))
    if base != codec:
        kind["fillstyle"] = "none"
    return kind


def order(engine):
    """Sorts engines: no cache first, then by format, of a format in one piece before pages."""
    layout, _, rest = engine.partition("/")
    codec = rest.partition("/")[0].replace(":asym", "")
    formats = list(MARKERS)
    block = int("".join(filter(str.isdigit, layout)) or 0)
    return (layout != "recompute", formats.index(codec) if codec in formats else len(formats),
            rest, block)


# ---- Words around the picture ----

def model(records):
    return words.clipped(str(get(records[0], "case.model", "unknown model")), 30)


def level(records):
    return ("attention alone" if get(records[0], "case.level") == "attention"
            else "whole steps")


def subject(records):
    """What a picture is of, behind its title: "seed-gqa 8:2, whole steps"."""
    heads, kv_heads = (get(records[0], f"case.{key}", "?") for key in ("heads", "kv_heads"))
    return f"{model(records)} {heads}:{kv_heads}, {level(records)}"


UNUSUAL = {"pool_order": "fresh", "repeat_kv": False, "pin": False, "tokens": "forced"}


def setting(records):
    """What all records of a picture have in common, in a line."""
    first = records[0]
    case = get(first, "case", {})
    known = lambda key: case.get(key, "?")  # noqa: E731
    layers = {number(record, "case.layers") for record in records} - {None}
    of = f"{words.span(layers)} layers" if layers else "? layers"
    parts = [f"attention of {of} alone" if case.get("level") == "attention"
             else f"whole steps of {of}, weights {known('weights')}"]
    parts.append(f"heads {known('heads')}:{known('kv_heads')} of {known('head_dim')}")
    parts.append(f"batch {known('batch')}"
                 + (" (a step serves all sequences)" if sequences(records) > 1 else ""))
    parts.append(f"{known('threads')} threads on {known('device')}")
    parts += [words.clipped(f"{key} {value}") for key, usual in UNUSUAL.items()
              if (value := case.get(key)) not in (None, usual)]
    return ", ".join(parts)


def sequences(records):
    return number(records[0], "case.batch") or 1


def of_all(records):
    """What behind bytes and rates says that they are not those of one sequence."""
    return f" of all {sequences(records)} sequences" if sequences(records) > 1 else ""


def of_each(records):
    """What behind tokens and positions says that each sequence has so many."""
    return " of each sequence" if sequences(records) > 1 else ""


def machine(records):
    """Where and when the records were made, and how many rounds stand behind a figure.

    Of records that were made in several places: "AVX2 → AVX3_DL", in their order.
    """
    def every(key):
        return " → ".join(dict.fromkeys(
            words.clipped(str(value)) for r in records if (value := get(r, f"env.{key}"))))

    rounds = {number(r, "sampling.rounds") for r in records} - {None}
    days = sorted({started[:10] for r in records if (started := get(r, "env.started"))})
    cores, git = every("cores"), every("git")
    parts = [every("cpu") or "unknown CPU", every("gpu"), every("simd"), cores and f"{cores} cores"]
    if rounds:
        parts.append(f"n = {words.span(rounds)} round{'' if rounds == {1} else 's'}")
    parts.append(git and f"kvmark {git}")
    parts += [" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []
    return " · ".join(filter(None, parts))


def new_figure(title, subtitle, records, inside=3.5, above=0.0):
    """A figure with heading and footer around `inside` inches for axes, `above` inches for a key.

    Its axes come from figure.subplots(); set_margins() makes room beside them.
    """
    figure = Figure(figsize=(WIDTH, 1))
    FigureCanvasAgg(figure)
    titles = wrapped(figure, title, TITLE, "bold")
    heading = wrapped(figure, subtitle, SUBTITLE)
    footer = wrapped(figure, machine(records), FOOTER)
    if {get(record, "case.device") for record in records} == {"cpu"}:
        footer.append(CAVEAT)
    under = 0.28 + 0.22 * len(titles)  # inches from the top
    top = under + 0.02 + 0.17 * len(heading) + above
    bottom = 0.7 + 0.14 * len(footer)
    height = top + inside + bottom

    figure.set_size_inches(WIDTH, height)
    for at, line in enumerate(titles):
        figure.text(LEFT, 1 - (0.3 + 0.22 * at) / height, line, fontsize=TITLE, fontweight="bold")
    for at, line in enumerate(heading):
        figure.text(LEFT, 1 - (under + 0.17 * at) / height, line, fontsize=SUBTITLE, color=GREY)
    for at, line in enumerate(reversed(footer)):
        figure.text(LEFT, (0.1 + 0.14 * at) / height, line, fontsize=FOOTER, color=GREY)
    figure.subplots_adjust(top=1 - top / height, bottom=bottom / height)
    set_margins(figure, left=0.85, right=0.3)
    return figure


def wrapped(figure, text, size, weight="normal"):
    """Lines as wide as the picture allows; how many letters that are depends on the letters."""
    for letters in range(int(1400 / size), 10, -3):  # from more than ever fit
        lines = textwrap.wrap(text, letters)
        if width_of(figure, lines, size, weight) <= (1 - 2 * LEFT) * WIDTH:
            break
    return lines


def set_margins(figure, left=None, right=None):
    """Inches between the edges of the picture and its axes."""
    figure.subplots_adjust(left=left and left / WIDTH, right=right and 1 - right / WIDTH)


def width_of(figure, texts, size=TEXT, weight="normal"):
    """Inches that the widest of some texts takes."""
    renderer = figure.canvas.get_renderer()
    widest = 0
    for text in set(texts):
        artist = figure.text(0, 0, text, fontsize=size, fontweight=weight)
        widest = max(widest, artist.get_window_extent(renderer).width)
        artist.remove()
    return widest / figure.dpi


# ---- Axes ----

MOST_TICKS = 9


def context_axis(axes, at):
    """A logarithmic axis with ticks at contexts; at all of them where they are few."""
    axes.set_xscale("log", base=2)
    step = -(-len(at) // MOST_TICKS)
    shown = at[::-1][::step][::-1]
    axes.set_xticks(shown, [words.tokens(n) for n in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("context (tokens)")


def log_ticks(axis, text=words.tick):
    """Plain numbers on a logarithmic axis, finer where it spans little. Call when it is final."""
    low, high = sorted(axis.get_view_interval())
    powers = range(-15, 16)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        at = [step * 10.0**power for power in powers for step in steps]
        at = [value for value in at if low <= value <= high]
        if len(at) >= 4:
            break
    else:
        at = [v for v in MaxNLocator(5).tick_values(low, high) if low <= v <= high]
    texts = [text(round(value, 15)) for value in at]
    axis.set_ticks(at, texts)
    axis.set_minor_formatter(NullFormatter())
    if axis.axis_name == "y":
        set_margins(axis.figure, left=0.5 + width_of(axis.figure, texts, TICKS))


def errors(values, intervals):
    """The yerr or xerr of errorbar(): distances to the bounds; 0 where there is no interval."""
    bounds = [found or (value, value) for value, found in zip(values, intervals)]
    return [[max(0, value - low) for value, (low, _) in zip(values, bounds)],
            [max(0, high - value) for value, (_, high) in zip(values, bounds)]]


def set_beside(figure, curves, step=4, most=16):
    """Moves curves sideways, so that their intervals or markers do not hide each other.

    curves: lists of artists. step: points from one to the next, `most` from the first to the last.
    Call when the limits are final.
    """
    step = min(step, most / max(1, len(curves)))
    for i, artists in enumerate(curves):
        inches = step * (i - (len(curves) - 1) / 2) / 72
        moved = ScaledTranslation(inches, 0, figure.dpi_scale_trans)
        for artist in artists:
            artist.set_transform(artist.get_transform() + moved)


def save(figure, folder, name, aside):
    """Writes PNG and SVG, first into the folder `aside`, so that no file is ever half a picture."""
    # A date in the file would make equal pictures differ.
    for file, metadata in ((f"{name}.png", None), (f"{name}.svg", {"Date": None})):
        figure.savefig(os.path.join(aside, file), metadata=metadata)
        os.replace(os.path.join(aside, file), os.path.join(folder, file))
