"""Parsers of tools that no check runs, as those of `fabricheck.tools.outputs`."""

from __future__ import annotations

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
