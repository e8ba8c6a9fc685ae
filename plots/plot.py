#!/usr/bin/python3
"""Draws what the records of runs support, as PNG and SVG, and says which pictures it wrote.

plot.py RUN...                        every plot, into RUN/plots of the first run
plot.py BASE NEW --compare FILE       their comparison; FILE is what `kvmark compare BASE NEW
                                      --format json` printed

Exit code: 0; 2 where files or arguments are not what they should be; 3 where pictures could not be
drawn, which stderr names; 130 where it was interrupted. 1 is Python's own, for a fault of this
program.
"""

import signal
import sys

INTERRUPTED = 130  # the exit code


def stop(*_):
    """Ends this program from wherever it is, as an exception."""
    sys.exit(INTERRUPTED)


if __name__ == "__main__":  # before the imports, which take their time
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, stop)

# ruff: noqa: E402 (those above come first, and then the folder of these files)
import argparse
import multiprocessing
import os
import shutil
import tempfile
import textwrap
import threading
from collections import namedtuple
from concurrent.futures import ProcessPoolExecutor, wait

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import style
from break_even import plot_break_even
from clear import SETTINGS, remove_earlier
from comparison import plot_comparison, read_comparison
from growth import plot_attention_time, plot_cumulative_time, plot_step_time
from heat_map import HEAD_KEYS, plot_heat_map
from latency import plot_latency
from loss import plot_loss
from memory import plot_kv_bytes, plot_memory_timeline
from records import (
    ENGINE_KEYS, LENGTH_KEYS, BadFile, counting, engine, get, group, load, machine_of)
from steps import plot_ceiling, plot_steps

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
OF_THE_MODEL = ("context", "vocab")  # keys of a case that its name implies
SOME_FAILED = 3  # the exit code


# ---- What is drawn ----

Job = namedtuple("Job", "name function arguments")


def jobs_of(rows, settings):
    """A job for each plot and setting.

    Settings have numbers, the same in all plots; a picture of several has that of the first. Where
    there is one setting, names have none.
    """
    numbers = {id(record): at for at, one in enumerate(settings, 1) for record in one}
    jobs = []
    for name, function, apart in PLOTS:
        for one in group(rows, apart):
            number = numbers.get(id(one[0]))
            if number is not None:
                one.sort(key=lambda record: style.order(engine(record)))
                named = f"{name}-{number}" if len(settings) > 1 else name
                jobs.append(Job(named, function, (one,)))
    return jobs


def settings_in_words(settings):
    """What tells settings apart, a text for each: "level model, kv_heads 2"."""
    cases = []
    for records in settings:
        case = {key: value for key, value in get(records[0], "case", {}).items()
                if key not in SETTING + OF_THE_MODEL and not isinstance(value, (dict, list))}
        if case.get("level") == "attention":
            case.pop("layers", None)  # they may follow the context
        case["machine"] = " ".join(str(part) for part in machine_of(records[0]) if part)
        cases.append(case)
    keys = dict.fromkeys(key for case in cases for key in case)
    differing = [key for key in keys if len({case.get(key) for case in cases}) > 1]
    return [", ".join(f"{key} {case[key]}" for key in differing if case.get(key) is not None)
            for case in cases]


# ---- Drawing ----

def draw_one(job, folder, aside):
    """False where the records do not support the picture."""
    figure = job.function(*job.arguments)
    if figure is None:
        return False
    style.save(figure, folder, job.name, aside)
    return True


