"""Where a step's time goes (5), and how near its attention comes to what the machine gives (6)."""

import style
import words
from records import engine, get, interval, number, one_length_each, timed_names
from rows import blocks_by_context, context_heading, new_rows

# Key of `profile`, name, colour, hatch: neighbours differ in their greys too.
PHASES = (
    ("qkv_ms", "q, k, v", "#88CCEE", ""),
    ("append_ms", "append", "#DDCC77", "////"),
    ("attend_ms", "attention", "#882255", ""),
    ("out_ms", "output", "#44AA99", "\\\\\\\\"),
    ("ffn_ms", "feed-forward", "#CCCCCC", ""),
    ("lm_head_ms", "logits", "#332288", ""),
    ("other_ms", "other", "#FFFFFF", "...."),
)
DARK = ("attend_ms", "lm_head_ms")


# ---- 5: phases ----

def phases(record):
    """Milliseconds of a step by key of `profile`; empty where it has none."""
    own = {key: number(record, f"profile.{key}") for key, *_ in PHASES}
    own = {key: value for key, value in own.items() if value is not None and value > 0}
    return own if "attend_ms" in own else {}


def plot_steps(records):
    """Shares of a whole step's phases, a bar for each engine and context; None without a profile.

    At attention level there is hardly anything but attention.
    """
    rows = one_length_each([r for r in records if get(r, "case.level") == "model" and phases(r)])
    if not rows:
        return None
    called = timed_names(rows)
    blocks = blocks_by_context(rows)
    shown = [record for _, own in blocks for record in own]
    figure, axes, places = new_rows(
        f"Where a decode step's time goes: {style.subject(rows)}",
        f"{style.setting(rows)}; means of all timed steps; beside each bar: the whole step",
        shown, [(context_heading(at, blocks), [called[engine(r)] for r in own])
                for at, own in blocks],
        [f"{words.plain(sum(phases(record).values()))} ms" for record in shown], above=0.3)
    used = set()
    for y, record in zip(places, shown):
        own = phases(record)
        left, whole = 0.0, sum(own.values())
        for key, _, color, hatch in PHASES:
            share = 100 * own.get(key, 0) / whole
            if share == 0:
                continue
            axes.barh(y, share, left=left, height=0.74, color=color, hatch=hatch,
                      edgecolor="white" if key in DARK else style.PALE, lw=0.5)
            if share >= 6:
                axes.text(left + share / 2, y, f"{share:.0f}", ha="center", va="center",
                          fontsize=8, color="white" if key in DARK else style.BLACK,
                          bbox={"fc": color, "ec": "none", "pad": 0.8} if hatch else None)
            used.add(key)
            left += share
    axes.set(xlim=(0, 100), xlabel="share of a decode step (%)")
    key_above(axes, used)
    return figure


def key_above(axes, used):
    handles = [axes.barh(0, 0, color=color, hatch=hatch, edgecolor=style.PALE, lw=0.5, label=name)
               for key, name, color, hatch in PHASES if key in used]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncol=len(PHASES),
                frameon=False, fontsize=8.5, handlelength=1.4, columnspacing=1.2, borderaxespad=0.2)


# ---- 6: fraction of the ceiling ----

def fraction(record):
    """(fraction, its interval or None, the ceiling in words), or None.

    Of the read ceiling; of the arithmetic for recompute, which reads nothing stored.
    """
    for kind, ceiling, unit in (("bandwidth", "read_ceiling_gb_per_s", "GB/s"),
                                ("flop", "fma_gflop_per_s", "GFLOP/s")):
        value = number(record, f"work.{kind}_fraction")
        if value is not None:
            most = number(record, f"work.{ceiling}")
            text = f"{100 * value:.0f} %" + (f" of {words.plain(most)} {unit}" if most else "")
            return value, interval(record, f"work.{kind}_fraction_ci95"), text
    return None


def plot_ceiling(records):
    """The part of the measured ceiling that the attention reaches; None without one."""
    rows = one_length_each([record for record in records if fraction(record)])
    if not rows:
        return None
    called = timed_names(rows)
    blocks = blocks_by_context(rows)
    shown = [record for _, own in blocks for record in own]
    found = [fraction(record) for record in shown]
    beyond = any(value > 1 for value, *_ in found)
    figure, axes, places = new_rows(
        f"Attention, of what the machine gives: {style.subject(rows)}",
        f"{style.setting(rows)}; median of the rounds"
        + (", with its 95 % interval" if any(bounds for _, bounds, _ in found) else
           " (fewer than six, so without an interval)")
        + ("; above 100 %: the data fit into a cache, or the measurement of the ceiling was "
           "disturbed" if beyond else "")
        + ("; hatched: of the multiply-adds, not of reading" if any(
            engine(r) == "recompute" for r in shown) else ""),
        shown, [(context_heading(at, blocks), [called[engine(r)] for r in own])
                for at, own in blocks],
        [text for *_, text in found])
    largest = 1.0
    for y, record, (value, bounds, _) in zip(places, shown, found):
        look = style.look(engine(record))
        filled = engine(record) != "recompute"
        axes.barh(y, 100 * value, height=0.66, edgecolor=look["color"],
                  color=look["color"] if filled else "white", hatch="" if filled else "////")
        if bounds:
            axes.plot([100 * bound for bound in bounds], [y, y], color=style.BLACK, lw=1.2,
                      marker="|", ms=6)
        largest = max(largest, value, *(bounds or ()))
    axes.axvline(100, color=style.BLACK, lw=1.2, ls="--")
    axes.set(xlim=(0, 103 * largest), xlabel="% of the measured ceiling (dashed)")
    return figure
