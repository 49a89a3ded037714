"""Reading what OSU Micro-Benchmarks 7.x print: one row for each message size.

A whole output cannot be told from a cut one by itself, for nothing follows the last row. So the
reader says which sizes were asked for, and gets exactly these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabricheck.core.errors import (
    NoDeviceSupport,
    UsageError,
)
from fabricheck.core.lines import Line, Printed, agree, ended_lines_of, printed
from fabricheck.core.vocabulary import DeviceRuntime, SeriesUnit


@dataclass(frozen=True)
class _Program:
    """How a program calls itself, and the columns of its value, in the order of preference."""

    title: str
    unit: SeriesUnit
    values: tuple[str, ...]


_LATENCY = ("Avg Latency(us)", "Latency (us)")
_BANDWIDTH = ("Bandwidth (MB/s)",)

#: The programs that can be read.
PROGRAMS = {
    "osu_bw": _Program("Bandwidth Test", "GB/s", _BANDWIDTH),
    "osu_bibw": _Program("Bi-Directional Bandwidth Test", "GB/s", _BANDWIDTH),
    "osu_mbw_mr": _Program("Multiple Bandwidth / Message Rate Test", "GB/s", ("MB/s",)),
    "osu_latency": _Program("Latency Test", "us", _LATENCY),
    "osu_reduce": _Program("Reduce Latency Test", "us", _LATENCY),
    "osu_bcast": _Program("Broadcast Latency Test", "us", _LATENCY),
    "osu_allreduce": _Program("Allreduce Latency Test", "us", _LATENCY),
    "osu_reduce_scatter": _Program("Reduce_scatter Latency Test", "us", _LATENCY),
    "osu_allgather": _Program("Allgather Latency Test", "us", _LATENCY),
}

_BANNER = re.compile(r"# OSU MPI(?:-([A-Z]+(?: MANAGED)?))? (.+) v(\d+(?:\.\d+)*)")
_DATATYPE = re.compile(r"# Datatype: (MPI_\w+)\.")
_PAIRS = re.compile(r"# \[ pairs: (\d+) \] \[ window size: (\d+) \]")
_COLUMN = re.compile(
    r"\s+(Size|Bandwidth \(MB/s\)|MB/s|Messages/s|(?:Avg |Min |Max )Latency\(us\)|Latency \(us\)"
    r"|Iterations|Validation|P\d+ Tail (?:BW\(MB/s\)|Lat\(us\)))"
)
_TAIL = re.compile(r"P(\d+) Tail .*")
_SIZE = re.compile(r"0|[1-9]\d*")
_VALUE = re.compile(r"\d+\.\d\d")  # OSU prints two digits; fewer are what a cut left over
_WRONG = "DATA VALIDATION ERROR"
# UCX writes its warnings to stdout, wherever it has one.
_LOG = re.compile(r"\[\d+\.\d+\] \[\S+:\d+:\d+\] .*\bUCX\s+(?:WARN|INFO|DIAG|DEBUG)\b")


@dataclass(frozen=True)
class OsuRow:
    """What was measured of one message size; ``None`` is not printed.

    size: of the message, in bytes.
    value: bandwidth in GB/s or the mean latency over the ranks in us.
    minimum, maximum: latency of the fastest and of the slowest rank, in us.
    percentiles: (percent, value) of single iterations, in GB/s or us.
    verified: whether OSU compared the data and found them right.
    """

    size: int
    value: float
    minimum: float | None = None
    maximum: float | None = None
    messages_per_s: float | None = None
    iterations: int | None = None
    percentiles: tuple[tuple[int, float], ...] = ()
    verified: bool = False


@dataclass(frozen=True)
class OsuResult:
    """The output of one program.

    accelerator: what the banner says that device buffers are made with, such as ``rocm`` or
        ``cuda``; ``None`` says that all memory was the host's.
    datatype: MPI's name of it; ``None`` where the program does not print it.
    unit: of values and percentiles.
    pairs, window: of osu_mbw_mr, else ``None``.
    comments: other lines before the rows, as they are.
    """

    origin: str
    program: str
    version: str
    accelerator: str | None
    datatype: str | None
    unit: SeriesUnit
    rows: tuple[OsuRow, ...]
    pairs: int | None = None
    window: int | None = None
    comments: tuple[str, ...] = ()


def parse(
    text: str, origin: str, program: str, sizes: Sequence[int], *, verified: bool = False
) -> OsuResult:
    """Read the output of one OSU program.

    :param text: its standard output.
    :param origin: the file, for errors.
    :param program: which one, a key of :data:`PROGRAMS`.
    :param sizes: the message sizes that were asked for, in bytes and in order.
    :param verified: whether the data were to be verified (``-c``).
    :raises GarbledOutput: when the text is cut or damaged.
    :raises OtherRunError: when it is of another program, or of a run without verification.
    :raises WrongDataError: when OSU found wrong data.
    :raises UsageError: when the program is not known here, or no size was asked for.
    """
    if program not in PROGRAMS or not sizes:
        raise UsageError(f"There is no reader of {program} with {len(sizes)} sizes.")
    lines = [line for line in ended_lines_of(text, origin) if not _LOG.match(line.text)]
    for line in lines:
        if line.text.startswith(_WRONG):
            raise line.wrong_data(f"OSU says '{line.text}'")
    head, columns, rows = _split(lines, program)
    result = _header(head, program)
    if verified and "Validation" not in columns:
        raise head[-1].other_run(
            "there is no column 'Validation', so the data were not verified (-c)"
        )
    unit = PROGRAMS[program].unit
    table = tuple(_row(line, columns, unit) for line in rows)
    _complete(table, rows, head[-1], sizes)
    return replace(result, rows=table)


def require_device_support(result: OsuResult, accelerator: DeviceRuntime) -> None:
    """Refuse a result that cannot be of device buffers.

    An OSU that was built without support for an accelerator takes ``D D`` and measures host memory,
    with exit code 0; only the first words of the banner tell.

    :raises NoDeviceSupport: when the banner does not say ``MPI-ROCM`` or ``MPI-CUDA``, or when OSU
        says that a buffer is in host memory.
    """
    if result.accelerator != accelerator:
        said = "MPI" if result.accelerator is None else f"MPI-{result.accelerator.upper()}"
        reason = (
            f"the banner says '{said}', not 'MPI-{accelerator.upper()}', so {result.program} "
            f"did not measure device buffers of {accelerator}"
        )
        raise NoDeviceSupport(result.origin, None, reason)
    for comment in result.comments:
        if "HOST (H)" in comment:
            raise NoDeviceSupport(result.origin, None, f"a buffer is not on a device: '{comment}'")


def _split(
    lines: Sequence[Line], program: str
) -> tuple[Sequence[Line], tuple[str, ...], Sequence[Line]]:
    """Return the lines from the banner to the names of the columns, these names, and the rest."""
    banners = [i for i, line in enumerate(lines) if line.text.startswith("# OSU ")]
    if not banners:
        raise lines[0].garbled(
            f"'{lines[0].text.strip()}' stands where the banner '# OSU MPI ...' belongs"
        )
    if len(banners) > 1:
        raise lines[banners[1]].garbled("a second program begins here")
    start = banners[0]
    end = next((i for i, line in enumerate(lines) if re.match(r"#\s+Size\b", line.text)), None)
    if end is None or end < start:
        raise lines[-1].garbled("the text ends before the names of the columns")
    return lines[start : end + 1], _columns(lines[end], program), lines[end + 1 :]


def _columns(line: Line, program: str) -> tuple[str, ...]:
    names = _COLUMN.findall(line.text[1:])
    rest = _COLUMN.sub("", line.text[1:]).strip()
    if rest:
        raise line.garbled(f"'{rest}' is no known column")
    value = next((name for name in PROGRAMS[program].values if name in names), None)
    if value is None or names[:2] != ["Size", value] or len(set(names)) != len(names):
        wanted = " or ".join(PROGRAMS[program].values)
        raise line.garbled(
            f"the columns of {program} should be Size, {wanted} and others, each once"
        )
    return tuple(names)


def _header(head: Sequence[Line], program: str) -> OsuResult:
    """Read what stands above the rows; the first line is the banner, the last one the columns.

    :returns: the result without its rows.
    """
    banner = _BANNER.fullmatch(head[0].text)
    if banner is None:
        raise head[0].garbled(f"the banner '{head[0].text}' is damaged")
    if banner[2] != PROGRAMS[program].title:
        raise head[0].other_run(
            f"this is OSU's '{banner[2]}', not {program} ('{PROGRAMS[program].title}')"
        )
    datatypes: list[str] = []
    pairs: tuple[int, int] | None = None
    comments: list[str] = []
    for line in head[1:-1]:
        if not line.text.startswith("#"):
            raise line.garbled(f"'{line.text.strip()}' stands above the names of the columns")
        if match := _DATATYPE.fullmatch(line.text):
            datatypes.append(match[1])
        elif match := _PAIRS.fullmatch(line.text):
            pairs = int(match[1]), int(match[2])
        elif line.text.startswith(("# Datatype", "# [ pairs")):
            raise line.garbled(f"'{line.text}' is damaged")
        else:
            comments.append(line.text)
    if len(datatypes) > 1 or (pairs is not None) != (program == "osu_mbw_mr"):
        raise head[-1].garbled("the lines of the datatype and of the pairs do not fit the program")
    return OsuResult(
        origin=head[0].origin,
        program=program,
        version=banner[3],
        accelerator=banner[1].lower() if banner[1] else None,
        datatype=datatypes[0] if datatypes else None,
        unit=PROGRAMS[program].unit,
        rows=(),
        pairs=pairs[0] if pairs else None,
        window=pairs[1] if pairs else None,
        comments=tuple(comments),
    )


def _row(line: Line, columns: Sequence[str], unit: SeriesUnit) -> OsuRow:
    words = line.words
    if len(words) != len(columns):
        raise line.garbled(
            f"'{line.text.strip()}' has {len(words)} cells, and there are {len(columns)} columns"
        )
    cells = dict(zip(columns, words, strict=True))
    size = _whole(cells["Size"], "Size", line)
    validation = cells.get("Validation")
    if validation == "Fail":
        raise line.wrong_data(f"OSU found wrong data in messages of {size} B")
    if validation not in (None, "Pass"):
        raise line.garbled(f"'{validation}' is neither Pass nor Fail")
    # MB/s of OSU are 1e6 bytes per second.
    per_unit = 1000 if unit == "GB/s" else 1
    numbers = {
        name: _positive(cell, name, line)
        for name, cell in cells.items()
        if name not in ("Size", "Iterations", "Validation")
    }
    _consistent(numbers, size, line)

    def told(name: str) -> float | None:
        return numbers[name].value if name in numbers else None

    iterations = cells.get("Iterations")
    return OsuRow(
        size=size,
        value=numbers[columns[1]].value / per_unit,
        minimum=told("Min Latency(us)"),
        maximum=told("Max Latency(us)"),
        messages_per_s=told("Messages/s"),
        iterations=None if iterations is None else _whole(iterations, "Iterations", line),
        percentiles=tuple(
            (int(match[1]), number.value / per_unit)
            for name, number in numbers.items()
            if (match := _TAIL.fullmatch(name))
        ),
        verified=validation == "Pass",
    )


def _whole(text: str, column: str, line: Line) -> int:
    if not _SIZE.fullmatch(text):
        raise line.garbled(f"'{text}' ({column}) is no whole number")
    return int(text)


def _positive(text: str, column: str, line: Line) -> Printed:
    number = printed(text) if _VALUE.fullmatch(text) else None
    if number is None or number.value <= 0:
        raise line.garbled(
            f"'{text}' ({column}) is no number above zero with two digits after the point"
        )
    return number


def _consistent(numbers: dict[str, Printed], size: int, line: Line) -> None:
    """Check that the numbers of a row fit each other as far as their digits tell."""
    low, mean, high = (numbers.get(f"{which} Latency(us)") for which in ("Min", "Avg", "Max"))
    if low and mean and high and not low.value <= mean.value <= high.value:
        raise line.garbled(
            f"the mean latency {mean.value} us is not between {low.value} and {high.value} us"
        )
    rate, bandwidth = numbers.get("Messages/s"), numbers.get("MB/s")
    if rate and bandwidth:
        by_rate = rate.low * size / 1e6, rate.high * size / 1e6
        if not agree((bandwidth.low, bandwidth.high), by_rate):
            raise line.garbled(
                f"{bandwidth.value} MB/s are not {rate.value} messages of {size} B per second"
            )


def _complete(
    table: Sequence[OsuRow], rows: Sequence[Line], header: Line, sizes: Sequence[int]
) -> None:
    """Check that the rows are those of the sizes asked for, in their order."""
    for row, line, size in zip(table, rows, sizes, strict=False):
        if row.size != size:
            raise line.garbled(f"the row of {row.size} B stands where that of {size} B belongs")
    last = rows[-1] if rows else header
    if len(table) < len(sizes):
        raise last.garbled(f"the text ends here, the row of {sizes[len(table)]} B is missing")
    if len(table) > len(sizes):
        extra = rows[len(sizes)]
        raise extra.garbled(f"a row of {table[len(sizes)].size} B follows the last size asked for")
