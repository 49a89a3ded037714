"""Make the mutants and the changes, and run the tests that `make check` chooses for each.

    python -m proof.mutants.chosen [--only PATTERN] [--write]

Each is made in a copy of the tree. The chosen tests run there in their order, in one process, until
one fails; the processor time says whether two workers have the time for it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Protocol

from proof.mutants.catalogue import MUTANTS
from proof.mutants.changes import CHANGES
from proof.mutants.runs import ROOT, NotRunError, Tree

sys.path.append(str(ROOT / "ci"))
import check
import choosing

PAGE = ROOT / "docs" / "evidence" / "check.md"

#: Processor time that a change may take here, in s. Of the 38 s of `make check` choosing and the
#: start take the rest.
WITHIN_S = 30

#: Seconds after which the tests of a change are ended, on a machine that does other work too: at
#: first, so that the slow ones have their turn before it is known how late a quick one is.
_IN_TIME_S, _LIMIT_S = 2 * WITHIN_S, 900

#: So many tests are collected before the others, which takes less time where one of them fails.
FIRST = 60

#: A file of tests that pytest cannot read, as one that imports what the change has broken.
_NOT_COLLECTED = re.compile(r"found no collectors for \S*?/tests/(\S+?)::")

#: The name of the change in a row of the page, and what a row has that is not seen in time.
_NAME_OF_ROW = re.compile(r"^\| (.+?) \| (?:`|\*\*)")
_NOT_IN_TIME = re.compile(r"\*\*(?:none|too late)\*\*")

_HEAD = """# Changes that `make check` sees

<!-- Written by `python -m proof.mutants.chosen --write`, not by hand. -->

`make check` runs the lint, and then for 38 s the tests that are likeliest to see what differs from
main: one process the quick ones, another one the slow ones. Does it choose well? Each
[mutant](mutants.md), and changes of checks, references, sites, node models, wording and the
handbook, are made in a copy of the repository. The tests that are chosen for it run in their order,
the quick ones and, where none of them fails in time, the slow ones, until one fails.

Seconds count processor time of the process that sees it, with its start, or of both where neither
does. What takes more than 30 s here comes too late there. Rows are renewed one by one: most come
from commits ca5d7ae4 and f896c863, on a machine with other work, and those of 53 mutants from
86591588, on a machine with 32 cores (two of them on one with two). Since f501782c a test counts
less the more likelier ones its file has, and tests of a second are among the slow ones: 27 rows
were made with that, those expected to change most, on two cores. No row takes more than 60 s.

