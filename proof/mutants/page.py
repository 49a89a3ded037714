"""docs/evidence/mutants.md: each mutant, and which test saw it in the last run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from proof.mutants.mutant import Mutant, Outcome
from proof.mutants.runs import ROOT

PAGE = ROOT / "docs" / "evidence" / "mutants.md"
_COLUMNS = ("mutant", "seen by, or why it survives")

_HEAD = """# Errors that the tests are tested against

<!-- Written by `make mutants`, not by hand. -->

[Faults](faults.md) are made in a node, to see that the suite says them. Mutants are errors in the
suite itself: `make mutants` makes each of these slips in a copy of the code that judges and runs
the tests that should see it; the first one that fails stands here. Before that the same tests must
pass without any. It fails where a mutant survives without a reason, or one with a reason does not.

`make mutants MUTANTS="--only median"` makes those whose names have that text, and does not write
this page; `proof/mutants` has the file of each, tests are those of `tests`. The programs (C++)
have no mutants: each would need a build.
"""


def page(outcomes: Sequence[Outcome]) -> str:
    """Return the page of a run of all mutants."""
    seen = sum(one.killed_by is not None for one in outcomes)
    lines = [
        _HEAD,
        f"{seen} of {len(outcomes)} mutants are seen.\n",
        _cells(_COLUMNS),
        _cells("---" for _ in _COLUMNS),
        *(_cells([*fixed(one.mutant), _last(one)]) for one in outcomes),
    ]
    return "\n".join(lines) + "\n"


def fixed(mutant: Mutant) -> list[str]:
    """Return the cells of a mutant that no run changes."""
    return [mutant.name]


def survives(mutant: Mutant) -> str:
    """Return the last cell of one that survives."""
    return f"**survives**: {mutant.survives}"


def _last(outcome: Outcome) -> str:
    return f"`{outcome.killed_by}`" if outcome.killed_by else survives(outcome.mutant)


def _cells(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the page."""
    for one in re.findall(r"^\| (?!mutant|---)(.+) \|$", text, re.MULTILINE):
        yield one.split(" | ")


def write(outcomes: Sequence[Outcome], path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(outcomes), encoding="utf-8")
