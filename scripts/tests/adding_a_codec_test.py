"""Does what docs/adding-a-codec.md says, in a copy of the tree, and tests the codec that results.

The blocks of that page are the only source: ```cpp file=PATH is a new file, ```diff file=PATH adds
its + lines, each behind the line before it. The copy and its build stay in WORK, so that a second
run compiles only what has changed.

usage: adding_a_codec_test.py WORK
"""

import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/adding-a-codec.md"
COPIED = ["CMakeLists.txt", "cmake", "engines"]
# Each test of the first goes over all registered formats; the second has a test for each engine.
PROGRAMS = {"test_engines_codecs": "*", "test_engines_cpu": "*{}*"}


def blocks():
    """(kind, path, lines) of each block of the page that names a file."""
    text = PAGE.read_text(encoding="utf-8")
    for kind, path, body in re.findall(r"^```(\w+) file=(\S+)\n(.*?)^```", text, re.M | re.S):
        yield kind, path, body.splitlines()


def with_additions(text, diff, path):
    lines = text.splitlines()
    place = None
    for line in diff:
        if line.startswith("+"):
            place += 1
            lines.insert(place, line[1:])
            continue
        found = [n for n, have in enumerate(lines) if have == line[1:]]
        if len(found) != 1:
            sys.exit(f"{PAGE.name}: {path} has {len(found)} lines {line[1:]!r}, not one")
        place = found[0]
    return "\n".join(lines) + "\n"


def changed_files():
    """path -> text of the files that the page adds or changes."""
    files = {}
    for kind, path, lines in blocks():
        if kind == "diff":
            files[path] = with_additions((ROOT / path).read_text(encoding="utf-8"), lines, path)
        else:
            files[path] = "\n".join(lines) + "\n"
    return files


def update(target, source=None, text=None):
    """Writes a file only where it differs, to keep the time of those that do not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source is not None:
        if not target.exists() or not filecmp.cmp(source, target, shallow=False):
            shutil.copy2(source, target)
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def copy_tree(tree, changes):
    wanted = set()
    for top in COPIED:
        files = [ROOT / top] if (ROOT / top).is_file() else sorted((ROOT / top).rglob("*"))
        for source in files:
            name = source.relative_to(ROOT).as_posix()
            if source.is_file() and name not in changes:
                update(tree / name, source=source)
                wanted.add(tree / name)
    for name, text in changes.items():
        update(tree / name, text=text)
        wanted.add(tree / name)
    for stale in [p for p in tree.rglob("*") if p.is_file() and p not in wanted]:
        stale.unlink()


def run(*command):
    answer = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if answer.returncode != 0:
        sys.exit(f"{answer.stdout}\n{' '.join(map(str, command))}: exit {answer.returncode}")
    return answer.stdout


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    tree, build = work / "tree", work / "build"
    changes = changed_files()
    name = re.search(r'kName = "([^"]+)"', "".join(changes.values())).group(1)
    copy_tree(tree, changes)

    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DKVMARK_BENCH=OFF",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1")  # fmt: skip
    run("ninja", "-C", build, f"-j{os.cpu_count()}", *PROGRAMS)
    for program, pattern in PROGRAMS.items():
        pattern = pattern.format(re.sub(r"\W", "_", name))
        output = run(build / "bin" / program, f"--gtest_filter={pattern}")
        passed = re.search(r"\[  PASSED  \] (\d+) test", output)
        if not passed or int(passed.group(1)) == 0:
            sys.exit(f"{output}\n{program}: no test runs over {name} ({pattern})")
        print(f"{program}: {passed.group(1)} tests over {name} passed")


if __name__ == "__main__":
    main()
