"""Lines and numbers of the texts that tools print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fabricheck.core.errors import GarbledOutput, OtherRunError, UsageError, WrongDataError

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?")
# What `int` refuses, or takes of another script: no tool prints it.
_NO_NUMBER = re.compile(r"[0-9]{100}|(?![0-9])\d")


@dataclass(frozen=True)
class Line:
    """A line of a text: the file or command that it is of, its number, from 1, and what it says.

    ``garbled``, ``other_run`` and ``wrong_data`` return the error of a fault in it.
    """

    origin: str
    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """What blanks separate."""
        return self.text.split()

    def garbled(self, reason: str) -> GarbledOutput:
        """Return that it is cut or damaged, or contradicts itself."""
        return GarbledOutput(self.origin, self.number, reason)

    def other_run(self, reason: str) -> OtherRunError:
        """Return that it is of another run than the one that was asked for."""
        return OtherRunError(self.origin, self.number, reason)

    def wrong_data(self, reason: str) -> WrongDataError:
        """Return that the tool found wrong data."""
        return WrongDataError(self.origin, self.number, reason)


def lines_of(text: str, origin: str = "") -> list[Line]:
    """Return the lines that are not empty, without colours and trailing blanks.

    :param origin: the file or command, for errors.
    """
    plain = (_ESCAPE.sub("", line).rstrip() for line in text.splitlines())
    return [Line(origin, number, line) for number, line in enumerate(plain, 1) if line.strip()]


def ended_lines_of(text: str, origin: str) -> list[Line]:
    """Return the lines that are not empty of a text whose last line has its end.

    :param origin: the file or command, for errors.
    :raises GarbledOutput: when there are none, or when the text stops in the middle of a line: what
        is there of a number need not be all of it.
    """
    lines = lines_of(text, origin)
    if not lines:
        raise GarbledOutput(origin, None, "the text is empty")
    refuse_odd_numbers(lines)
    if not text.endswith("\n"):
        count = len(text.splitlines())
        raise GarbledOutput(origin, count, "the text is cut, this line has no end")
    return lines


def refuse_odd_numbers(lines: Sequence[Line]) -> None:
    """Refuse numbers of hundreds of digits, and digits of other scripts.

    :raises GarbledOutput: for the first one.
    """
    for line in lines:
        if _NO_NUMBER.search(line.text):
            raise line.garbled("it holds a number that no tool prints")


@dataclass(frozen=True)
class Printed:
    """A number as a tool printed it: not negative, finite, and right to half of its last digit."""

    value: float
    half_digit: float

    @property
    def low(self) -> float:
        """The smallest number that is printed like this."""
        return self.value - self.half_digit

    @property
    def high(self) -> float:
        """The largest number that is printed like this."""
        return self.value + self.half_digit


def printed(text: str) -> Printed | None:
    """Read a number such as ``12.34`` or ``1.2e+05``.

    :returns: ``None`` for anything else: signs, words, ``nan``, ``inf``.
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or number.adjusted() > 300:
        return None
    return Printed(float(number), float(Decimal(5).scaleb(exponent - 1)))


def agree(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals (low, high) overlap; 1e-9, relative, is left to floating point."""
    slack = 1e-9 * max(abs(one[1]), abs(other[1]))
    return one[0] <= other[1] + slack and other[0] <= one[1] + slack


def doubled(first: int, last: int) -> tuple[int, ...]:
    """Return the sizes in bytes of a scan that doubles: ``first``, 2 ``first`` ..., <= ``last``.

    :raises UsageError: when there is none.
    """
    if not 0 < first <= last:
        raise UsageError(f"There is no scan of sizes from {first} to {last} bytes.")
    return tuple(first << step for step in range((last // first).bit_length()))