def end_with_parent():
    """A child that draws leaves Ctrl-C to its parent, and ends when that has ended, however."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch():
        multiprocessing.parent_process().join()
        os._exit(INTERRUPTED)
    threading.Thread(target=watch, daemon=True).start()


def leave(aside):
    """Ends this program at once. The pool would wait for its work; without children, for ever."""
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    shutil.rmtree(aside)
    os._exit(INTERRUPTED)


def draw(jobs, folder):
    """Draws on all cores. Returns the names of the pictures, and name → error of what failed."""
    workers = max(1, min(len(os.sched_getaffinity(0)), len(jobs)))
    with (tempfile.TemporaryDirectory(prefix=".drawing-", dir=folder) as aside,
          ProcessPoolExecutor(workers, initializer=end_with_parent) as pool):
        try:
            futures = [pool.submit(draw_one, job, folder, aside) for job in jobs]
            wait(futures)
        except SystemExit:  # by stop()
            leave(aside)
    failed = {job.name: future.exception() for job, future in zip(jobs, futures)
              if future.exception()}
    written = [job.name for job, future in zip(jobs, futures)
               if job.name not in failed and future.result()]
    return written, failed


def explain(settings, folder):
    """Writes which setting has which number. Returns the path of the file."""
    path = os.path.join(folder, SETTINGS)
    lines = [f"{at}: {text}" for at, text in enumerate(settings_in_words(settings), 1)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("The numbers behind the names; a heat map has that of its first setting.\n"
                   + "".join(f"{line}\n" for line in lines))
    return path


# ---- The command ----

def say(text):
    print(f"plot.py: {text}", file=sys.stderr)


def rows_of(runs):
    """The rows to draw, each case once; says where several runs have one."""
    rows, repeated = counting(runs)
    if repeated:
        say(f"cases that several of the runs have: {repeated}; drawn from the last of these runs")
    return rows


def settings_of(rows, every):
    """The settings to draw, each a list of rows; says where there are more."""
    settings = group(rows, SETTING)
    if len(settings) <= MOST_PICTURES or every:
        return settings
    say(f"{len(settings)} settings: of each plot the first {MOST_PICTURES} are drawn; --all draws "
        "the others too")
    return settings[:MOST_PICTURES]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN", nargs="*",
                        help="folder of a run, or a file of records")
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="default: plots/ in the first RUN, or beside the first file; pictures "
                        "of an earlier start that lie there are removed")
    parser.add_argument("--compare", metavar="FILE", help="draw this comparison of BASE and NEW")
    parser.add_argument("--all", action="store_true",
                        help=f"more than {MOST_PICTURES} pictures of a plot")
    options = parser.parse_args(arguments)
    if options.compare is None and not options.runs:
        parser.error("no RUN given: name the folder of a run, or a file of records")
    if options.compare is not None and len(options.runs) not in (0, 2):
        parser.error(f"--compare needs BASE and NEW, but {len(options.runs)} runs are given")
    return options


def folder_of(options):
    first = (options.runs or [options.compare])[0]
    beside = first if os.path.isdir(first) else os.path.dirname(first) or "."
    return options.output or os.path.join(beside, "plots")


def work_of(options):
    """(jobs, settings) of the command line; a comparison has no settings."""
    runs = [load(path) for path in options.runs]
    if options.compare is not None:
        comparison = read_comparison(options.compare)
        return [Job("comparison", plot_comparison, (comparison, *runs))], []
    rows = rows_of(runs)
    settings = settings_of(rows, options.all)
    return jobs_of(rows, settings), settings


def run(options):
    """The exit code."""
    folder = folder_of(options)
    jobs, settings = work_of(options)
    os.makedirs(folder, exist_ok=True)
    remove_earlier(folder, keep=options.compare)
    written, failed = draw(jobs, folder)
    if written:
        print(f"plots in {folder}, each as PNG and SVG:")
        print(textwrap.fill(" ".join(written), 100, initial_indent="  ", subsequent_indent="  ",
                            break_on_hyphens=False))
        if len(settings) > 1:
            print(f"which number is which setting: {explain(settings, folder)}")
    elif not failed:
        say(f"{', '.join(options.runs) or options.compare}: "
            + ("nothing in it can be drawn" if options.compare is None else
               "no case that both runs have can be judged"))
    for name, error in failed.items():
        say(f"{name} failed: {type(error).__name__}: {error}")
    return SOME_FAILED if failed else 0


def main(arguments):
    options = parse(arguments)
    try:
        return run(options)
    except OSError as error:
        say(f"{error.filename}: {error.strerror}")
    except BadFile as error:
        say(error)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
