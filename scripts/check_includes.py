#!/usr/bin/python3
"""Holds every #include to the directions of the folder table in CMakeLists.txt.

A file may include headers of its own folder and of the folders that stand behind DEPENDS in its
kvmark_folder() or kvmark_program() line. Nothing under engines/ may depend on bench/. With
--headers, each header must also compile alone.

usage: check_includes.py [--root DIR] [--headers]
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
GENERATED = {"kvmark_version.h"}  # by CMake, for the folder that writes records
PACKAGES = ["eigen3", "libhwy", "openblas"]  # whose headers may lie off the default path


def commands(cmake_text, name):
    """The arguments of each call of a CMake command, as word lists."""
    text = re.sub(r"#[^\n]*", "", cmake_text)
    return [body.split() for body in re.findall(rf"^\s*{name}\(([^)]*)\)", text, re.M)]


def values(words, key):
    """The words behind `key`, up to the next keyword."""
    if key not in words:
        return []
    found = []
    for word in words[words.index(key) + 1 :]:
        if word.isupper():
            break
        found.append(word)
    return found


def read_table(cmake_text):
    """(folder -> folders it may include, program source -> the same)."""
    folders = {w[0]: set(values(w, "DEPENDS")) for w in commands(cmake_text, "kvmark_folder")}
    programs = {
        source: set(values(w, "DEPENDS"))
        for w in commands(cmake_text, "kvmark_program")
        for source in values(w, "SOURCES")
    }
    return folders, programs


def check_table(folders):
    """Edges that must not stand in the table itself."""
    for folder, depends in folders.items():
        for target in sorted(depends):
            if target not in folders:
                yield f"CMakeLists.txt: {folder} depends on {target}, which is no kvmark_folder"
            elif folder.startswith("engines/") and target.startswith("bench/"):
                yield f"CMakeLists.txt: {folder} depends on {target}: engines know no benchmark"


def sources(root):
    for top in ("engines", "bench"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def check_file(root, path, folders, programs):
    name = path.relative_to(root).as_posix()
    folder = path.parent.relative_to(root).as_posix()
    if name in programs:
        allowed = programs[name]
    elif folder in folders:
        allowed = folders[folder] | {folder}
    else:
        yield f"{name}: folder {folder} has no kvmark_folder line in CMakeLists.txt"
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if not include:
            continue
        target = include.group(1)
        if target in GENERATED:
            continue
        target_folder = os.path.dirname(target)
        if target_folder not in folders:
            yield f'{name}:{number}: "{target}": write the full path from the root of the tree'
        elif not (root / target).is_file():
            yield f'{name}:{number}: "{target}": no such file'
        elif target_folder not in allowed:
            yield (
                f'{name}:{number}: "{target}": {folder} may include only '
                f"{', '.join(sorted(allowed))} (see CMakeLists.txt)"
            )


def system_flags():
    flags = []
    for package in PACKAGES:
        answer = subprocess.run(
            ["pkg-config", "--cflags", package], capture_output=True, text=True, check=False
        )
        flags += answer.stdout.split()
    return flags


def compile_alone(root, header, flags):
    name = header.relative_to(root).as_posix()
    answer = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{root}"]
        + flags
        + ["-x", "c++", "-"],
        cwd=root,
        input=f'#include "{name}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    return [] if answer.returncode == 0 else [f"{name}: does not compile alone\n{answer.stderr}"]


def check_headers(root):
    # A -inl.h is the body of a foreach_target file (Highway): it is included by that one only.
    headers = [p for p in sources(root) if p.suffix == ".h" and not p.name.endswith("-inl.h")]
    flags = system_flags()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for problems in pool.map(lambda h: compile_alone(root, h, flags), headers):
            yield from problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    parser.add_argument("--headers", action="store_true", help="compile each header alone, too")
    args = parser.parse_args()
    root = args.root.resolve()

    folders, programs = read_table((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not folders:
        sys.exit("check_includes: no kvmark_folder line in CMakeLists.txt")
    problems = list(check_table(folders))
    for path in sources(root):
        problems += check_file(root, path, folders, programs)
    if args.headers:
        problems += check_headers(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
