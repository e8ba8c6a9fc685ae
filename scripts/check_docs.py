#!/usr/bin/python3
"""Runs every command that the manual shows, and looks for dead links between its pages.

The commands are the lines of the fenced blocks marked `sh` in README.md, CONTRIBUTING.md and
docs/*.md. A block whose mark is `sh` is run line by line in a scratch copy of the tree. A block
marked `sh slow` is rehearsed instead, line by line:

  make TARGET...          make -n TARGET...
  .../kvmark run ...      the same with --dry-run; may say that the model is still to be fetched
  anything else           its program must exist, and bash must be able to parse the line

usage: check_docs.py [--root DIR] [--build DIR]
"""

import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TIMEOUT_S = 120
WRITTEN = {"results", "build"}  # not linked into the scratch tree: commands write there


class Command:
    def __init__(self, place, line, slow):
        self.place, self.line, self.slow = place, line, slow


def pages(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
    return [page for page in found if page.is_file()]


def commands_of(page, name):
    """The commands of a page; a line that ends in a backslash goes on in the next."""
    mark, pending, start = None, "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"\s*```(.*)$", line)
        if fence:
            mark = None if mark is not None else fence.group(1).split()
            continue
        if not mark or mark[0] != "sh":
            continue
        text = line.strip()
        if not pending:
            start = number
            if not text or text.startswith("#"):
                continue
        pending += text
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        yield Command(f"{name}:{start}", pending, "slow" in mark[1:])
        pending = ""


def dead_links(page, name):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{name}: link to {target}: no such file"


def rehearsal(line):
    """What stands for an expensive command."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        return shlex.join(["make", "-n", *words[1:]])
    if words[0].endswith("kvmark") and words[1:2] == ["run"]:
        return shlex.join([*words, "--dry-run"])
    return f"bash -n -c {shlex.quote(line)} && command -v {shlex.quote(words[0])} >/dev/null"


def scratch_tree(root, build, where):
    """Links to everything in the tree, with a results folder of its own."""
    for entry in root.iterdir():
        if entry.name not in WRITTEN and not entry.name.startswith((".git", "build-")):
            (where / entry.name).symlink_to(entry)
    if (root / "results").is_dir():
        shutil.copytree(root / "results", where / "results")
    (where / "build").symlink_to(build)


def run(command, where):
    line = rehearsal(command.line) if command.slow else command.line
    try:
        answer = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=where,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command.place}: {line}\n  took over {TIMEOUT_S} s; mark its block `sh slow`"
    if answer.returncode == 2 and command.slow and "`make model` fetches" in answer.stdout:
        return None
    if answer.returncode != 0:
        tail = "\n".join("  " + text for text in answer.stdout.splitlines()[-20:])
        return f"{command.place}: {line}\n  exit {answer.returncode}\n{tail}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    parser.add_argument("--build", type=pathlib.Path, help="build folder (default: ROOT/build)")
    args = parser.parse_args()
    root = args.root.resolve()
    build = (args.build or root / "build").resolve()

    named = [(page, page.relative_to(root)) for page in pages(root)]
    commands = [command for page, name in named for command in commands_of(page, name)]
    failures = [failure for page, name in named for failure in dead_links(page, name)]
    with tempfile.TemporaryDirectory(prefix="kvmark-docs-") as scratch:
        scratch_tree(root, build, pathlib.Path(scratch))
        for command in commands:
            print(f"{command.place}: {command.line}" + (" (rehearsed)" if command.slow else ""))
            failure = run(command, scratch)
            if failure:
                failures.append(failure)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(commands)} commands, {len(failures)} failed")
    sys.exit(1 if failures or not commands else 0)


if __name__ == "__main__":
    main()
