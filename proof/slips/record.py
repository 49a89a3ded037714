"""What came of slips, and a file of it by which an ended run is taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import Pool
from pathlib import Path

import yaml

from proof.mutants.catalogue import MUTANTS
from proof.mutants.mutant import Mutant
from proof.mutants.runs import ROOT
from proof.slips.drawing import Slip


@cache
def survivors() -> dict[tuple[str, str, str], dict[str, str]]:
    """Return what came of slips, by the file and its line before and after.

    why: no test needs to see it. seen_by: the test of C++ that sees it since; in Python it is a
    mutant.
    """
    entries = yaml.safe_load((ROOT / "proof" / "slips" / "survivors.yaml").read_text())
    return {tuple(entry.pop("slip")): entry for entry in entries}


@cache
def mutants() -> dict[tuple[str, str], Mutant]:
    """Return the mutants by their file and its text with the error in it."""
    return {(mutant.path, mutant.changed()): mutant for mutant in MUTANTS}


@dataclass(frozen=True)
class Outcome:
    """What came of a slip: the test that failed first, None where it survived.

    counts: False for a slip that makes no other program.
    """

    slip: Slip
    seen_by: str | None
    counts: bool = True

    @property
    def seen_since(self) -> str | None:
        """The tests that see it, which were written since or were not chosen; None without one.

        In Python they are those of the mutant that makes the same change.
        """
        mutant = mutants().get((self.slip.path, self.slip.after))
        return " ".join(mutant.tests) if mutant is not None else self._survivor.get("seen_by")

    @property
    def reason(self) -> str | None:
        """Why no test needs to see it; None where no reason is known."""
        return self._survivor.get("why")

    @property
    def _survivor(self) -> dict[str, str]:
        return survivors().get((self.slip.path, *self.slip.lines), {})

    @property
    def is_unexplained(self) -> bool:
        """Whether it survives, no test sees it since, and it has no reason."""
        return self.seen_by is None and self.seen_since is None and self.reason is None

    @property
    def text(self) -> str:
        """A line of the output."""
        return f"{self.seen_by or 'SURVIVES'}: {self.slip.name}"


class Record:
    """Outcomes by slip, each a line of a file where one is given."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._outcomes: dict[str, tuple[str | None, bool]] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._outcomes[entry["slip"]] = (entry["seen_by"], entry["counts"])

    def completed(
        self, slips: Sequence[Slip], run: Callable[[Slip], Outcome], pool: Pool
    ) -> list[Outcome]:
        """Return the outcome of each slip in their order; those that are not there are run."""
        missing = {slip.name: slip for slip in slips if slip.name not in self._outcomes}
        for outcome in pool.imap_unordered(run, missing.values()):
            print(outcome.text, flush=True)
            self._add(outcome)
        return [Outcome(slip, *self._outcomes[slip.name]) for slip in slips]

    def _add(self, outcome: Outcome) -> None:
        self._outcomes[outcome.slip.name] = (outcome.seen_by, outcome.counts)
        if self._file is not None:
            entry = {
                "slip": outcome.slip.name,
                "seen_by": outcome.seen_by,
                "counts": outcome.counts,
            }
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
