"""What came of slips, and a file of it by which an ended run is taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

import yaml

from proof.mutants.runs import ROOT
from proof.slips.drawing import Slip


@dataclass(frozen=True)
class Survivor:
    """A slip that none of the tests saw that were chosen for it.

    before, after: its line. test: which sees it now, below the folder of tests. why: no test needs
    to see it; one of both is None.
    """

    path: str
    before: str
    after: str
    test: str | None = None
    why: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it: its file, and its line before and after."""
        return self.path, self.before, self.after

    @property
    def name(self) -> str:
        """Its line, and what becomes of it."""
        return f"{self.path}: {self.before} -> {self.after}"

    def changed(self, text: str) -> str | None:
        """Return the text of its file with the slip in it; None where the line is gone."""
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.strip() == self.before:
                lines[number] = line.replace(self.before, self.after)
                return "".join(lines)
        return None


def _survivors() -> Iterator[Survivor]:
    entries = yaml.safe_load((ROOT / "proof" / "slips" / "survivors.yaml").read_text())
    for entry in entries:
        yield Survivor(*entry["slip"], test=entry.get("test"), why=entry.get("why"))


#: What came of those that survived, by what names them.
SURVIVORS = {survivor.key: survivor for survivor in _survivors()}


@dataclass(frozen=True)
class Outcome:
    """What came of a slip: the test that failed first, None where it survived.

    counts: False for a slip that makes no other program.
    """

    slip: Slip
    seen_by: str | None
    counts: bool = True

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it: its file, and its line before and after."""
        return (self.slip.path, *self.slip.lines)

    @property
    def is_unexplained(self) -> bool:
        """Whether it survives, and neither has a test since nor a line that says why."""
        return self.seen_by is None and self.key not in SURVIVORS

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
