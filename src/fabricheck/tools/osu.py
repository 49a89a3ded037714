"""Parser of OSU Micro-Benchmarks 7.x: one row for each message size.

Nothing follows the last row, so a complete output looks like one that was cut off. The caller
therefore states the requested sizes, and the parser requires exactly these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput, NoDeviceSupport, UsageError
from fabricheck.core.lines import (
    Line,
    Printed,
    ended_lines_of,
    lines_of_ranks,
    printed,
    refuse_messages,
)
from fabricheck.core.show import cut, enumerated
from fabricheck.core.vocabulary import DeviceRuntime, SeriesUnit

#: The supported programs, and their titles in the banner.
TITLES = {
    "osu_bw": "Bandwidth Test",
    "osu_bibw": "Bi-Directional Bandwidth Test",
    "osu_mbw_mr": "Multiple Bandwidth / Message Rate Test",
    "osu_latency": "Latency Test",
    "osu_reduce": "Reduce Latency Test",
    "osu_bcast": "Broadcast Latency Test",
    "osu_allreduce": "Allreduce Latency Test",
    "osu_reduce_scatter": "Reduce_scatter Latency Test",
    "osu_allgather": "Allgather Latency Test",
}

#: The programs that print a rate, and the name of its column; all others print latencies.
RATES = {
    "osu_bw": "Bandwidth (MB/s)",
    "osu_bibw": "Bandwidth (MB/s)",
    "osu_mbw_mr": "MB/s",
}

_PAIRS = re.compile(r"# \[ pairs: (\d+) \] \[ window size: \d+ \]")
_BANNER = re.compile(r"# OSU MPI(?:-([A-Z]+(?: MANAGED)?))? (.+) v(\d+(?:\.\d+)*)")
_DATATYPE = re.compile(r"# Datatype: (MPI_\w+)\.")
_COLUMN = re.compile(
    r"\s+(Size|Bandwidth \(MB/s\)|MB/s|Messages/s|(?:Avg |Min |Max )Latency\(us\)|Latency \(us\)"
    r"|Iterations|Validation|P\d+ Tail (?:BW\(MB/s\)|Lat\(us\)))"
)
_SIZE = re.compile(r"0|[1-9]\d*")
_VALUE = re.compile(r"\d+\.\d\d")  # OSU prints two digits; fewer mean that the text was cut off
_WRONG = "DATA VALIDATION ERROR"

#: The most characters of a line that are quoted in a refusal.
LONGEST_QUOTED = 100


@dataclass(frozen=True)
class OsuRow:
    """One message size.

    size: of the message, in bytes. value: bandwidth in GB/s or the mean latency over the ranks in
    us. iterations: ``None`` where the program does not print it.
    """

    size: int
    value: float
    iterations: int | None = None


@dataclass(frozen=True)
class OsuResult:
    """The output of one program.

    accelerator: the library of the device buffers according to the banner, such as ``rocm`` or
    ``cuda``; ``None`` means that all memory was the host's. datatype: MPI's name of it; pairs: of
    ranks that worked at once; ``None`` where the program does not print them. comments: other lines
    before the rows, as they are.
    """

    origin: str
    program: str
    version: str
    accelerator: str | None
    datatype: str | None
    pairs: int | None
    rows: tuple[OsuRow, ...]
    comments: tuple[str, ...] = ()

    @property
    def unit(self) -> SeriesUnit:
        """The unit of the values."""
        return "GB/s" if self.program in RATES else "us"


def parse(
    text: str, origin: str, program: str, sizes: Sequence[int], *, verified: bool = False
) -> OsuResult:
    """Parse the output of one OSU program.

    :param text: its standard output.
    :param origin: the file, for errors.
    :param program: the program, a key of :data:`TITLES`.
    :param sizes: the message sizes that were requested, in bytes and in order.
    :param verified: whether the data were to be verified (``-c``).
    :raises GarbledOutput: when the text is cut off or damaged.
    :raises OtherRunError: when it is another program's, or a run without verification.
    :raises WrongDataError: when OSU found wrong data.
    :raises UsageError: when the program is unknown, or no size was requested.
    """
    if program not in TITLES or not sizes:
        raise UsageError(f"There is no parser of {program} with {len(sizes)} sizes.")
    lines = lines_of_ranks(ended_lines_of(text, origin), "# OSU ")
    if not lines:
        raise GarbledOutput(origin, None, "it has only messages of libraries")
    for line in lines:
        if line.text.startswith(_WRONG):
            raise line.wrong_data(f"OSU reports '{line.text}'")
    head, rows = _split(lines)
    banner = _banner(head[0], program)
    columns = _columns(head[-1], program)
    datatype, pairs, comments = _comments(head)
    if verified and "Validation" not in columns:
        raise head[-1].other_run(
            "there is no column 'Validation', so the data were not verified (-c)"
        )
    table = tuple(_row(line, columns) for line in rows)
    _complete(table, rows, head[-1], sizes)
    accelerator = banner[1].lower() if banner[1] else None
    return OsuResult(origin, program, banner[3], accelerator, datatype, pairs, table, comments)


def require_device_support(result: OsuResult, accelerator: DeviceRuntime) -> None:
    """Refuse a result that cannot be of device buffers.

    An OSU built without support for an accelerator accepts ``D D`` and measures host memory, with
    exit code 0; only the banner's first words show it.

    :raises NoDeviceSupport: when the banner does not name ``MPI-ROCM`` or ``MPI-CUDA``, or when OSU
        reports a buffer in host memory.
    """
    if result.accelerator != accelerator:
        option = "MPI" if result.accelerator is None else f"MPI-{result.accelerator.upper()}"
        reason = (
            f"the banner has '{option}', not 'MPI-{accelerator.upper()}', so {result.program} did "
            f"not measure device buffers of {accelerator}"
        )
        raise NoDeviceSupport(result.origin, None, reason)
    for comment in result.comments:
        if "HOST (H)" in comment:
            raise NoDeviceSupport(result.origin, None, f"a buffer is not on a device: '{comment}'")


def _split(lines: Sequence[Line]) -> tuple[Sequence[Line], Sequence[Line]]:
    """Split the lines after the names of the columns."""
    banners = [i for i, line in enumerate(lines) if line.text.startswith("# OSU ")]
    if not banners:
        raise lines[0].garbled(
            f"'{lines[0].text.strip()}' is in the place of the banner '# OSU MPI ...'"
        )
    if len(banners) > 1:
        raise lines[banners[1]].garbled("a second program begins here")
    start = banners[0]
    end = next((i for i, line in enumerate(lines) if re.match(r"#\s+Size\b", line.text)), None)
    if end is None or end < start:
        raise lines[-1].garbled("the text ends before the names of the columns")
    return lines[start : end + 1], lines[end + 1 :]


def _banner(line: Line, program: str) -> re.Match[str]:
    banner = _BANNER.fullmatch(line.text)
    if banner is None:
        raise line.garbled(f"the banner '{line.text}' is damaged")
    if banner[2] != TITLES[program]:
        raise line.other_run(f"this is OSU's '{banner[2]}', not {program} ('{TITLES[program]}')")
    return banner


def _columns(line: Line, program: str) -> tuple[str, ...]:
    names = _COLUMN.findall(line.text[1:])
    rest = _COLUMN.sub("", line.text[1:]).strip()
    if rest:
        raise line.garbled(f"'{rest}' is not a known column")
    rate = RATES.get(program)
    values = [rate] if rate else ["Avg Latency(us)", "Latency (us)"]
    value = names[1] if len(names) > 1 else ""
    if names[0] != "Size" or value not in values or len(set(names)) != len(names):
        raise line.garbled(
            f"the columns of {program} must be Size, {enumerated(values, last='or')} and others, "
            "each once"
        )
    return tuple(names)


def _comments(head: Sequence[Line]) -> tuple[str | None, int | None, tuple[str, ...]]:
    """Return the datatype, the pairs and other lines above the names of the columns."""
    datatypes: list[str] = []
    comments: list[str] = []
    pairs = None
    for line in head[1:-1]:
        if not line.text.startswith("#"):
            refuse_messages(line)
            raise line.garbled(f"'{_quoted(line)}' is above the names of the columns")
        if match := _DATATYPE.fullmatch(line.text):
            datatypes.append(match[1])
        elif match := _PAIRS.fullmatch(line.text):
            pairs = int(match[1])
        elif line.text.startswith(("# Datatype", "# [ pairs")):
            raise line.garbled(f"'{line.text}' is damaged")
        else:
            comments.append(line.text)
    if len(datatypes) > 1:
        raise head[-1].garbled("the datatype occurs twice")
    return (datatypes[0] if datatypes else None), pairs, tuple(comments)


def _quoted(line: Line) -> str:
    return cut(line.text.strip(), LONGEST_QUOTED)


def _row(line: Line, columns: Sequence[str]) -> OsuRow:
    words = line.words
    refuse_messages(line)
    if not words[0][0].isdecimal():
        raise line.garbled(f"'{_quoted(line)}' is no row of the table: another program wrote it")
    if len(words) != len(columns):
        raise line.garbled(
            f"'{_quoted(line)}' has {len(words)} cells, but there are {len(columns)} columns"
        )
    cells = dict(zip(columns, words, strict=True))
    size = _whole(cells["Size"], "Size", line)
    validation = cells.get("Validation")
    if validation == "Fail":
        raise line.wrong_data(f"OSU found wrong data in messages of {size} B")
    if validation not in (None, "Pass"):
        raise line.garbled(f"'{validation}' is neither Pass nor Fail")
    numbers = {
        name: _positive(cell, name, line).value
        for name, cell in cells.items()
        if name not in ("Size", "Iterations", "Validation")
    }
    low, mean, high = (numbers.get(f"{which} Latency(us)") for which in ("Min", "Avg", "Max"))
    if low and mean and high and not low <= mean <= high:
        raise line.garbled(f"the mean latency {mean} us is not between {low} and {high} us")
    messages = numbers.get("Messages/s")
    # Both have two decimals; MB/s of OSU are 1e6 bytes per second.
    if messages and abs(numbers["MB/s"] * 1e6 - messages * size) > 0.01 * (1e6 + size):
        raise line.garbled(
            f"{messages} messages of {size} B per second are not {numbers['MB/s']} MB/s"
        )
    per_unit = 1000 if "MB/s" in columns[1] else 1
    iterations = cells.get("Iterations")
    return OsuRow(
        size=size,
        value=numbers[columns[1]] / per_unit,
        iterations=None if iterations is None else _whole(iterations, "Iterations", line),
    )


def _whole(text: str, column: str, line: Line) -> int:
    if not _SIZE.fullmatch(text):
        raise line.garbled(f"'{text}' ({column}) is not an integer")
    return int(text)


def _positive(text: str, column: str, line: Line) -> Printed:
    number = printed(text) if _VALUE.fullmatch(text) else None
    if number is None or number.value <= 0:
        raise line.garbled(f"'{text}' ({column}) is not a positive number with two decimals")
    return number


def _complete(
    table: Sequence[OsuRow], rows: Sequence[Line], header: Line, sizes: Sequence[int]
) -> None:
    """Check that the rows have the requested sizes in order."""
    for row, line, size in zip(table, rows, sizes, strict=False):
        if row.size != size:
            raise line.garbled(f"the row of {row.size} B is in the place of {size} B")
    last = rows[-1] if rows else header
    if len(table) < len(sizes):
        raise last.garbled(f"the text ends here, the row of {sizes[len(table)]} B is missing")
    if len(table) > len(sizes):
        extra = rows[len(sizes)]
        raise extra.garbled(f"a row of {table[len(sizes)].size} B follows the last requested size")