"""


class Change(Protocol):
    """A change of one file: a mutant, or a random slip."""

    @property
    def name(self) -> str:
        """What is wrong then."""

    @property
    def path(self) -> str:
        """Its file, from the root of the tree."""

    def changed(self) -> str:
        """Return the text of its file with the error in it."""


@dataclass(frozen=True)
class Seen:
    """What came of a change: the test that failed first, None if none did, and the time in s."""

    change: Change
    test: str | None
    seconds: float

    @property
    def in_time(self) -> bool:
        """Whether `make check` has the time for it."""
        return self.test is not None and self.seconds <= WITHIN_S

    @property
    def row(self) -> str:
        """The row of the page."""
        test = f"`{self.test}`" if self.test else "**none**"
        late = "" if self.test is None or self.in_time else ", **too late**"
        return f"| {self.change.name} | {test} | {self.seconds:.0f}{late} |"


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@cache
def _tests() -> choosing.Tree:
    return choosing.Tree(ROOT)


@cache
def copied(scratch: str) -> Tree:
    """Return the copy of the tree that this process changes."""
    return Tree.copied(Path(scratch) / str(os.getpid()))


@cache
def unchanged(scratch: str) -> Tree:
    """Return the copy of the tree that stays as it is, with the programs that are built."""
    return Tree.copied(Path(scratch) / f"unchanged-{os.getpid()}")


def likeliest(change: Change) -> list[list[str]]:
    """Return the quick and the slow tests that `make check` would choose, below their folder."""
    text = (ROOT / change.path).read_text(encoding="utf-8")
    ranked = _tests().ranked(choosing.Change(change.path, text, change.changed()))
    lists = []
    for slow, most, together in (
        (False, check.QUICK, check.TOGETHER),
        (True, check.SLOW, check.SLOW_TOGETHER),
    ):
        ids = [test.id.removeprefix("tests/") for test in ranked if test.slow == slow][:most]
        lists.append(check.in_turn(ids, together))
    return lists


def see(change: Change, scratch: str) -> Seen:
    """Make a change in a copy of the tree, and run the tests that are chosen for it.

    :param scratch: the folder of the copies.
    """
    tree = copied(scratch)
    with tree.changed(change.path, change.changed()):
        lists = likeliest(change)
        for limit_s in (_IN_TIME_S, _LIMIT_S):
            seen = []
            for tests in lists:
                seen.append(_seen(change, tree, tests, scratch, limit_s))
                if seen[-1].in_time:
                    return seen[-1]
    failed = [each for each in seen if each.test]
    if failed:
        return min(failed, key=lambda each: each.seconds)
    return Seen(change, None, sum(each.seconds for each in seen))


def _seen(change: Change, tree: Tree, tests: Sequence[str], scratch: str, limit_s: float) -> Seen:
    """Run tests in their order in a changed tree, until one fails or a part takes too long."""
    failed, seconds = None, 0.0
    for part in (tests[:FIRST], tests[FIRST:]):
        if failed is None and part:
            failed, took = first_failure(tree, part, scratch, limit_s)
            seconds += took
    return Seen(change, failed, seconds)


def first_failure(
    tree: Tree, tests: Sequence[str], scratch: str, limit_s: float = _LIMIT_S
) -> tuple[str | None, float]:
    """Return the first test that fails by the change, and the processor time that showed it, in s.

    A test that fails without the change, too, or not again with it, as on a busy machine, is left
    out, and the others run again. A file of tests that cannot be collected any more is a failure.
    """
    left_out: list[str] = []
    while True:
        before = _processor_s()
        try:
            failed = tree.first_failure(tests, limit_s, left_out=left_out)
        except NotRunError as error:
            print(error, file=sys.stderr, flush=True)
            file = _NOT_COLLECTED.search(str(error))
            failed = f"{file[1]} (cannot be collected)" if file else None
        took = _processor_s() - before
        if failed is None:
            return None, took
        if not passes_without_a_change(failed, scratch):
            print(f"{failed} fails without a change, too.", file=sys.stderr, flush=True)
        elif not _fails(failed, tree):
            print(f"{failed} failed once, and not again.", file=sys.stderr, flush=True)
        else:
            return failed, took
        left_out.append(failed)


def _fails(test: str, tree: Tree) -> bool:
    """Whether a test fails in a tree, or its file cannot be collected there."""
    try:
        return tree.first_failure([test.partition(" ")[0]]) is not None
    except NotRunError:
        return True


@cache
def passes_without_a_change(test: str, scratch: str) -> bool:
    """Whether a test passes in a copy of the tree in which nothing is changed."""
    try:
        return unchanged(scratch).first_failure([test.partition(" ")[0]]) is None
    except NotRunError:
        return False


def recorded() -> dict[str, str]:
    """Return the rows of the page by the name of the change; empty without a page."""
    if not PAGE.exists():
        return {}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return {name: line for line in lines for name in _NAME_OF_ROW.findall(line)}


def page(rows: Mapping[str, str]) -> str:
    """Return the page of rows by the name of their change."""
    lines = [_HEAD.rstrip("\n"), ""]
    for title, catalogue in (("mutants", MUTANTS), ("other changes", CHANGES)):
        of_title = [rows[change.name] for change in catalogue if change.name in rows]
        seen = sum(_NOT_IN_TIME.search(row) is None for row in of_title)
        lines += [
            f"## {title.capitalize()}",
            "",
            f"{seen} of {len(of_title)} {title} are seen in time.",
            "",
        ]
        lines += ["| change | test that fails first | s |", "| --- | --- | --- |", *of_title, ""]
    return "\n".join(lines)


def main() -> int:
    """Make the changes; 1 where one is not seen in time."""
    parser = argparse.ArgumentParser(prog="python -m proof.mutants.chosen", description=__doc__)
    parser.add_argument("--only", default="", help="those whose names match this")
    parser.add_argument("--write", action="store_true", help="write their rows of the page")
    parser.add_argument("--workers", type=int, default=2, help="changes at the same time")
    options = parser.parse_args()
    wanted = [one for one in (*CHANGES, *MUTANTS) if re.search(options.only, one.name)]
    started = time.monotonic()
    rows = []
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(options.workers) as pool:
        for row in pool.map(partial(see, scratch=scratch), wanted):
            rows.append(row)
            print(row.row, flush=True)
    in_time = sum(row.in_time for row in rows)
    print(f"{in_time} of {len(rows)} are seen in time, after {time.monotonic() - started:.0f} s.")
    if options.write:
        written = recorded() | {row.change.name: row.row for row in rows}
        PAGE.write_text(page(written), encoding="utf-8")
    return int(in_time < len(rows))


if __name__ == "__main__":
    sys.exit(main())
