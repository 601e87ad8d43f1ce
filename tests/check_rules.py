#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of this repository that a text search can check. Prints each violation; exits 1 if there is one.

usage: check_rules.py [REPOSITORY]
"""

import pathlib
import re
import sys

SOURCE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
OTHER_SUFFIXES = {".md", ".json", ".in", ".toml", ".txt", ".yml"}
SKIPPED_DIRECTORIES = {".git", "build", ".cache", ".venv", "__pycache__"}

# Which rooms the files of a room may include. Tests may include everything.
MAY_INCLUDE = {
    "messages": {"messages"},
    "gpu": {"gpu"},
    "actors": {"messages", "gpu", "actors"},
    "runtime": {"messages", "gpu", "actors", "runtime"},
    "apps": {"runtime"},
}
FREE_OF_CAF = {"messages/types.hpp", "messages/errc.hpp", "messages/errc.cpp",
               "runtime/runtime.hpp", "runtime/options.hpp", "runtime/builtin.hpp"}
MAX_LINES, WISHED_LINES = 400, 300

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(r"^(cuda|cu(blas|rand|fft|pti|dnn)|nvToolsExt|nvtx|driver_types|vector_types|cooperative_groups)")
UNFINISHED = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X)\b")
MACHINE_PATH = re.compile(r"(^|[\s\"'=(:])/(work|farm|root|home|Users|mnt)/\w|/tmp/[b]ash_")
REGISTRY_HOST = re.compile(r"(deb\.debian|pypi|pythonhosted|registry\.npmjs|proxy\.golang|index\.crates)\.(org|com|io)")
BLOCKING = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b")


def included_room(name):
    """The room of `sluice/<room>/...`, or None for anything else (`sluice/version.hpp` belongs to none)."""
    parts = name.split("/")
    return parts[1] if parts[0] == "sluice" and len(parts) > 2 else None


def may_include_caf(path):
    if path.parts[0] == "tests":
        return True
    if path.as_posix() in FREE_OF_CAF:
        return False
    return path.parts[0] in ("messages", "runtime") or path.stem.endswith("_actor")


def check_include(root, path, kind, name):
    room = path.parts[0]
    target = included_room(name)
    if target and room in MAY_INCLUDE and target not in MAY_INCLUDE[room]:
        yield f"{room}/ must not include sluice/{target}/ ({name})"
    if name.startswith("caf/") and not may_include_caf(path):
        yield f"only *_actor.* files, messages/ and runtime/ include CAF ({name})"
    if CUDA_HEADER.match(name) and path.parts[:2] not in (("gpu", "cuda"), ("tests", "gpu")):
        yield f"only gpu/cuda/ includes CUDA headers ({name})"
    if kind == '"' and room in MAY_INCLUDE:
        if room != "apps":
            yield f'headers of rooms are included as <sluice/{room}/...> ("{name}")'
        elif not (root / "apps" / name).is_file():
            yield f'quotes in apps/ name a file from apps/ on ("{name}")'


def check_line(root, path, line):
    if path.suffix in SOURCE_SUFFIXES:
        include = INCLUDE.match(line)
        if include:
            yield from check_include(root, path, *include.groups())
        if path.parts[0] == "actors" and path.parts[1] != "executor" and BLOCKING.search(line):
            yield "no handler blocks, so nothing in actors/ sleeps (a model on a stream's thread may)"
    if UNFINISHED.search(line):
        yield "marker of unfinished work"
    if MACHINE_PATH.search(line):
        yield "absolute path of one machine"
    if REGISTRY_HOST.search(line):
        yield "host of a package registry"


def check_file(root, path):
    """Yields (line number, what is wrong)."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    is_code = path.suffix in SOURCE_SUFFIXES | SCRIPT_SUFFIXES or path.name == "CMakeLists.txt"
    if is_code and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield 1, "no SPDX line"
    if path.suffix in SOURCE_SUFFIXES and len(lines) > MAX_LINES:
        yield len(lines), f"more than {MAX_LINES} lines"
    elif path.suffix in SOURCE_SUFFIXES and len(lines) > WISHED_LINES:
        print(f"{path}: note: {len(lines)} lines, more than {WISHED_LINES}")
    for number, line in enumerate(lines, start=1):
        for problem in check_line(root, path, line):
            yield number, problem


def files_of(root):
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if SKIPPED_DIRECTORIES.isdisjoint(relative.parts) and path.is_file() and not path.is_symlink():
            if path.suffix in SOURCE_SUFFIXES | SCRIPT_SUFFIXES | OTHER_SUFFIXES or path.parent.name == ".ci":
                yield relative


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    num_files, num_problems = 0, 0
    for path in files_of(root):
        num_files += 1
        for number, problem in check_file(root, path):
            num_problems += 1
            print(f"{path}:{number}: {problem}")
    print(f"{num_files} files checked, {num_problems} violations")
    return 1 if num_problems or not num_files else 0


if __name__ == "__main__":
    sys.exit(main())
