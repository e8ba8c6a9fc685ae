"""What the cache takes: live and reserved bytes (2), and how they grow within a round (8)."""

import labels
import style
import words
from records import (by_engine, context, contexts, engine, fullest, get, is_number, names, number,
                     one_length_each, positions)
from rows import new_rows

MIB = 2**20
FEWEST_POINTS = 8  # of a timeline that shows how memory grows
LITTLE = 0.1  # the part by which bytes grow so little that their curve is flat
NEAR = 30  # times the highest curve: up to there the machine's memory is a line


# ---- 2: bytes against context ----

def plot_kv_bytes(records):
    """Live and reserved bytes: bars at one context, curves over several; None without rows."""
    keys = ("memory.kv_live_bytes", "memory.kv_reserved_bytes")
    rows = one_length_each([r for r in records
                            if all(number(r, key) is not None for key in keys)])
    if not rows:
        return None
    return kv_bytes_bars(rows) if len(contexts(rows)) == 1 else kv_bytes_curves(rows)


def weight_bytes(records):
    """Bytes of the model's weights; None at attention level, which has none."""
    return max((number(r, "memory.weight_bytes") or 0 for r in records), default=0) or None


def machine_words(rows):
    """What the machines have, for a subtitle."""
    memory = number(rows[0], "env.memory_bytes")
    return f"; the machine has {words.binary(memory)}" if memory else ""


def kv_bytes_bars(rows):
    called = names(rows)
    live = [number(r, "memory.kv_live_bytes") for r in rows]
    reserved = [number(r, "memory.kv_reserved_bytes") for r in rows]
    largest = max(reserved + live) or 1
    weights = weight_bytes(rows)
    beyond = weights is not None and weights > 1.5 * largest
    figure, axes, places = new_rows(
        f"Bytes of the KV cache: {style.subject(rows)}",
        f"after {words.tokens(positions(rows[0]))} positions{style.of_each(rows)}, "
        f"{style.setting(rows)}"
        + (f"; the model's weights take {words.binary(weights)}, "
           f"{words.plain(weights / largest, 2)} times the longest bar" if beyond else "")
        + machine_words(rows),
        rows, [("", [called[engine(r)] for r in rows])],
        [f"{words.binary(low)} live, {words.binary(high)} reserved"
         for low, high in zip(live, reserved)])
    for y, record, low, high in zip(places, rows, live, reserved):
        color = style.look(engine(record))["color"]
        axes.barh(y, high / MIB, height=0.66, facecolor="white", edgecolor=color, hatch="////")
        axes.barh(y, low / MIB, height=0.66, color=color)
    axes.set_xlim(0, 1.03 * max(largest, 0 if beyond else weights or 0) / MIB)
    if weights is not None and not beyond:
        axes.axvline(weights / MIB, color=style.GREY, lw=1.2, ls="--")
        axes.annotate("weights", (weights / MIB, 1), xycoords=("data", "axes fraction"),
                      xytext=(0, 2), textcoords="offset points", ha="center", fontsize=style.TEXT,
                      color=style.GREY)
    axes.set_xlabel(f"MiB{style.of_all(rows)} (filled: live rows, hatched: reserved)")
    return figure


