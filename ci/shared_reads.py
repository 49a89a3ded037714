#!/usr/bin/env python3
"""Counts what a command reads of given folders: files, bytes, opens and look-ups, by strace.

    ci/shared_reads.py --folder NAME=/path [--folder NAME=/other ...] -- COMMAND

A path belongs to the first folder that it is in; several folders may have one name. Each name has
two lines, until the first check of a ReFrame session begins and for the whole command: different
files that were opened, their bytes that were read, bytes of files mapped into memory (each part
once a process), opens that succeeded (folders, too), and look-ups, which are all calls with a path,
also of what is not there. `--list NAME` prints the files of one name. Processes of other machines,
such as what srun starts, are not seen: let the command be what srun would start.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

#: ReFrame's line before its first check, where it is what is written.
BEGINS = re.compile(r'^\d+ +write\(\d+(<[^>]*>)?, "\[==========\] Running')

CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?:<(.*?)>)?(?: .*)?$")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
READS = ("read", "pread64", "readv", "preadv")


def whole_lines(lines):
    """Yield the calls, those that another process interrupted in one line."""
    begun = {}
    for line in lines:
        line = line.rstrip("\n")
        if match := UNFINISHED.match(line):
            begun[match[1]] = match[2]
        elif match := RESUMED.match(line):
            yield f"{match[1]} {begun.pop(match[1], '')}{match[2]}"
        else:
            yield line


def name_of(path, folders):
    """Return the name of the folder that a path is in, or None."""
    for name, folder in folders:
        if path == folder or path.startswith(folder + "/"):
            return name
    return None


def counted(lines, folders):
    """Return the counts until the first check, or None, and those of all; and the files by name."""
    counts, files = defaultdict(Counter), defaultdict(set)
    early = None
    for line in whole_lines(lines):
        if early is None and BEGINS.match(line):
            early = {
                name: Counter(counter, files=len(files[name])) for name, counter in counts.items()
            }
        match = CALL.match(line)
        if not match:
            continue
        call, arguments, value, opened = match.groups()
        if call in READS or call == "mmap":
            shown = re.search(r"(?:^|, )\d+<([^>]*)>", arguments)
            name = name_of(shown[1], folders) if shown else None
            if name and not value.startswith("-"):
                if call == "mmap":
                    counts[name]["mapped"] += int(arguments.split(", ")[1])
                else:
                    counts[name]["bytes"] += int(value)
            continue
        path = PATH.search(arguments)
        if not path or call in ("write", "getcwd"):
            continue
        full = path[2] if path[2].startswith("/") else f"{path[1] or ''}/{path[2]}"
        if name := name_of(full, folders):
            counts[name]["look-ups"] += 1
        if call in ("open", "openat", "execve") and not value.startswith("-"):
            opened = opened or full
            if name := name_of(opened, folders):
                counts[name]["opens"] += 1
                if "O_DIRECTORY" not in arguments:
                    files[name].add(opened)
    return early, {n: Counter(counter, files=len(files[n])) for n, counter in counts.items()}, files


def main() -> int:
    """Run the command, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--list", metavar="NAME")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    folders = []
    for each in given.folder:
        name, _, path = each.partition("=")
        # Both as it is written and where links lead.
        folders += [(name, path.rstrip("/")), (name, str(Path(path).resolve()))]
    with tempfile.NamedTemporaryFile("r", errors="replace") as trace:
        strace = ["strace", "-f", "-y", "-qq", "-s", "4096", "-o", trace.name]
        calls = "trace=%file,read,pread64,readv,preadv,mmap,write"
        code = subprocess.run([*strace, "-e", calls, *given.command], check=False).returncode
        early, whole, files = counted(trace, folders)
    heads = ("files", "bytes", "mapped", "opens", "look-ups")
    print(f"{'':34}" + "".join(f"{head:>13}" for head in heads))
    for name in dict.fromkeys(name for name, _ in folders):
        for when, counts in (("until the first check", early), ("whole", whole)):
            if counts is not None:
                each = counts.get(name, Counter())
                print(f"{name + ', ' + when:34}" + "".join(f"{each[h]:13,}" for h in heads))
    if given.list:
        print(*sorted(files[given.list]), sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
