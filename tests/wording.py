"""Sentences that a test sees, kept as a snapshot: a file for each file of tests.

A test compares values; how they are worded stands in `snapshots/sentences`, which `make snapshots`
writes anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parent
SENTENCES = TESTS / "snapshots" / "sentences"

#: Whether the sentences are written anew.
WRITE = "WRITE_SNAPSHOTS" in os.environ

#: Before the name of a test, above its sentences.
_HEAD = "== "


def file_of(test_file: Path) -> Path:
    """Return the file of the sentences that a file of tests sees."""
    folder = test_file.relative_to(TESTS).parent
    return SENTENCES / folder / f"{test_file.stem}.txt"


def read(file: Path) -> dict[str, list[str]]:
    """Return the lines of a file by test."""
    by_test: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith(_HEAD):
            lines = by_test[line.removeprefix(_HEAD)] = []
        elif line:
            lines.append(line)
    return by_test


def _write(file: Path, by_test: dict[str, list[str]]) -> None:
    parts = ["\n".join([f"{_HEAD}{name}", *lines]) for name, lines in sorted(by_test.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


class Wording:
    """The sentences of one test, in the order in which it sees them."""

    def __init__(self, test_file: Path, test: str, varies: dict[str, str]) -> None:
        """Start with none.

        :param varies: what is different in each run, as a folder, and what stands in its place.
        """
        self._file, self._test, self._varies = file_of(test_file), test, varies
        self._times = 0

    def __call__(self, sentences: object) -> None:
        """Compare a sentence, or several, with the snapshot."""
        each = [sentences] if isinstance(sentences, str) else sentences
        assert isinstance(each, Iterable)
        lines = [line for text in each for line in self._steady(str(text)).splitlines() if line]
        self._times += 1
        name = self._test if self._times == 1 else f"{self._test} ({self._times})"
        known = read(self._file)
        if WRITE:
            _write(self._file, {**known, name: lines})
            return
        assert lines == known.get(name), f"{self._file}: if this is meant: make snapshots"

    def _steady(self, text: str) -> str:
        for part, name in self._varies.items():
            text = text.replace(part, name)
        return text
