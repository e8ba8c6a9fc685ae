#!/usr/bin/python3
"""Holds docs/engines.md to what the program knows.

Every engine that `kvmark list engines` names must be made of a layout and a codec that the page
names, every preset must be there, and so must every codec, layout and policy of the other lists.
Codecs count by their whole name, layouts and policies without their arguments. The second cell of a
codec's row must be the bits that `kvmark list codecs` shows.

usage: check_engine_docs.py KVMARK [PAGE]
"""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[1] / "docs/engines.md"


def listed(kvmark, topic):
    """The rows of `kvmark list TOPIC`, as lists of their cells."""
    output = subprocess.run([kvmark, "list", topic], stdout=subprocess.PIPE, text=True, check=True)
    return [re.split(r"\s{2,}", line) for line in output.stdout.splitlines()]


def listed_codecs(kvmark):
    return listed(kvmark, "codecs")[1:-1]  # the last line is a remark


def base(name):
    return re.split(r"[:\[]", name)[0]


def wanted(kvmark):
    """(what the page must name, who wants it)."""
    for engine, *cells in listed(kvmark, "engines")[1:]:
        if engine.startswith("refused: "):  # the reason below the refused ones
            continue
        layout, *codecs = engine.split("/")
        yield base(layout), f"engine {engine}"
        for codec in codecs[:1]:
            yield codec, f"engine {engine}"
        if len(cells) == 2:  # an engine without a preset has only its use behind it
            yield cells[0], f"preset {cells[0]}"
    for codec, *_ in listed_codecs(kvmark):
        yield codec, f"codec {codec}"
    for topic in ("layouts", "policies"):
        for name, *_ in listed(kvmark, topic):
            yield base(name), f"{topic} {name}"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else PAGE
    # The first cell of a table's row is where a thing is explained.
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", page.read_text(encoding="utf-8"), re.M)
    bits = {name.strip("`"): cell for name, cell in rows}
    rows = [name for name, _ in rows]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    named |= {base(name) for name in named if re.search(r":[A-Z]$", name)}
    missing = {why: name for name, why in wanted(sys.argv[1]) if name not in named}
    for why, name in missing.items():
        print(f"{page}: no row for `{name}`, which {why} needs", file=sys.stderr)
    wrong = [
        f"{page}: {codec} has {want} bits in `kvmark list codecs`, not {bits[codec]}"
        for codec, want, *_ in listed_codecs(sys.argv[1])
        if bits.get(codec, want) != want
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if missing or wrong else 0)


if __name__ == "__main__":
    main()
