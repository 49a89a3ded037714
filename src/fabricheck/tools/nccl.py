"""Parser of nccl-tests and rccl-tests: one row for each size, out of place and in place.

Both print the same table below banners that differ between them and between their versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fabricheck.core.errors import UsageError
from fabricheck.core.lines import (
    NCCL,
    Line,
    Printed,
    agree,
    ended_lines_of,
    lines_of,
    lines_of_ranks,
    printed,
    refuse_messages,
)

_CODE = r"[nr]ccl-(headers|library)="
_TESTS = re.compile(
    rf"# ([nr]ccl-tests) version (\d\S*)((?: (?!{_CODE})\S+| {_CODE}\d+)*)"  # Versions add words.
    r"|(?P<older>rccl-tests): Version (?P<commit>\S+)"
)
_STARTING = re.compile(r"# Collective test starting: (\S+?)_perf(?:_mpi)?")
_PARAMETERS = re.compile(
    r"# nThread (?P<threads>\d+) nGpus (?P<devices>\d+) minBytes (?P<smallest>\d+) "
    r"maxBytes (?P<largest>\d+) step: (?P<step>\d+)\((?P<growth>factor|bytes)\) "
    r"warmup iters: \d+ iters: (?P<iterations>\d+) agg iters: (?P<aggregated>\d+) "
    r"validation: (?P<validation>\d+) graph: \d+(?: \w+: \d+)*"
)
_RANK = re.compile(
    r"#\s+Rank\s+(\d+)(?: Group\s+(\d+))? Pid\s+(\d+) on\s+(\S+) device\s+(\d+) "
    r"\[((?:0x)?[0-9a-fA-F:.]+)\] .+"
)
_DAMAGED = re.compile(r"#.*\b(nThread|Rank\s+\d|[nr]ccl-tests|Collective test)|rccl-tests")
_HEADER = re.compile(r"#\s+size\s+count\s+type\s")
_UNITS = re.compile(r"#\s+\(B\)\s+\(elements\)(?:\s+\(us\)\s+\(GB/s\)\s+\(GB/s\))+")
_BOUNDS = re.compile(r"# Out of bounds values\s*: (\d+) (OK|FAILED)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: (\S+)(?: (?:OK|FAILED))?")
_CONCLUDED = re.compile(r"# Collective test concluded: (\S+?)_perf(?:_mpi)?")
#: The start of a line that every version of the tests prints.
_BANNER = "# nThread "
# Lines of the library, printed between those of the test when NCCL_DEBUG is set.
_LOG = re.compile(r"(?!#|\s*\d+\s+\d+\s).*\bNCCL (?:INFO|WARN|TRACE|CALL) (.*)")
_PROCESS = re.compile(r"(\S+):(\d+):\d+ \[(\d+)\] .*\bNCCL ")
_LIBRARY = re.compile(r"(NCCL|RCCL|HIP|ROCm) version\s*:?\s*(\S+)")
_VERSION = re.compile(r"\d+(?:\.\d+)*(?:[+-]\S+)?")
_NETWORK = re.compile(r"Using network (.+)|NET/OFI Selected [Pp]rovider is ([^,(]+)")
_FOREIGN = re.compile(r"(?:Hostname|Librccl path)\s*:")


_GROUP = ("time", "algbw", "busbw", "#wrong")
_NOT_VERIFIED = "N/A"
_LEFT = ("size", "count", "type", "redop", "root")
_WHOLE = re.compile(r"\d+")
_ROOT = re.compile(r"-1|\d+")
_REDOPS = ("none", "sum", "prod", "max", "min", "avg", "mulsum")

#: Bytes of an element, by the names of both tools and of their older versions.
ELEMENT_BYTES = {
    **dict.fromkeys(("int8", "uint8", "char"), 1),
    **dict.fromkeys(("f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "int", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


@dataclass(frozen=True)
class Collective:
    """How a collective counts bus bandwidth and sizes.

    steps, per_rank: busbw is algbw * steps * (n - 1) / n where ``per_rank``, else algbw, for n
    ranks: see PERFORMANCE.md of nccl-tests. divided: whether the elements are divided among the
    ranks; ``count`` is then one rank's. rooted: whether one rank sends to, or receives from, all
    others. in_place: whether the tool verifies the data of one buffer for both.
    """

    steps: int
    per_rank: bool
    divided: bool
    rooted: bool = False
    in_place: bool = True

    def factor(self, ranks: int) -> float:
        """Return busbw divided by algbw for a number of ranks."""
        return self.steps * (ranks - 1) / ranks if self.per_rank else 1.0


#: The supported collectives; ``<name>_perf`` is the program.
COLLECTIVES = {
    "all_reduce": Collective(2, True, False),
    "all_gather": Collective(1, True, True),
    "reduce_scatter": Collective(1, True, True),
    "broadcast": Collective(1, False, False, rooted=True),
    "reduce": Collective(1, False, False, rooted=True),
    # Not a collective: each rank sends to the next one.
    "sendrecv": Collective(1, False, False, in_place=False),
}


@dataclass(frozen=True)
class Timing:
    """One placement of one size: time in us, bus bandwidth in GB/s."""

    time_us: float
    busbw: float


@dataclass(frozen=True)
class NcclRow:
    """One size, with data found right.

    size: in bytes, as the tool counts it: of all ranks together where they share it. out_of_place,
    in_place: ``None`` where that placement did not run, or the tool does not verify it.
    """

    size: int
    datatype: str
    out_of_place: Timing | None
    in_place: Timing | None


@dataclass(frozen=True)
class NcclDevice:
    """The device of one rank: its host, its index there, and its PCI address as printed."""

    rank: int
    host: str
    index: int
    pci: str


@dataclass(frozen=True)
class Network:
    """What the library of one process names as its network between nodes.

    process: with its rank where the banner tells it. name: of a plug-in or part of the library
    (``AWS Libfabric``, ``IB``, ``Socket``), or with ``is_provider`` of libfabric's provider
    (``cxi``).
    """

    process: str
    name: str
    is_provider: bool


@dataclass(frozen=True)
class NcclResult:
    """The output of one test.

    tests: name and version of the test; ``None`` if the banner has none. library: version of the
    library that ran; headers: of those that the test was built with. stack: versions that RCCL
    reports, such as ``("ROCm", "6.2.0.0-66")``. network: what the library named between nodes;
    empty unless NCCL_DEBUG was set. batch: number of operations in a mean time. threads: of each
    process, which share its devices.
    """

    tests: str | None
    library: str | None
    headers: str | None
    stack: tuple[tuple[str, str], ...]
    network: tuple[Network, ...]
    batch: int
    threads: int
    devices: tuple[NcclDevice, ...]
    rows: tuple[NcclRow, ...]


def parse(text: str, origin: str, collective: str, ranks: int, sizes: Sequence[int]) -> NcclResult:
    """Parse the output of one test of nccl-tests or rccl-tests that verified the data.

    :param text: its standard output.
    :param origin: the file, for errors.
    :param collective: the collective, a key of :data:`COLLECTIVES`.
    :param ranks: how many ranks were requested.
    :param sizes: the sizes that were requested, in bytes and in order; a row's size may be smaller
        for a collective whose size is a multiple of the ranks.
    :raises GarbledOutput: when the text is cut off or damaged, or its numbers contradict each
        other.
    :raises OtherRunError: when it is another run: another collective, ranks or sizes, or no
        verification.
    :raises WrongDataError: when the tool found wrong data.
    :raises UsageError: when the collective is unknown, or nothing was requested.
    """
    if collective not in COLLECTIVES or ranks < 1 or not sizes:
        requested = f"{collective} with {ranks} ranks and {len(sizes)} sizes"
        raise UsageError(f"There is no parser of {requested}.")
    whole = ended_lines_of(text, origin)
    lines = lines_of_ranks(whole, _BANNER, NCCL)
    versions: dict[str, str] = {}
    printed_by_test = (line for line in lines if not _is_of_library(line, versions))
    banner = _Banner(collective, ranks, sizes)
    columns = banner.read(printed_by_test)
    rows = None if columns is None else _table(printed_by_test, banner, columns)
    averaged, ended = _end(printed_by_test, banner)
    for seen, what in (
        (banner.batch, "the line '# nThread ...', as nccl-tests and rccl-tests print it"),
        (columns, "the names of the columns"),
        (rows, "'# Out of bounds values', so it is cut off"),
        (averaged, "'# Avg bus bandwidth', so it is cut off"),
        (ended, "its end ('# Collective test concluded', or '#' of older versions)"),
    ):
        if seen is None or seen is False:
            raise whole[-1].garbled(f"the text ends without {what}")
    assert banner.batch is not None and rows is not None
    library = versions.get("RCCL") or versions.get("NCCL")
    return NcclResult(
        tests=banner.tests,
        library=library or banner.coded.get("library"),
        headers=banner.coded.get("headers"),
        stack=tuple((name, v) for name, v in versions.items() if name in ("HIP", "ROCm")),
        network=_networks(lines),
        batch=banner.batch,
        threads=banner.threads,
        devices=tuple(banner.devices),
        rows=tuple(rows),
    )


def networks_of(text: str) -> tuple[Network, ...]:
    """Return the networks between nodes that the library names in an output that may be cut off."""
    return _networks(lines_of_ranks(lines_of(text), reads=NCCL))


def tests_in(text: str) -> int:
    """Return the number of tests that began in an output that may be cut off."""
    return sum(line.text.startswith(_BANNER) for line in lines_of_ranks(lines_of(text), reads=NCCL))


def _networks(lines: Sequence[Line]) -> tuple[Network, ...]:
    ranks = {
        (rank[4], rank[3], rank[5]): f"rank {rank[1]} ({rank[4]})"
        for line in lines
        if (rank := _RANK.fullmatch(line.text))
    }
    networks = []
    for line in lines:
        if (log := _LOG.match(line.text)) and (named := _NETWORK.search(log[1])):
            process = "the library"
            if at := _PROCESS.search(line.text):
                process = ranks.get((at[1], at[2], at[3]), f"process {at[2]} ({at[1]})")
            networks.append(Network(process, (named[1] or named[2]).strip(), named[1] is None))
    return tuple(dict.fromkeys(networks))


def _is_of_library(line: Line, versions: dict[str, str]) -> bool:
    """Whether the library wrote a line, and not the test; its versions are added."""
    log = _LOG.match(line.text)
    if match := _LIBRARY.match(log[1] if log else line.text):
        name, version = match[1], match[2]
        if not _VERSION.fullmatch(version):
            raise line.garbled(f"'{version}' is not a version of {name}")
        if versions.setdefault(name, version) != version:
            raise line.garbled(f"the ranks have versions {versions[name]} and {version} of {name}")
        return True
    return log is not None or _FOREIGN.match(line.text) is not None


class _Banner:
    """What a test says before its table; its lines are checked one by one."""

    def __init__(self, collective: str, ranks: int, sizes: Sequence[int]) -> None:
        self.collective, self.ranks, self.sizes = collective, ranks, sizes
        self.tests: str | None = None
        self.coded: dict[str, str] = {}
        self.named = False
        self.batch: int | None = None
        self.devices_of_process = self.threads = 1
        self.devices: list[NcclDevice] = []

    def read(self, lines: Iterator[Line]) -> tuple[str, ...] | None:
        """Take the lines up to the names of the columns; None if the text ends before them."""
        for line in lines:
            if _HEADER.match(line.text):
                self._require_all(line)
                return _columns_of(line)
            self._take(line)
        return None

    def _take(self, line: Line) -> None:
        if match := _TESTS.fullmatch(line.text):
            if self.tests is not None:
                raise line.garbled("a second test begins here")
            self.tests = f"{match[1] or match['older']} {match[2] or match['commit']}"
            codes = re.findall(rf"{_CODE}(\d+)", match[3] or "")
            self.coded = {name: _version(code) for name, code in codes}
        elif match := _STARTING.fullmatch(line.text):
            self.named = True
            self.require_name(match[1], line)
        elif match := _PARAMETERS.fullmatch(line.text):
            if self.batch is not None:
                raise line.garbled("a second test begins here")
            self._parameters(match, line)
        elif match := _RANK.fullmatch(line.text):
            self._rank(match, line)
        elif _DAMAGED.match(line.text):
            raise line.garbled(f"'{line.text}' is damaged")

    def _parameters(self, match: re.Match[str], line: Line) -> None:
        if int(match["validation"]) == 0:
            raise line.other_run("'validation: 0' means that the data were not verified (-c 1)")
        self.batch = int(match["iterations"]) * int(match["aggregated"])
        self.threads = int(match["threads"])
        self.devices_of_process = self.threads * int(match["devices"])
        size, largest, step = int(match["smallest"]), int(match["largest"]), int(match["step"])
        last = -1
        for position, requested in enumerate(self.sizes):
            if size != requested or size > largest:
                raise line.other_run(
                    f"size {position} of this run differs from the requested {requested} B"
                )
            last, size = size, size * step if match["growth"] == "factor" else size + step
        if last < size <= largest:
            raise line.other_run("this run has more sizes than were requested")

    def _rank(self, match: re.Match[str], line: Line) -> None:
        device = NcclDevice(int(match[1]), match[4], int(match[5]), match[6].lower())
        if device.rank != len(self.devices):
            raise line.garbled(f"rank {device.rank} is in the place of rank {len(self.devices)}")
        if match[2] not in (None, "0"):
            raise line.other_run(
                "the ranks are in groups, so the bandwidths are those of one group"
            )
        for before in self.devices:
            if replace(before, rank=device.rank) == device:
                reason = f"ranks {before.rank} and {device.rank} share device {device.index}"
                raise line.other_run(f"{reason} ({device.pci})")
        self.devices.append(device)

    def _require_all(self, line: Line) -> None:
        if self.batch is None:
            raise line.garbled("the line '# nThread ...' with the parameters is missing above")
        if len(self.devices) != self.ranks:
            raise line.other_run(
                f"{len(self.devices)} ranks are listed, but {self.ranks} were requested"
            )
        if self.ranks % (self.devices_of_process or 1):
            raise line.garbled("the number of ranks is not a multiple of nThread and nGpus")

    def require_name(self, name: str, line: Line) -> None:
        """Refuse the name of another collective."""
        if name != self.collective:
            raise line.other_run(f"this is {name}_perf, not {self.collective}_perf")


def _table(
    lines: Iterator[Line], banner: _Banner, columns: tuple[str, ...]
) -> list[NcclRow] | None:
    """Take the lines up to the one on wrong values; None if the text ends before it."""
    rows: list[NcclRow] = []
    kinds: set[tuple[str, ...]] = set()
    units, sizes = False, banner.sizes
    for line in lines:
        if match := _BOUNDS.fullmatch(line.text):
            if match[2] == "FAILED" or int(match[1]):
                raise line.wrong_data(f"{int(match[1])} values are out of bounds")
            if len(rows) < len(sizes):
                raise line.garbled(f"the row of {sizes[len(rows)]} B is missing above")
            return rows
        if line.text.startswith("# Errors with asterisks"):
            continue
        if not units:
            units = _UNITS.fullmatch(line.text) is not None
            if not units:
                raise line.garbled("the units (B, elements, us and GB/s) are missing here")
        elif line.text.startswith("#"):
            raise line.garbled(f"'{line.text}' is inside the table")
        elif len(rows) == len(sizes):
            raise line.garbled("a row follows that of the last size")
        else:
            refuse_messages(line)
            row, kind = _row_of(line, banner.collective, banner.ranks, columns, sizes[len(rows)])
            rows.append(row)
            kinds.add(kind)
            if len(kinds) > 1:
                raise line.other_run("the rows have several data types, reductions or roots")
    return None


def _end(lines: Iterator[Line], banner: _Banner) -> tuple[bool, bool]:
    """Take the lines below the table; return whether its average and its end are there."""
    averaged = ended = False
    for line in lines:
        if match := _AVERAGE.fullmatch(line.text):
            # A mean over all sizes and both placements belongs to no size.
            if printed(match[1]) is None or averaged:
                raise line.garbled(f"'{line.text}' is damaged or occurs twice")
            averaged = True
        elif match := _CONCLUDED.fullmatch(line.text):
            banner.require_name(match[1], line)
            ended = True
        elif line.text == "#" and averaged:
            ended = ended or not banner.named
        elif re.match(r"#\s*size|#? ?[nr]ccl-tests|# nThread|# Out of bounds", line.text):
            raise line.garbled("a second test begins here")
    return averaged, ended


def _version(code: str) -> str:
    """Return the version of a code such as 22809; before 2.9 the major number counted thousands."""
    number = int(code)
    thousands = 10000 if number >= 10000 else 1000
    return f"{number // thousands}.{number % thousands // 100}.{number % 100}"


def _columns_of(line: Line) -> tuple[str, ...]:
    """Return the columns after size, count, type, redop and root: four for each placement.

    :raises GarbledOutput: for any other columns.
    """
    words = tuple(line.text.lstrip("#").split())
    groups = words[len(_LEFT) :]
    if words[: len(_LEFT)] != _LEFT or groups not in (_GROUP, 2 * _GROUP):
        raise line.garbled(
            f"the columns must be {' '.join(_LEFT)} and once or twice {' '.join(_GROUP)} (those "
            "of -C, -I, of time stamps and of versions before #wrong are not supported)"
        )
    return groups


def _row_of(
    line: Line, collective: str, ranks: int, columns: tuple[str, ...], requested: int
) -> tuple[NcclRow, tuple[str, ...]]:
    """Parse one row, from the right: redop and root may be empty.

    :returns: the row, and what all rows of a scan share: data type, reduction and root.

    :param columns: as `_columns_of` returned them.
    :param requested: the size that was requested, in bytes.
    :raises GarbledOutput: when it is damaged, contradicts itself, or has another size.
    :raises OtherRunError: when its data type is unknown, or its data were not verified.
    :raises WrongDataError: when values were wrong.
    """
    words = line.words
    left, right = words[: -len(columns)], words[-len(columns) :]
    if not 3 <= len(left) <= len(_LEFT) or not all(_WHOLE.fullmatch(word) for word in left[:2]):
        raise line.garbled(f"'{line.text.strip()}' is not a row of the table")
    size, count, datatype = int(left[0]), int(left[1]), left[2]
    _redop_and_root(left[3:], collective, ranks, line)
    _right_size(size, count, datatype, collective, ranks, requested, line)
    apart, together = right[: -len(_GROUP)], right[-len(_GROUP) :]
    out_of_place = _timing(apart, size, collective, ranks, line) if apart else None
    in_place = None
    if not apart or COLLECTIVES[collective].in_place or together[-1] != _NOT_VERIFIED:
        in_place = _timing(together, size, collective, ranks, line)
    return NcclRow(size, datatype, out_of_place, in_place), tuple(left[2:])


def _redop_and_root(words: list[str], collective: str, ranks: int, line: Line) -> None:
    """Refuse an invalid reduction or root for this collective; each may be left out."""
    rest = list(words)
    root = int(rest.pop()) if rest and _ROOT.fullmatch(rest[-1]) else None
    if rest and rest[-1] in _REDOPS:
        rest.pop()
    rooted = COLLECTIVES[collective].rooted
    if rest or (root not in range(ranks) if rooted else root not in (None, -1)):
        raise line.garbled(
            f"'{' '.join(words)}' is not a reduction and root of {collective} on {ranks} ranks"
        )


def _right_size(
    size: int, count: int, datatype: str, collective: str, ranks: int, requested: int, line: Line
) -> None:
    """Check size and count against each other and against the requested size."""
    if datatype not in ELEMENT_BYTES:
        raise line.other_run(f"'{datatype}' is not a known data type")
    element = ELEMENT_BYTES[datatype]
    divided = COLLECTIVES[collective].divided
    if count * element * (ranks if divided else 1) != size:
        raise line.garbled(f"{count} elements of {datatype} for {ranks} ranks are not {size} B")
    # Where ranks share a size, it is rounded down to align each rank's part: to 16 bytes in new
    # versions, to 4 elements in old ones.
    rounding = ranks * max(16, 4 * element) if divided else element
    if not requested - rounding < size <= requested:
        raise line.garbled(f"the row of {size} B is in the place of {requested} B")


def _timing(words: list[str], size: int, collective: str, ranks: int, line: Line) -> Timing:
    time, algbw, busbw = (
        _number(word, name, line) for word, name in zip(words[:3], _GROUP[:3], strict=True)
    )
    if words[3] == _NOT_VERIFIED:
        reason = f"#wrong of {size} B is N/A, so the data were not verified (-c 1)"
        raise line.other_run(reason)
    if words[3] != "0":
        if _number(words[3], "#wrong", line).value > 0:
            raise line.wrong_data(f"{words[3]} values of {collective} with {size} B are wrong")
        raise line.garbled(f"'{words[3]}' (#wrong) is not a count")
    if time.value <= 0:
        raise line.garbled(f"'{words[0]}' (time) is not positive")
    # Bytes per us are 1e-3 GB/s.
    by_time = size / time.high * 1e-3, size / max(time.low, time.value / 2) * 1e-3
    if not agree((algbw.low, algbw.high), by_time):
        raise line.garbled(f"algbw is {words[1]} GB/s, which contradicts {size} B in {words[0]} us")
    factor = COLLECTIVES[collective].factor(ranks)
    if not agree((busbw.low, busbw.high), (algbw.low * factor, algbw.high * factor)):
        raise line.garbled(
            f"busbw is {words[2]} GB/s, but {words[1]} GB/s of {collective} on {ranks} ranks "
            f"give {algbw.value * factor:.2f}"
        )
    return Timing(time.value, busbw.value)


def _number(text: str, column: str, line: Line) -> Printed:
    number = printed(text)
    if number is None:
        raise line.garbled(f"'{text}' ({column}) is not a number")
    return number
