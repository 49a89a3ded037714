"""Parser of the text of TransferBench's presets p2p, a2a, one2all and scaling.

Bandwidths are in GB/s (1e9 bytes per second), means over the iterations, and count bytes once. Rows
are sources, columns destinations. Sources of the format: TransferBench.cpp of 1.52, which calls
one2all pcopy, and the presets of its successor (of one node only): 1.67 (ROCm/TransferBench
2bc42cd8) draws the table of a2a with borders and two decimals, and leaves the others as they were.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabricheck.beside.outputs import PlacedValues, Reader, number
from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of

#: The oldest version whose format is read, and the newest whose format is known.
_OLDEST, _NEWEST = (1, 52), (1, 67)

#: Matrices of p2p: one direction alone; in both directions, that of the row, and the total.
ALONE, BESIDE, BOTH = "alone", "beside", "both"

#: Places of a2a: the sum of the transfers' rates, and all bytes over the host's time.
SUM, BY_HOST = ("sum",), ("by host's clock",)

#: What draws the borders of a table; a row between two rows has some of the corners.
_CORNERS, _BORDER = frozenset("┌┬┐├┼┤└┴┘"), "│"

#: The destination of one2all: all GPUs but GPU 0.
ALL = "all others"

#: The row of scaling with the highest value over all numbers of compute units.
BEST = "best"

_VERSION = re.compile(r"TransferBench (?:Client )?v(\d+)\.(\d+)(?:\.(\d+))?\b(.*)")
_ERROR = re.compile(r"(?:^\[ERROR\]\s*|(?=Encountered HIP error))(.*)")
_SETTING = re.compile(r"([A-Z][A-Z0-9_]+) *= *([^ ,]+) *:.*")
_WORD, _DEVICE = re.compile(r"[CG]PU \d\d|\S+"), re.compile(r"\b([CG]PU)(\d\d)\b")
_TWO, _THREE = (re.compile(rf"[0-9]+\.[0-9]{{{digits}}}") for digits in (2, 3))
_MATRIX = re.compile(
    r"(Uni|Bi)directional copy peak bandwidth GB/s "
    r"\[(Local|Remote) read / (Local|Remote) write\] \(GPU-Executor: (GFX|DMA)\)"
)
_KINDS = ("CPU->CPU", "CPU->GPU", "GPU->CPU", "GPU->GPU")
_COPYING = re.compile(
    r"- Copying (?P<bytes>\d+) bytes between (?P<pairs>directly connected|all) pairs of GPUs "
    r"using \d+ CUs \((?P<transfers>\d+) Transfers\)"
)
_ANNOUNCED = re.compile(
    r"\[(?P<bytes>\d+) bytes per Transfer\] \[(?:GFX|DMA):\d+\] .*\[NIC QueuePairs:(?P<nics>\d+)\]"
    r" \[#Ranks:(?P<ranks>\d+)\]"
)
_SUMMARY = re.compile(r"Summary:(?: \[(\d+) bytes per Transfer\])?")
_TOTALS = (
    ("Average   bandwidth (GPU Timed):", None),
    ("Aggregate bandwidth (GPU Timed):", SUM),
    ("Aggregate bandwidth (CPU Timed):", BY_HOST),
)
_ONE_TO_ALL = re.compile(
    r"Executing \(G(?P<from>\d+) -> (?P<exe>[GD])\d+ -> G\*\)"
    r"|Bytes to copy: (?P<bytes>\d+) from GPU (?P<root>\d+) using "
    r"(?P<kind>DMA|GFX) (?:\(\d+ CUs\) )?\[Sweeping \d+ to \d+ parallel writes\]"
)
_BEST_CELL = re.compile(r"([0-9]+\.[0-9]{2})\( *(\d+)\)")


def parse_p2p(
    text: str, origin: str, size: int, executor: str = "GFX", remote_read: bool = False
) -> PlacedValues:
    """Parse preset ``p2p``: values by matrix, row (source) and column (destination).

    Devices have their printed names, ``CPU 00`` for a NUMA node and ``GPU 00``. The row's device
    executes the transfer, or the column's with ``remote_read``: a GPU by kernel or engine, a CPU by
    its threads. The printed peak is a mean. The total of both directions is the sum of their rates.

    :param origin: the file, for errors.
    :param size: bytes of a transfer.
    :param executor: of GPUs, ``GFX`` for kernels or ``DMA`` for engines.
    :raises GarbledOutput: when the text is cut off, damaged, or contradicts itself.
    :raises OtherRunError: when it is of other sizes, executors or an older version.
    :raises WrongDataError: when it found wrong data.
    """
    reader = _Reader(text, origin)
    reader.require_settings(
        {"USE_REMOTE_READ": str(int(remote_read)), "USE_GPU_DMA": str(int(executor == "DMA"))}
    )
    line, match = reader.find(re.compile(r"Bytes Per Direction (\d+)"), "'Bytes Per Direction'")
    reader.require_size(line, int(match[1]), size)
    values: dict[tuple[str | int, ...], float] = {}
    for part in ("Uni", "Bi"):
        line = reader.take(f"the matrix '{part}directional'")
        title = _MATRIX.fullmatch(line.text)
        if title is None or title[1] != part:
            raise line.garbled(f"'{part}directional copy peak bandwidth' is missing here")
        if (title[2] == "Remote", title[3] == "Local", title[4]) != (
            remote_read,
            remote_read,
            executor,
        ):
            raise line.other_run(
                f"it is of '{title[2]} read / {title[3]} write' by {title[4]}, not of "
                f"'{'Remote' if remote_read else 'Local'} read' by {executor}"
            )
        names, values_of_part = _matrix(reader, part, remote_read)
        values |= values_of_part
    _require_executors(line, names, values, remote_read)
    reader.end()
    return PlacedValues(values, reader.version)


def _require_executors(
    line: Line,
    names: Sequence[str],
    values: Mapping[tuple[str | int, ...], float],
    remote_read: bool,
) -> None:
    """Require that only those pairs have no value that TransferBench skips.

    It skips what a NUMA node without CPUs would execute, and both directions within a device.
    """
    pairs = list(itertools.product(names, names))
    alone = {pair: {pair[remote_read]} for pair in pairs}
    beside = {pair: set(pair) for pair in pairs if pair[0] != pair[1]}
    idle = {
        name
        for name in names
        if name[:3] == "CPU"
        and not any((ALONE, *pair) in values for pair in pairs if name in alone[pair])
    }
    for place, executors in ((ALONE, alone), (BESIDE, beside)):
        missing = {pair for pair in executors if (place, *pair) not in values}
        skipped = {pair for pair in executors if executors[pair] & idle}
        if missing != skipped:
            source, target = min(missing ^ skipped)
            has = "no value" if (source, target) in missing else "a value"
            raise line.garbled(f"{source} to {target} has {has}, against its other values")


def _matrix(
    reader: _Reader, part: str, remote_read: bool
) -> tuple[list[str], dict[tuple[str | int, ...], float]]:
    corner = "SRC\\DST" if part == "Bi" else "SRC\\EXE+DST" if remote_read else "SRC+EXE\\DST"
    names = reader.columns(corner)
    values: dict[tuple[str | int, ...], float] = {}
    arrows = ("->",) if part == "Uni" else ("->", "<-", "<->")
    rows: dict[str, list[float | None]] = {}
    kinds: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for source in names:
        for arrow in arrows:
            line, rows[arrow] = reader.values([source, arrow], len(names), _TWO, "N/A")
        if part == "Bi":
            _require_sums(line, rows)
        place = {"->": ALONE if part == "Uni" else BESIDE, "<->": BOTH}
        for arrow, cells in rows.items():
            for target, cell in zip(names, cells, strict=True):
                if cell is None:
                    continue
                if arrow in place:
                    values[place[arrow], source, target] = cell
                if arrow != "<->" and source != target:
                    kinds[f"{source[:3]}->{target[:3]}"].append(cell)
    _require_averages(reader, part, kinds)
    return names, values


def _require_sums(line: Line, rows: Mapping[str, Sequence[float | None]]) -> None:
    for there, back, both in zip(rows["->"], rows["<-"], rows["<->"], strict=True):
        known = [value is not None for value in (there, back, both)]
        added = (there or 0.0) + (back or 0.0)
        if len(set(known)) > 1 or (both is not None and abs(both - added) > 0.0151):
            raise line.garbled(f"{both} is not the sum of both directions, {added:g}")


def _require_averages(reader: _Reader, part: str, kinds: Mapping[str, Sequence[float]]) -> None:
    reader.row(_KINDS, 0)
    line = reader.take("the averages")
    head, _, rest = line.text.partition("):")
    if head.split() != ["Averages", "(During", f"{part}Dir"] or len(rest.split()) != len(_KINDS):
        raise line.garbled(f"'{line.text.strip()}' are not averages of {part}Dir")
    for word, cells in zip(rest.split(), kinds.values(), strict=True):
        stated = None if word == "N/A" else number(line, word, _TWO)
        mean = sum(cells) / len(cells) if cells else None
        if (stated is None) != (mean is None) or (
            stated is not None and mean is not None and abs(stated - mean) > 0.0101
        ):
            raise line.garbled(f"the average {word} is not that of its values, {mean}")


def parse_a2a(text: str, origin: str, size: int, settings: Mapping[str, str]) -> PlacedValues:
    """Parse preset ``a2a``: values of simultaneous pairs by source and destination, and totals.

    Totals are at `SUM`, the sum of the rates, and at `BY_HOST`, all bytes over the time by the
    host's clock, including the starts of the kernels.

    :param origin: the file, for errors.
    :param size: bytes of a transfer.
    :param settings: environment variables of the run; other printed values are refused.
    :raises GarbledOutput: when the text is cut off, damaged, or contradicts itself.
    :raises OtherRunError: when it is of another run or an older version.
    :raises WrongDataError: when it found wrong data.
    """
    reader = _Reader(text, origin)
    reader.require_settings(settings)
    line, match = reader.find(_COPYING, "'... bytes ...' of its transfers", _ANNOUNCED)
    reader.require_size(line, int(match["bytes"]), size)
    if match.re is _ANNOUNCED:
        return _bordered_a2a(reader, line, match)
    if settings.get("A2A_DIRECT") == "0" and match["pairs"] != "all":
        raise line.other_run(f"it is between {match['pairs']} pairs, not all")
    line, summary = reader.find(_SUMMARY, "'Summary:'")
    if summary[1] is not None:
        reader.require_size(line, int(summary[1]), size)
    reader.take("a line below the title")
    devices = reader.columns("SRC\\DST", ["STotal", "Actual"])
    values, added = _rates_of_pairs(reader, devices, _THREE, totals=3)
    if len(values) != int(match["transfers"]):
        raise line.garbled(f"it has {len(values)} values of {match['transfers']} transfers")
    return _with_totals(reader, devices, values, added, rounding=0.0011)


def _bordered_a2a(reader: _Reader, line: Line, match: re.Match[str]) -> PlacedValues:
    """Parse the table of 1.67, which has no number of transfers: their average tells it."""
    if match["nics"] != "0" or match["ranks"] != "1":
        raise line.other_run("it is of NICs or of several ranks, too")
    devices = reader.columns("SRC\\DST", ["STotal", "Actual"])
    values, added = _rates_of_pairs(reader, devices, _TWO, totals=2)
    line, (by_host,) = reader.values(["CPU", "Timed:"], 1, _TWO)
    table = _with_totals(reader, devices, values, added, rounding=0.005 * len(values) + 0.0011)
    if by_host is None or abs(by_host - table.values[BY_HOST]) > 0.0051:
        raise line.garbled(f"{by_host} is not the {table.values[BY_HOST]:g} below the table")
    return table


def _rates_of_pairs(
    reader: _Reader, devices: Sequence[str], form: re.Pattern[str], totals: int
) -> tuple[dict[tuple[str | int, ...], float], float]:
    """Return the values of pairs, and their sum, from the rows of sources and that of totals.

    :param totals: how many values the last row has after those of the destinations.
    """
    count, half_step = len(devices), 0.005 if form is _TWO else 0.0005
    rows = [reader.values([source], count + 2, form, "N/A") for source in devices]
    for line, cells in rows:
        _require_sum(line, cells[count], cells[:count], half_step)
    line, last = reader.values(["RTotal"], count + totals, form, "N/A")
    for column, total in enumerate(last[: count + 1]):
        _require_sum(line, total, [cells[column] for _, cells in rows], half_step)
    values: dict[tuple[str | int, ...], float] = {}
    for source, (_, cells) in zip(devices, rows, strict=True):
        for target, cell in zip(devices, cells, strict=False):
            if cell is not None:
                values[source, target] = cell
    if not values:
        raise line.garbled("it has no value of a pair")
    return values, last[count] or 0.0


def _with_totals(
    reader: _Reader,
    devices: Sequence[str],
    values: dict[tuple[str | int, ...], float],
    added: float,
    rounding: float,
) -> PlacedValues:
    """Read the totals below a table of a2a, and require those of its values.

    :param added: the sum of the values. rounding: what it may be off by, as it was printed.
    """
    for head, place in _TOTALS:
        line = reader.take(f"'{head}'")
        text_of, _, rest = line.text.partition(": ")
        if f"{text_of}:" != head or not rest.endswith(" GB/s"):
            raise line.garbled(f"'{line.text.strip()}' is not '{head} ... GB/s'")
        value = number(line, rest.removesuffix(" GB/s").strip(), _THREE)
        expected, allowed = None, rounding
        if place is None:
            expected, allowed = added / len(values), rounding / len(values) + 0.0011
        if place == SUM:
            expected = added
        if expected is not None and abs(value - expected) > allowed:
            raise line.garbled(f"{value:g} is not the {expected:g} of the table")
        if place is not None:
            values[place] = value
    reader.end()
    return PlacedValues(values, reader.version, tuple(devices))


def _require_sum(
    line: Line, stated: float | None, parts: Sequence[float | None], half_step: float
) -> None:
    known = [part for part in parts if part is not None]
    added = sum(known)
    if stated is None or abs(stated - added) > half_step * (len(known) + 1) + 1e-6:
        raise line.garbled(f"{stated} is not the sum of its values, {added:.3f}")


def parse_one_to_all(
    text: str, origin: str, size: int, gpus: int, executor: str = "G"
) -> PlacedValues:
    """Parse preset ``one2all``, or ``pcopy`` of 1.52: copies from GPU 0 to all other GPUs.

    Values are by executor and destination; the sum of all is at ``(executor, ALL)``. Only 1.52
    prints the bytes.

    :param origin: the file, for errors.
    :param size: bytes of a transfer.
    :param gpus: the number of GPUs.
    :param executor: ``G`` for kernels or ``D`` for engines, of GPU 0.
    :raises GarbledOutput: when the text is cut off or damaged.
    :raises OtherRunError: when it is of another run or an older version.
    :raises WrongDataError: when it found wrong data.
    """
    reader = _Reader(text, origin)
    reader.require_settings({"EXE_INDEX": "0", "SWEEP_DIR": "0", "SWEEP_EXE": executor})
    line, match = reader.find(_ONE_TO_ALL, "'Executing (G0 -> ... -> G*)'")
    if match["bytes"] is not None:
        reader.require_size(line, int(match["bytes"]), size)
    by, root = match["exe"] or match["kind"][0], match["from"] or match["root"]
    if (by, root) != (executor, "0"):
        raise line.other_run(f"it is not from GPU 0 by {executor}")
    line = reader.take("the names of the columns")
    others = range(1, gpus)
    if line.words != [word for other in others for word in ("GPU", str(other))]:
        raise line.other_run(f"its columns are not those of {gpus} GPUs without GPU 0")
    reader.take("a line below them")
    line = reader.take("the row of all other GPUs")
    left, _, copies = line.text.partition(" (")
    words = left.split()
    named = " ".join(f"(G0 {executor}0 G{other})" for other in others)
    counted = len(words) == len(others) + 2 and words[-2] == str(len(others))
    if not counted or f"({copies}".strip() != named or not words[-1].isdecimal():
        raise line.garbled("it is not the row of copies from GPU 0 to all others")
    values: dict[tuple[str | int, ...], float] = {
        (executor, other): number(line, word, _THREE)
        for other, word in zip(others, words, strict=False)
    }
    reader.end()
    return PlacedValues({**values, (executor, ALL): sum(values.values())}, reader.version)


def parse_scaling(text: str, origin: str, size: int, most: int) -> PlacedValues:
    """Parse preset ``scaling``: kernel copies of GPU 0, by number of compute units and target.

    Values are at ``(units, "GPU 01")``, and the best over all units at ``(BEST, "GPU 01")``.

    :param origin: the file, for errors.
    :param size: bytes of a transfer.
    :param most: the largest number of compute units; the smallest is 1.
    :raises GarbledOutput: when the text is cut off, damaged, or contradicts itself.
    :raises OtherRunError: when it is of another run or an older version.
    :raises WrongDataError: when it found wrong data.
    """
    reader = _Reader(text, origin)
    reader.require_settings({"LOCAL_IDX": "0", "SWEEP_MIN": "1", "SWEEP_MAX": str(most)})
    copying = re.compile(r"- Copying (\d+) bytes from GPU (\d+) to other devices")
    line, match = reader.find(copying, "'Copying ... bytes from GPU'")
    reader.require_size(line, int(match[1]), size)
    if match[2] != "0":
        raise line.other_run(f"it is of GPU {match[2]}, not 0")
    reader.title("- All numbers reported as GB/sec")
    names = reader.columns("NumCUs")
    values: dict[tuple[str | int, ...], float] = {}
    for units in range(1, most + 1):
        line, cells = reader.values([str(units)], len(names), _TWO)
        values |= {
            (units, name): value
            for name, value in zip(names, cells, strict=True)
            if value is not None
        }
    line = reader.take("the row 'Best'")
    best_cells = _BEST_CELL.findall(line.text)
    if _BEST_CELL.sub("", line.text).split() != ["Best"] or len(best_cells) != len(names):
        raise line.garbled(f"it is not the row 'Best' with {len(names)} values")
    for name, (printed, count) in zip(names, best_cells, strict=True):
        best = max(values[units, name] for units in range(1, most + 1))
        if float(printed) != best or values.get((int(count), name)) != best:
            raise line.garbled(f"{printed} with {count} compute units is not the best of {name}")
        values[BEST, name] = best
    reader.end()
    return PlacedValues(values, reader.version)


class _Reader(Reader):
    _word = _WORD

    def __init__(self, text: str, origin: str) -> None:
        lines = [line for line in ended_lines_of(text, origin) if _CORNERS.isdisjoint(line.text)]
        lines = [replace(line, text=line.text.replace(_BORDER, " ")) for line in lines]
        super().__init__(lines, origin)
        for line in self.lines:
            if "mismatch" in line.text and ("ERROR" in line.text or "nexpected" in line.text):
                raise line.wrong_data(f"TransferBench found wrong data: {line.text.strip()}")
            if match := _ERROR.search(line.text):
                raise line.garbled(f"TransferBench says: {match[1]}")
        self.version, newer = self._require_version()
        if newer:
            self.origin += (
                f" of TransferBench {self.version} (known up to {_NEWEST[0]}.{_NEWEST[1]})"
            )
            self.lines = [replace(line, origin=self.origin) for line in self.lines]

    def _require_version(self) -> tuple[str, bool]:
        """Return the version, and whether its format may be another than the known ones."""
        for line in self.lines:
            if match := _VERSION.fullmatch(line.text):
                version = ".".join(part for part in match.groups()[:3] if part is not None)
                number = (int(match[1]), int(match[2]))
                if number < _OLDEST:
                    raise line.other_run(
                        f"it is of TransferBench {version}, not of "
                        f"{_OLDEST[0]}.{_OLDEST[1]} or newer"
                    )
                if "multi-node" in match[4].lower():
                    raise line.other_run("it is of several nodes")
                return version, number > _NEWEST
        raise GarbledOutput(self.origin, None, "it does not state the version of TransferBench")

    def require_settings(self, wanted: Mapping[str, str]) -> None:
        """Refuse a run that prints another value of a requested environment variable."""
        for line in self.lines:
            match = _SETTING.fullmatch(line.text)
            if match is not None and wanted.get(match[1], match[2]) != match[2]:
                raise line.other_run(f"{match[1]} was {match[2]}, not {wanted[match[1]]}")

    def require_size(self, line: Line, size: int, wanted: int) -> None:
        if size != wanted:
            raise line.other_run(f"its transfers are of {size} B, not {wanted} B")

    def find(
        self, form: re.Pattern[str], what: str, other: re.Pattern[str] | None = None
    ) -> tuple[Line, re.Match[str]]:
        """Return the next line of a form, or of another, and skip the lines before it."""
        while not self.over:
            line = self.take(what)
            match = form.fullmatch(line.text)
            if match is None and other is not None:
                match = other.fullmatch(line.text)
            if match is not None:
                return line, match
        raise GarbledOutput(
            self.origin, None, f"it has no {what}: it is cut off, or of another preset or version"
        )

    def columns(self, corner: str, after: Sequence[str] = ()) -> list[str]:
        """Return the devices that the next line names: CPUs, then GPUs, in order of their numbers.

        :param corner: the word before them. after: those after them.
        :raises GarbledOutput: when it is another line.
        """
        line = self.take("the names of the columns")
        words = _WORD.findall(_DEVICE.sub(r"\1 \2", line.text))
        cpus = sum(word[:4] == "CPU " for word in words)
        gpus = len(words) - 1 - cpus - len(after)
        names = [f"CPU {i:02d}" for i in range(cpus)] + [f"GPU {i:02d}" for i in range(gpus)]
        if not names or words != [corner, *names, *after]:
            raise line.garbled(f"'{line.text.strip()}' are not names of columns")
        return names
