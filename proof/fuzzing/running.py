"""Runs cases: a seed gives a reader, a text and a mutation, so that each can be made again."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from proof.fuzzing import mutations
from proof.fuzzing.judging import Counts, Reader, Text, Values, Wrong, judge
from proof.fuzzing.mutations import Damaged


@dataclass(frozen=True)
class Failure:
    """A case in which a reader did what it must not."""

    reader: str
    text: str
    seed: str
    mutation: str
    why: str
    difference: str

    def __str__(self) -> str:
        """Return all that is needed to make it again."""
        return (
            f"{self.reader}: {self.text}, --reader '{self.reader}' --case {self.seed}, "
            f"{self.mutation}\n  {self.why}\n{self.difference}"
        )


class Fuzzer:
    """Feeds readers with damaged texts, in a folder of its own."""

    def __init__(self, readers: Mapping[str, Reader], folder: Path, seed: int) -> None:
        self.readers, self.folder, self.seed = readers, folder, seed
        self.counts = {name: Counts() for name in readers}
        self.spent = dict.fromkeys(readers, 0.0)
        self.failures: list[Failure] = []
        self._right: dict[tuple[str, str], Values] = {}
        self._contents = {
            name: [text.content for other in readers.values() for text in other.texts
                   if (other.by_place is None) == (reader.by_place is None)]
            for name, reader in readers.items()
        }  # fmt: skip

    def case(self, name: str, number: int) -> Failure | None:
        """Run the case of a number of a reader; return what is wrong with it."""
        reader = self.readers[name]
        began = time.monotonic()
        seed = f"{self.seed}.{number}"
        rng = Random(f"{name} {seed}")
        text = rng.choice(reader.texts)
        damaged = None
        while damaged is None or damaged.written == text.content.encode():
            if rng.random() < 0.3:
                others = self._contents[name]
            else:
                others = [one.content for one in reader.texts]
            damaged = rng.choice(mutations.ALL)(rng, text.content, others)
        counts = self.counts[name]
        counts.cases += 1
        own = self.folder / name.replace(" ", "-").replace("/", "-").replace(":", "")
        own.mkdir(exist_ok=True)
        failure = None
        try:
            counts.outcomes[judge(reader, text, self.right(reader, text, own), damaged,
                                  own / reader.file)] += 1  # fmt: skip
        except Wrong as wrong:
            counts.outcomes["failure"] += 1
            failure = Failure(name, text.name, seed, damaged.name, str(wrong),
                              _difference(text.content, damaged))  # fmt: skip
            self.failures.append(failure)
        self.spent[name] += time.monotonic() - began
        return failure

    def right(self, reader: Reader, text: Text, folder: Path) -> Values:
        """Return what is read of the text as it is."""
        key = reader.name, text.name
        if key not in self._right:
            path = folder / reader.file
            path.write_bytes(text.content.encode(reader.encoding))
            self._right[key] = dict(text.read(path))
        return self._right[key]

    def run(self, seconds: float, cases: int | None = None) -> Iterator[Failure]:
        """Run cases for a time, of each reader for as long, or so many of each; yield failures."""
        for name, number in self._turns(seconds) if cases is None else self._each(cases):
            failure = self.case(name, number)
            if failure is not None:
                yield failure

    def _turns(self, seconds: float) -> Iterator[tuple[str, int]]:
        end = time.monotonic() + seconds
        number = dict.fromkeys(self.readers, 0)
        while time.monotonic() < end:
            name = min(self.spent, key=lambda one: self.spent[one])
            yield name, number[name]
            number[name] += 1

    def _each(self, cases: int) -> Iterator[tuple[str, int]]:
        return ((name, number) for name in self.readers for number in range(cases))


def _difference(before: str, damaged: Damaged) -> str:
    after = damaged.written.decode("utf-8", "backslashreplace")
    lines: Sequence[str] = list(
        difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)
    )
    shown = [ascii(line)[1:-1][:200] for line in lines[2:14]]
    return "\n".join(f"    {line}" for line in shown)
