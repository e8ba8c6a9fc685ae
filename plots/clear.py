#!/usr/bin/python3
"""Removes from a folder the pictures of an earlier start, and nothing else. Needs no matplotlib.

clear.py FOLDER

Exit code: 0; 2 where the folder cannot be read, or a file in it not be removed.
"""

import os
import re
import sys

# The files of plot.py. Behind the name of a plot a number may stand, that of a setting.
PLOTS = ("cumulative_time", "attention_time", "step_time", "kv_bytes", "loss", "break_even",
         "steps", "ceiling", "latency", "memory_timeline", "heat_map", "comparison")
SETTINGS = "settings.txt"  # which number is which setting
COMPARISON = "comparison.json"  # what `kvmark report` has compared


def is_own(file):
    return (file in (SETTINGS, COMPARISON)
            or re.fullmatch(rf"({'|'.join(PLOTS)})(-\d+)?\.(png|svg)", file) is not None)


def remove_earlier(folder, keep=None):
    """Removes the files that plot.py left in a folder, but not `keep`."""
    for file in filter(is_own, os.listdir(folder)):
        path = os.path.join(folder, file)
        is_kept = keep is not None and os.path.realpath(path) == os.path.realpath(keep)
        if not is_kept and not os.path.isdir(path):
            os.remove(path)


def main(arguments):
    if len(arguments) != 1:
        print("usage: clear.py FOLDER", file=sys.stderr)
        return 2
    try:
        remove_earlier(arguments[0])
    except OSError as error:
        print(f"clear.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
