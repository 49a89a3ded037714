"""docs/evidence/slips.md: how many slips of each room the tests see, and those that survive."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence

from proof.mutants.runs import ROOT
from proof.slips import cpp
from proof.slips.record import Outcome

PAGE = ROOT / "docs" / "evidence" / "slips.md"

_HEAD = """# Random slips

<!-- Written by `make slips`, not by hand. -->

The [mutants](mutants.md) were written by those who knew the tests. These slips nobody chose:
[cosmic-ray](https://cosmic-ray.readthedocs.io) changes an operator, a number or a condition at a
place that a seed draws, and the tests run that `make check` would choose for such a change.
Changes of annotations are drawn again; a slip with which the package cannot be imported is seen.

In C++ rules of our own change operators, bounds, orders and units (`proof/slips/cpp.py`). What does
not compile, or leaves the machine code as it was, is drawn again. The unit tests run (those of the
host's programs are in `make test-all`), then all tests of the programs and of the simulated node,
and where these see nothing those that `make check` would choose.

A test that fails without the slip, too, or not again with it, sees nothing and is left out. Of the
300 slips of Python 262 came to an end, nearly all of them beside 30 others on a lent machine of 32
cores; of the tests those of Slurm were left out there, which would have waited for each other, and
11 that fail on it without a slip. Of the other 38 three are seen by tests that were there, and 35
count as not seen, though few of them ran against all chosen tests: they were the longest. All
that are seen since were seen failing by hand. Of the 18 of C++ that count as not seen seven did not
run against more than the unit tests, and nine not against all tests, since their reason or their
test was there by then.

Of an earlier draw, seed 1 at f96cb253, the chosen tests saw 245 of 285. Expect as many of a new one
and not more: what was written for the slips of one draw sees few of another.
"""

_NEXT_SECTION = re.compile(r"^## ", re.MULTILINE)


def page(before: str, seed: int, outcomes: Sequence[Outcome]) -> str:
    """Return the page with the section of each language that has outcomes.

    :param before: the page as it was, whose other sections stay.
    """
    sections = {text.splitlines()[0]: text for text in _NEXT_SECTION.split(before)[1:]}
    for language, paths in (("Python", "src/fabricheck/"), ("C++", tuple(cpp.FOLDERS))):
        those = [outcome for outcome in outcomes if outcome.slip.path.startswith(paths)]
        if those:
            sections[language] = "\n".join((language, "", *_lines(seed, those))) + "\n"
    texts = [f"## {text.rstrip()}\n" for text in sections.values()]
    return "\n".join((_HEAD, *texts))


def _commit() -> str:
    """Return the commit on which slips are drawn."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return f"commit {subprocess.check_output(command, cwd=ROOT, text=True).strip()}"


def _room(path: str) -> str:
    """Return the room of a file: judge, and of C++ the folder of its sources."""
    parts = path.split("/")
    return parts[2] if parts[1] == "fabricheck" else "/".join(parts[:3])


def _lines(seed: int, outcomes: Sequence[Outcome]) -> Iterator[str]:
    seen = sum(outcome.seen_by is not None for outcome in outcomes)
    yield f"Seed {seed}, {_commit()}: {seen} of {len(outcomes)} slips are seen.\n"
    yield "| room | slips | seen |"
    yield "| --- | ---: | ---: |"
    by_room: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_room.setdefault(_room(outcome.slip.path), []).append(outcome)
    for room, of_room in sorted(by_room.items()):
        seen = sum(outcome.seen_by is not None for outcome in of_room)
        yield f"| {room} | {len(of_room)} | {seen} |"
    survivors = [outcome for outcome in outcomes if outcome.seen_by is None]
    if survivors:
        since = sum(outcome.seen_since is not None for outcome in survivors)
        without = sum(outcome.reason is not None for outcome in survivors)
        yield (
            f"\n{len(survivors)} were seen by none of these tests: {since} another one sees, which "
            f"was written since or was not chosen, and {without} have a reason why no test "
            "needs to see them:\n"
        )
        yield "| place | before | after | what came of it |"
        yield "| --- | --- | --- | --- |"
    for outcome in survivors:
        cells = [f"`{text.replace('|', chr(92) + '|')}`" for text in outcome.slip.lines]
        place = outcome.slip.path.removeprefix("src/fabricheck/")
        yield f"| {place}:{outcome.slip.line} | {cells[0]} | {cells[1]} | {_came(outcome)} |"


def _came(outcome: Outcome) -> str:
    """Return what came of a survivor: the tests that see it, or why none needs to."""
    if outcome.seen_since is not None:
        return f"seen by `{outcome.seen_since}`"
    return outcome.reason or "**not explained**"


def write(seed: int, outcomes: Sequence[Outcome]) -> None:
    """Write the sections of the page that have outcomes."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), seed, outcomes), encoding="utf-8")
