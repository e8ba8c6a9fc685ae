#!/usr/bin/python3
"""Draws what the records of runs support, as PNG and SVG, and says which pictures it wrote.

plot.py RUN...                        every plot, into RUN/plots of the first run
plot.py BASE NEW --compare FILE       their comparison; FILE is what `kvmark compare BASE NEW
                                      --format json` printed
"""

import argparse
import os
import sys
import textwrap
from collections import namedtuple
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import style  # noqa: E402 (the folder of these files comes first)
from break_even import plot_break_even  # noqa: E402
from comparison import plot_comparison, read_comparison  # noqa: E402
from growth import plot_attention_time, plot_cumulative_time, plot_step_time  # noqa: E402
from heat_map import HEAD_KEYS, plot_heat_map  # noqa: E402
from latency import plot_latency  # noqa: E402
from loss import plot_loss  # noqa: E402
from memory import plot_kv_bytes, plot_memory_timeline  # noqa: E402
from records import (  # noqa: E402
    ENGINE_KEYS, LENGTH_KEYS, BadFile, engine, group, has_figures, latest, load)
from steps import plot_ceiling, plot_steps  # noqa: E402

# apart: keys of the case in which the records of one picture may differ.
Plot = namedtuple("Plot", "name function apart")
SETTING = ENGINE_KEYS + LENGTH_KEYS
PLOTS = (
    Plot("cumulative_time", plot_cumulative_time, SETTING),
    Plot("attention_time", plot_attention_time, SETTING),
    Plot("step_time", plot_step_time, SETTING),
    Plot("kv_bytes", plot_kv_bytes, SETTING),
    Plot("loss", plot_loss, SETTING),
    Plot("break_even", plot_break_even, SETTING),
    Plot("steps", plot_steps, SETTING),
    Plot("ceiling", plot_ceiling, SETTING),
    Plot("latency", plot_latency, SETTING),
    Plot("memory_timeline", plot_memory_timeline, SETTING),
    Plot("heat_map", plot_heat_map, SETTING + HEAD_KEYS + ("batch",)),
)
MOST_PICTURES = 8  # of a plot


def draw_one(function, records, folder, name):
    """The name of the picture; None where the records do not support it."""
    figure = function(records)
    if figure is None:
        return None
    style.save(figure, folder, name)
    return name


def jobs_of(records, folder, every):
    """Arguments of draw_one() for each plot and setting.

    A picture has the number of its setting, the same for all plots, where there are several; one of
    several settings that of the first.
    """
    rows = [record for record in latest(records) if has_figures(record)]
    settings = group(rows, SETTING)
    number_of = {id(record): at for at, one in enumerate(settings, 1) for record in one}
    if len(settings) > MOST_PICTURES and not every:
        print(f"plot.py: {len(settings)} settings: of each plot the first {MOST_PICTURES} are "
              "drawn; --all draws the others too", file=sys.stderr)
    jobs = []
    for name, function, apart in PLOTS:
        for one in group(rows, apart):
            at = number_of[id(one[0])]
            if at <= MOST_PICTURES or every:
                one.sort(key=lambda record: style.order(engine(record)))
                jobs.append((function, one, folder, f"{name}-{at}" if len(settings) > 1 else name))
    return jobs


def draw(records, folder, every=False):
    """Draws every plot that the records support, on all cores; returns the pictures' names."""
    jobs = jobs_of(records, folder, every)
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(max_workers=min(cores, max(1, len(jobs)))) as pool:
        return [name for name in pool.map(draw_one, *zip(*jobs)) if name]


def plots_of(options, folder):
    """The names of the pictures that the command line asks for."""
    runs = [load(path) for path in options.runs]
    comparison = options.compare and read_comparison(options.compare)
    os.makedirs(folder, exist_ok=True)
    if comparison:
        name = draw_one(lambda two: plot_comparison(comparison, *two), runs, folder, "comparison")
        return [name] if name else []
    records = [record for run in runs for record in run]
    return draw(records, folder, options.all)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN", nargs="*",
                        help="folder of a run, or a file of records")
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="default: plots/ in the first RUN, or beside the first file")
    parser.add_argument("--compare", metavar="FILE", help="draw this comparison of BASE and NEW")
    parser.add_argument("--all", action="store_true",
                        help=f"more than {MOST_PICTURES} pictures of a plot")
    options = parser.parse_args(arguments)
    if options.compare is None and not options.runs:
        parser.error("no RUN given: name the folder of a run, or a file of records")
    if options.compare is not None and len(options.runs) not in (0, 2):
        parser.error(f"--compare needs BASE and NEW, but {len(options.runs)} runs are given")

    first = (options.runs or [options.compare])[0]
    base = first if os.path.isdir(first) else os.path.dirname(first) or "."
    folder = options.output or os.path.join(base, "plots")
    try:
        written = plots_of(options, folder)
    except OSError as error:
        print(f"plot.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except BadFile as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    if written:
        print(f"plots in {folder}, each as PNG and SVG:")
        print(textwrap.fill(" ".join(written), 100, initial_indent="  ", subsequent_indent="  ",
                            break_on_hyphens=False))
    else:
        print(f"plot.py: {first}: nothing in it can be drawn", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
