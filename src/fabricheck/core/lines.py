"""Lines and numbers of tool outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from fabricheck.core.errors import GarbledOutput, OtherRunError, UsageError, WrongDataError
from fabricheck.core.show import cut

# Colours, erased lines, moves of the cursor and modes of a terminal.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# What launchers write in front of each line: Open MPI ([1,0]<stdout>:), Hydra ([0]), Slurm
# and Flux (0:), PALS (node1 0:).
_LABEL = re.compile(
    r"^(?:[^<>]*<std(?:out|err|diag)>: ?|\[\d+\](?: |$)|\s*(?:[\w.-]+ )?\d+:(?: |$))"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?")
# Digits that `int` refuses, or accepts from another script: no tool prints them.
_NO_NUMBER = re.compile(r"[0-9]{100}|(?![0-9])\d")


@dataclass(frozen=True)
class _Library:
    """A library or launcher that writes messages among the lines of a program.

    Some write to standard output, or a launcher merges both outputs. begins: what its messages
    begin with. harmless: the messages that report no failure, behind that; a whole line of them is
    passed over. advice: what ends them. The repetitions have bounds, since a damaged line may be
    long.
    """

    name: str
    begins: re.Pattern[str]
    harmless: re.Pattern[str]
    advice: str


_LIBRARIES = (
    _Library(
        "UCX",
        # Time, host, process and thread; UCX pads the number of the process. What it says of the
        # signal that ended a process has no time, and two numbers of the thread.
        re.compile(
            r"\[\d+\.\d+\]\s*\[[^\s\]:]{1,99}:\d+\s*:[^\]]{0,99}\]"
            r"|\[[^\s\]:]{1,99}:\d+\s*:\d+:\d+\s*\]"
        ),
        # Its log, and the tables of UCX_PROTO_INFO.
        re.compile(r".*\bUCX\s+(?!ERROR|FATAL)[A-Z]+\b|\s*[+|]"),
        "unset UCX_LOG_LEVEL and UCX_PROTO_INFO",
    ),
    _Library(
        "libfabric",
        # Its process, and mostly the time; then provider, domain, function and line.
        re.compile(r"libfabric:\d+:"),
        re.compile(r"\S*\(\):\d+<(?:warn|info|debug|trace)>"),
        "unset FI_LOG_LEVEL",
    ),
    _Library(
        "NCCL or RCCL",
        # Where they are set the time, then host, process and thread, the device, file and line.
        re.compile(
            r"(?:\[[^\[\]]{1,99}\] )?(?<![\w.-])[\w.-]{1,99}:\d+:\d+ \[\d+\] (?:\S+ )?NCCL "
        ),
        re.compile(r"INFO|WARN|TRACE|CALL"),
        "unset NCCL_DEBUG",
    ),
    _Library(
        "Open MPI or PMIx",
        re.compile(r"\[[\w.-]{1,99}:\d+\] "),
        # Counts of messages that it printed before, and those of --report-bindings.
        re.compile(
            r"(?:\d+ more process(?:es have| has) sent help message|Set MCA parameter"
            r"|(?:MCW )?[Rr]ank \d+ (?:is not )?bound)\b"
        ),
        "start the ranks without --report-bindings and verbose parameters",
    ),
)

#: The library whose messages the parser of its tests reads.
NCCL = "NCCL or RCCL"

#: The most characters of a message in a refusal.
_LONGEST_MESSAGE = 80


@dataclass(frozen=True)
class Line:
    """A line of a text: the file or command it comes from, its number (from 1) and its content.

    ``garbled``, ``other_run`` and ``wrong_data`` return the error of a fault in it.
    """

    origin: str
    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """Return the words between blanks."""
        return self.text.split()

    def garbled(self, reason: str) -> GarbledOutput:
        """Return the error that the line is cut off, damaged or contradicts itself."""
        return GarbledOutput(self.origin, self.number, reason)

    def other_run(self, reason: str) -> OtherRunError:
        """Return the error that the line belongs to another run than the requested one."""
        return OtherRunError(self.origin, self.number, reason)

    def wrong_data(self, reason: str) -> WrongDataError:
        """Return the error that the tool found wrong data."""
        return WrongDataError(self.origin, self.number, reason)


def lines_of(text: str, origin: str = "") -> list[Line]:
    """Return the non-empty lines, without byte-order mark, escape sequences and trailing blanks.

    :param origin: the file or command, for errors.
    """
    plain = (_ESCAPE.sub("", line).rstrip() for line in text.removeprefix("\ufeff").splitlines())
    return [Line(origin, number, line) for number, line in enumerate(plain, 1) if line.strip()]


def ended_lines_of(text: str, origin: str) -> list[Line]:
    """Return the non-empty lines of a text whose last line is complete.

    :param origin: the file or command, for errors.
    :raises GarbledOutput: when there are none, or when the last line has no end: its last number
        may be incomplete.
    """
    lines = lines_of(text, origin)
    if not lines:
        raise GarbledOutput(origin, None, "the text is empty")
    refuse_odd_numbers(lines)
    if not text.endswith("\n"):
        count = len(text.splitlines())
        raise GarbledOutput(origin, count, "the text is cut off: this line has no end")
    return lines


def lines_of_ranks(lines: Sequence[Line], banner: str = "", reads: str = "") -> list[Line]:
    """Return the lines of an MPI program without a launcher's labels and libraries' messages.

    :param banner: the start of a line that the program always prints.
    :param reads: the library whose messages the caller reads.
    :raises GarbledOutput: when another label is in front of it.
    """
    plain = [replace(line, text=_LABEL.sub("", line.text, count=1)) for line in lines]
    if not any(line.text.startswith(banner) for line in plain):
        for line in plain:
            label, is_banner, _ = line.text.partition(banner)
            if is_banner:
                raise line.garbled(
                    f"the label '{label.strip()}' is in front of '{banner}': start the ranks "
                    "without labels (SLURM_LABELIO, --label)"
                )
    return [line for line in plain if line.text and not _is_harmless(line, reads)]


def _is_harmless(line: Line, reads: str) -> bool:
    """Whether a line is a message without a failure, of a library whose messages nobody reads."""
    for library in _LIBRARIES:
        begins = library.begins.match(line.text)
        if begins is not None and library.harmless.match(line.text, begins.end()):
            return library.name != reads
    return False


def refuse_messages(line: Line) -> None:
    """Refuse a line that is a message of a library, or has one inside.

    :raises GarbledOutput: with the library, and what it reports or how to end its messages.
    """
    for library in _LIBRARIES:
        begins = library.begins.search(line.text)
        if begins is None:
            continue
        if begins.start() == 0 and not library.harmless.match(line.text, begins.end()):
            message = cut(line.text[begins.end() :].strip(), _LONGEST_MESSAGE)
            raise line.garbled(f"{library.name} reports '{message}'")
        raise line.garbled(f"a message of {library.name} is inside this line: {library.advice}")


def refuse_odd_numbers(lines: Sequence[Line]) -> None:
    """Refuse numbers of hundreds of digits and digits of other scripts.

    :raises GarbledOutput: for the first one.
    """
    for line in lines:
        if _NO_NUMBER.search(line.text):
            raise line.garbled("it contains a number that no tool prints")


@dataclass(frozen=True)
class Printed:
    """A number as a tool printed it: finite, not negative, rounded to its last digit."""

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
    """Parse a number such as ``12.34`` or ``1.2e+05``.

    :returns: ``None`` for anything else: signs, words, ``nan``, ``inf``.
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or number.adjusted() > 300:
        return None
    return Printed(float(number), float(Decimal(5).scaleb(exponent - 1)))


def agree(interval: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals (low, high) overlap, within a relative 1e-9 for rounding."""
    slack = 1e-9 * max(abs(interval[1]), abs(other[1]))
    return interval[0] <= other[1] + slack and other[0] <= interval[1] + slack


def doubled(first: int, last: int) -> tuple[int, ...]:
    """Return the sizes in bytes of a doubling scan: ``first``, 2 ``first`` ..., <= ``last``.

    :raises UsageError: when there is none.
    """
    if not 0 < first <= last:
        raise UsageError(f"A scan of sizes from {first} to {last} bytes is empty.")
    return tuple(first << step for step in range((last // first).bit_length()))
