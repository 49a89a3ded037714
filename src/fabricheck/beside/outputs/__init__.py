"""Parsers of tools that no check runs, as `fabricheck.tools.osu` reads that of a check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line


@dataclass(frozen=True)
class PlacedValues:
    """The values that a tool printed in one run of a comparison round.

    values: by place, as the parser of the tool names it. A place without a measurement is missing:
    a test that this machine cannot run, a pair without peer access.

    version: of the tool; ``None`` if it prints none.

    devices: the devices that it saw; empty if it prints none.

    addresses: their PCI addresses without domain (``19:00.0``), in the same order; empty if it
    prints none.
    """

    values: Mapping[tuple[str | int, ...], float]
    version: str | None = None
    devices: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class Reader:
    """The lines of an output, taken one after another."""

    #: A word of a row; of another form where names have blanks.
    _word = re.compile(r"\S+")

    def __init__(self, lines: Sequence[Line], origin: str) -> None:
        self.lines, self.origin, self.at = lines, origin, 0

    @property
    def over(self) -> bool:
        """Whether no line is left."""
        return self.at >= len(self.lines)

    def take(self, what: str) -> Line:
        """Return the next line.

        :param what: its content, for the error if there is none.
        :raises GarbledOutput: at the end of the text.
        """
        if self.over:
            raise GarbledOutput(
                self.origin, None, f"the text ends without {what}, so it is cut off"
            )
        self.at += 1
        return self.lines[self.at - 1]

    def title(self, text: str) -> Line:
        """Return the next line, which is a title.

        :raises GarbledOutput: when it is another one.
        """
        line = self.take(f"'{text}'")
        if line.text.strip() != text:
            raise line.garbled(f"'{text}' is not in its place")
        return line

    def row(self, head: Sequence[str], cells: int) -> tuple[Line, list[str]]:
        """Return the next line, which begins with the words of a head, and its cells.

        :raises GarbledOutput: when it is another row, or has another number of cells.
        """
        name = " ".join(head)
        line = self.take(f"the row '{name}'")
        words = self._word.findall(line.text)
        if words[: len(head)] != [*head] or len(words) != len(head) + cells:
            raise line.garbled(f"it is not the row '{name}' with {cells} values")
        return line, words[len(head) :]

    def values(
        self, head: Sequence[str], cells: int, form: re.Pattern[str], none: str = ""
    ) -> tuple[Line, list[float | None]]:
        """Return the next line, which begins with the words of a head, and its values.

        :param none: the word of a cell without a value.
        :raises GarbledOutput: as `row` and `number`.
        """
        line, words = self.row(head, cells)
        return line, [None if word == none else number(line, word, form) for word in words]

    def end(self) -> None:
        """Require that no line is left.

        :raises GarbledOutput: for the first that is.
        """
        if not self.over:
            raise self.take("a line").garbled("it has more than the tables of a run")


def number(line: Line, word: str, form: re.Pattern[str]) -> float:
    """Return a printed value.

    :raises GarbledOutput: when it has another form, or is a measurement, with decimals, of zero.
    """
    if form.fullmatch(word) is None or ("." in word and float(word) <= 0):
        raise line.garbled(f"'{word}' is not a value as the tool prints it")
    return float(word)
