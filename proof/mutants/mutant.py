"""A mutant: an error, the tests that should see it, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.mutants.runs import ROOT, Tree

#: The folder of the files that mutants change.
PACKAGE = "src/fabricheck"


@dataclass(frozen=True)
class Mutant:
    """An error in the code that judges.

    name: what is wrong then. file: below the folder. text: what is replaced, once in the file, by
    new. tests: files or single tests below the folder of tests, run in this order. survives: why
    it is accepted that no test sees it. folder: from the root of the tree.
    """

    name: str
    file: str
    text: str
    new: str
    tests: Sequence[str]
    survives: str | None = None
    folder: str = PACKAGE

    @property
    def path(self) -> str:
        """Its file, from the root of the tree."""
        return str(Path(self.folder) / self.file)

    def changed(self) -> str:
        """Return the text of its file with the error in it.

        :raises ValueError: when what is replaced is not there once.
        """
        text = (ROOT / self.path).read_text(encoding="utf-8")
        count = text.count(self.text)
        if count != 1:
            raise ValueError(f"{self.name}: {self.text!r} is {count} times in {self.path}.")
        return text.replace(self.text, self.new)


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: the test that failed first, None where it survived."""

    mutant: Mutant
    killed_by: str | None

    @property
    def unexpected(self) -> str | None:
        """What is otherwise than the catalogue says; None where nothing is."""
        if self.killed_by is None and self.mutant.survives is None:
            return f"{self.mutant.name}: it survives; write the test that sees it."
        if self.killed_by is not None and self.mutant.survives is not None:
            return f"{self.mutant.name}: {self.killed_by} sees it; take its reason out."
        return None


def run(mutant: Mutant, tree: Tree) -> Outcome:
    """Run the tests of a mutant with it; the tree is as before then."""
    with tree.changed(mutant.path, mutant.changed()):
        return Outcome(mutant, tree.first_failure(mutant.tests))
