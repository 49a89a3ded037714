"""A row of the catalogue: a fault, how it is made, what must be said, and what was said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proof.faults.sessions import OWN, Said, Session, Site

PERF, HW, DATA = ("PERF-FAIL",), ("HW-FAIL",), ("DATA-FAIL",)
UNSTABLE, INCOMPLETE, PASS = ("UNSTABLE",), ("INCOMPLETE",), ("PASS",)


#: Components that a diagnosis may name for one.
MOST_EQUAL = 3


class Make(Protocol):
    """Makes a fault in a folder; its text says how."""

    def __call__(self, folder: Path, site: Site = OWN) -> Said:
        """Return what was said of it."""


@dataclass(frozen=True)
class Made:
    """A way to make a fault that is no session."""

    how: str
    make: Callable[[Path], Said]

    def __str__(self) -> str:
        """Say how the fault is made."""
        return self.how

    def __call__(self, folder: Path, site: Site = OWN) -> Said:
        """Return what was said of it."""
        return self.make(folder)


@dataclass(frozen=True)
class Must:
    """What must be said of a fault: one of some states, in a sentence with some names.

    names: each stands in one sentence that alone makes such a status, as words of their own.
    without: these do not stand in it. diagnosis: the component that must be diagnosed, alone or
    among at most three that explain as much; None where there must be none. drained: the nodes that
    must have a live line for the scheduler; no other may have one.
    """

    status: Sequence[str]
    names: Sequence[str] = ()
    without: Sequence[str] = ()
    diagnosis: str | None = None
    drained: Sequence[str] = ()

    def __str__(self) -> str:
        """Say it in a cell of a table."""
        names = ", ".join([*self.names, *(f"not {one}" for one in self.without)])
        said = " or ".join(self.status) + (f": {names}" if names else "")
        drained = [f"drain {', '.join(self.drained)}"] if self.drained else []
        return "; ".join([said, *filter(None, [self.diagnosis]), *drained])

    def diagnosed(self, said: Said) -> bool:
        """Whether what must be diagnosed is, and nothing else."""
        if self.diagnosis is None:
            return not said.diagnosed
        return (
            any(self.diagnosis in names and len(names) <= MOST_EQUAL for names in said.diagnosed)
            and len(said.diagnosed) == 1
        )

    def sentence(self, said: Said) -> str | None:
        """Return the sentence that says it; empty of a pass, None where nothing does."""
        if said.status not in self.status:
            return None
        if not self.names:
            return ""
        for status, sentence in said.sentences:
            if status in self.status and self._names(sentence):
                return sentence
        return None

    def _names(self, sentence: str) -> bool:
        return all(_word(one, sentence) for one in self.names) and not any(
            _word(one, sentence) for one in self.without
        )


def _word(name: str, sentence: str) -> bool:
    """Look for a name that is no part of a longer word or number, such as 0-1 in 10-1."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", sentence, re.I) is not None


@dataclass(frozen=True)
class Row:
    """A fault of the catalogue, made in one way.

    number: that of the catalogue; a fault of several sizes or ways has several rows.
    by: S simulated node, P injected by a program, L stand-in, F files, H recorded on a real H200.
    not_yet: why it is not caught, where that is known; the run decides whether it is.
    quick: whether it is run with all other tests.
    """

    number: int
    fault: str
    by: str
    make: Make
    must: Must
    not_yet: str | None = None
    quick: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a run of a row gave.

    missing: the checks that had to pass and did not.
    """

    row: Row
    said: Said
    sentence: str | None
    missing: Sequence[str] = ()

    @property
    def caught(self) -> bool:
        """Whether what must be said was said, and nothing of what is healthy."""
        said = self.sentence is not None and self.row.must.diagnosed(self.said)
        drained = [*self.said.drained] == [*self.row.must.drained]
        return said and drained and not self.missing

    @property
    def unexpected(self) -> str | None:
        """What is wrong with the list: a row that is not caught without a reason, or with one."""
        name = f"{self.row.number} ({self.row.fault})"
        if self.caught and self.row.not_yet:
            return f"{name} is caught: take its reason out."
        if not self.caught and not self.row.not_yet:
            others = f", {', '.join(self.missing)} did not pass" if self.missing else ""
            told = f"{self.said.status} {list(self.said.sentences)}"
            diagnosed, drained = list(self.said.diagnosed), list(self.said.drained)
            return f"{name} is not caught{others}: {told}, diagnosed {diagnosed}, drain {drained}"
        return None


def make(row: Row, folder: Path, site: Site = OWN) -> Said:
    """Make the fault of a row in a folder; return what was said."""
    folder.mkdir(parents=True)
    return row.make(folder, site)


def outcome(row: Row, said: Said) -> Outcome:
    """Return whether what was said of a row is what must be said."""
    others = row.make.others if isinstance(row.make, Session) else ()
    missing = [one for one in others if one not in said.passed]
    return Outcome(row, said, row.must.sentence(said), missing)
