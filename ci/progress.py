#!/usr/bin/env python3
"""Shows ReFrame's output, on standard input, as one line for each check that ended.

In a terminal a bar is below. What the session itself says before its first check, as that it waits
for another one, is shown at once; what ReFrame says where no check ran at the end.
"""

import re
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

#: The end of a check; a skipped one says why in brackets.
ENDED = re.compile(
    r"\[ +(OK|FAIL|SKIP) *\] \( *(\d+)/(\d+)\) (\S+).*? @(\S+?)(?:\+\S+)?(?: \[(.*)\])?$"
)
#: Failed checks begin once more.
AGAIN = re.compile(r"\[=+\] Retrying (\d+) failed check")
#: The first check begins.
BEGINS = ("[==========]", "[----------]")
#: The beginnings of ReFrame's lines before it: its description of the session.
OF_REFRAME = ("[", " ", "\n")
WORDS = {"OK": ("passed", "green"), "FAIL": ("FAILED", "red"), "SKIP": ("skipped", "dim")}


def main() -> None:
    """Read to the end of standard input."""
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 100)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    others, ended, begun = [], 0, False
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("checks", total=None)
        for line in sys.stdin:
            begun = begun or line.startswith(BEGINS)
            if not begun and not line.startswith(OF_REFRAME):
                console.print(line.rstrip(), soft_wrap=True)
                continue
            again = AGAIN.match(line)
            if again:
                console.print(f"  once more: what failed ({again[1]})")
            match = ENDED.search(line.rstrip())
            if match is None:
                others.append(line)
                continue
            ended += 1
            word, number, total, check, where, why = match.groups()
            result, colour = WORDS[word]
            console.print(f"  {result:8}", style=colour, end="")
            line = f"{number:>3}/{total}  {check}  {where}" + (f": {why}" if why else "")
            console.print(line, soft_wrap=True)
            progress.update(task, completed=int(number), total=int(total))
    if not ended:
        sys.stdout.writelines(others)


if __name__ == "__main__":
    main()