def kv_bytes_curves(rows):
    called = names(rows)
    # Plans may let the layers follow the context; then only the bytes of a layer have one meaning.
    shared = len({number(r, "case.layers") for r in rows}) > 1
    layers = lambda r: (number(r, "case.layers") or 1) if shared else 1  # noqa: E731
    a_layer = " a layer" if shared else ""
    figure = style.new_figure(
        f"Bytes of the KV cache: {style.subject(rows)}",
        f"{style.setting(rows)}; curves: live rows, dashes: reserved{machine_words(rows)}", rows,
        inside=labels.room(1 + len(by_engine(rows))))
    axes = figure.subplots()
    style.context_axis(axes, contexts(rows))
    axes.set(yscale="log", ylabel=f"KV cache{style.of_all(rows)} (MiB{a_layer})")

    ends = []
    for name, own in by_engine(rows).items():
        look = style.look(name)
        x = [context(r) for r in own]
        live, reserved = ([number(r, f"memory.{key}") / layers(r) / MIB for r in own]
                          for key in ("kv_live_bytes", "kv_reserved_bytes"))
        axes.plot(x, reserved, ls="none", marker="_", ms=14, mew=1.6, color=look["color"])
        text = called[name]
        if live[-1] > 0:
            axes.plot(x, live, **look)
            per_token = number(own[-1], "memory.kv_bytes_per_token")
            text += (f": {words.binary(per_token / layers(own[-1]))} a token"
                     + (" and layer" if shared else "") if per_token else "")
            ends.append((x[-1], live[-1], text, look["color"]))
        elif reserved[-1] > 0:
            ends.append((x[-1], reserved[-1], f"{text}: its workspace", look["color"]))
    weights = weight_bytes(rows)
    if weights is not None:
        axes.axhline(weights / MIB, color=style.GREY, lw=1.2, ls="--")
        ends.append((max(contexts(rows)), weights / MIB, f"weights: {words.binary(weights)}",
                     style.GREY))
    if not ends:
        return None
    memory = number(rows[0], "env.memory_bytes")
    # Far above the curves its line would press them flat; the subtitle names it.
    if memory and not shared and memory / MIB <= NEAR * max(end[1] for end in ends):
        axes.axhline(memory / MIB, color=style.BLACK, lw=1.2, ls=":")
        ends.append((max(contexts(rows)), memory / MIB,
                     f"the machine's memory: {words.binary(memory)}", style.BLACK))
    style.log_ticks(axes.yaxis)
    labels.label_ends(axes, ends)
    return figure


# ---- 8: within a round ----

def timeline(record):
    """[(position, live bytes, reserved bytes)] of a round."""
    points = get(record, "memory.timeline", [])
    keys = ("position", "live_bytes", "reserved_bytes")
    return [tuple(point[key] for key in keys) for point in points
            if all(is_number(get(point, key)) for key in keys)]


def something_happens(record):
    """Are there enough points, and do its live or its reserved bytes grow?"""
    points = timeline(record)
    if len(points) < FEWEST_POINTS or not any(live for _, live, _ in points):
        return False
    _, *curves = zip(*points)
    return any(max(curve) > (1 + LITTLE) * min(curve) for curve in curves)


def events(record):
    """[(position, kind)] of what happened inside the engine: growth, copies on write."""
    return [(number(event, "position"), get(event, "kind", "event"))
            for event in get(record, "events", []) if number(event, "position") is not None]


def plot_memory_timeline(records):
    """Live and reserved bytes over the positions of a round, with events, and the fragmentation.

    Recompute keeps nothing and is left out, as are lengths of which most is there before the round
    begins. None without any other.
    """
    rows = fullest([record for record in records if something_happens(record)])
    if not rows:
        return None
    called = names(rows)
    kinds = sorted({kind for record in rows for _, kind in events(record)})
    figure = style.new_figure(
        f"Memory of the KV cache over a round: {style.subject(rows)}",
        f"{style.setting(rows)}; top: reserved, thin: live; bottom: what is reserved and not live"
        + (f"; triangles: {', '.join(kinds).replace('_', ' ')}" if kinds else ""),
        rows, inside=1.7 + labels.room(len(rows)))
    top, bottom = figure.subplots(2, 1, sharex=True, gridspec_kw={
        "height_ratios": [2, 1], "hspace": 0.12})
    top.set(ylabel=f"MiB{style.of_all(rows)}")
    bottom.set(ylabel="fragmentation (%)", xlabel=f"positions in the cache{style.of_each(rows)}",
               ylim=(-4, 104))

    ends = []
    for record in rows:
        look = style.look(engine(record))
        at, live, reserved = zip(*timeline(record))
        every = max(1, len(at) // 8)
        top.plot(at, [value / MIB for value in reserved], markevery=every, **look)
        top.plot(at, [value / MIB for value in live], lw=0.8, color=look["color"])
        waste = [100 * (1 - low / high) if high else 0 for low, high in zip(live, reserved)]
        bottom.plot(at, waste, markevery=every, **look)
        mark_events(top, record, at, reserved)
        ends.append((at[-1], reserved[-1] / MIB,
                     f"{called[engine(record)]}: {words.binary(reserved[-1])}", look["color"]))
    top.set_ylim(bottom=0)
    labels.label_ends(top, ends)
    return figure


def mark_events(axes, record, at, reserved):
    """A triangle at each event, on the curve of the reserved bytes."""
    for position, _ in events(record):
        held = next((value for where, value in zip(at, reserved) if where >= position),
                    reserved[-1])
        axes.plot(position, held / MIB, marker="v", ms=8, mfc="white", mec=style.BLACK, ls="none")
