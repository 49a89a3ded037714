"""Parser of rocm_bandwidth_test 2.6.0, as in ROCm 5.2 to 6.3: its matrices.

Copies are ROCr's asynchronous copies: by engines, or by kernels where engines are switched off. All
bandwidths are in GB/s (1e9 bytes per second); a peak is that of the shortest run. Sources of the
format: rocm_bandwidth_test_report.cpp and rocm_bandwidth_test_print.cpp of ROCm 5.2.0 and 6.3.3,
which print the same. ROCm 7 has another program of this name, based on TransferBench.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from fabricheck.beside.outputs import PlacedValues
from fabricheck.core.errors import GarbledOutput, OtherRunError
from fabricheck.core.lines import Line, ended_lines_of

VERSION = "2.6.0"

#: Titles of its matrices; rows are sources. `DISTANCE` is the NUMA distance.
ACCESS = "Inter-Device Access"
LINK_TYPE = "Inter-Device Link Type: P = PCIe, X = xGMI, N/A = Not Applicable"
HOPS = "Inter-Device Link Hops"
DISTANCE = "Inter-Device Numa Distance"
ONE_WAY = "Unidirectional copy peak bandwidth GB/s"
BOTH_WAYS = "Bidirectional copy peak bandwidth GB/s"
VALIDATION = "Data Path Validation"

#: The titles printed without options, with ``-a``, ``-A``, ``-v`` and ``-t``.
DEFAULT = (ACCESS, DISTANCE, ONE_WAY, BOTH_WAYS)
ALL_ONE_WAY = (ACCESS, DISTANCE, ONE_WAY)
ALL_BOTH_WAYS = (ACCESS, DISTANCE, BOTH_WAYS)
VALIDATED = (ACCESS, VALIDATION)
TOPOLOGY = (ACCESS, LINK_TYPE, DISTANCE)

#: Bytes of a copy of the matrices; none of these options changes the size.
MATRIX_BYTES = 64 << 20

_WHOLE = re.compile("[0-9]{1,9}")
_RATE = re.compile(r"[0-9]+\.[0-9]{3}")
_FORMS = {
    ACCESS: re.compile("[01]"),
    LINK_TYPE: re.compile("[PX]"),
    HOPS: _WHOLE,
    DISTANCE: _WHOLE,
    ONE_WAY: _RATE,
    BOTH_WAYS: _RATE,
    VALIDATION: re.compile("PASS|FAIL"),
}
_DOTS = re.compile(r"\.+")
_VERSION = re.compile(r"RocmBandwidthTest Version: (\S+)")
_DEVICE = re.compile(
    r"Device: (\d+),  (.*?)(?:,  (GPU-\S+),  ([0-9a-f]{2}):([0-9a-f]{1,2})\.(\d))?"
)
#: Fields that only a GPU has, so that a damaged line of a GPU is not read as a CPU's.
_OF_GPU = re.compile(r"GPU-|,  |:[0-9a-f]+\.\d")
_FACT = re.compile(r"(Device Index|Device Type|Device Name|Device  BDF|Device UUID): +(.*)")
_MEMORY = re.compile(r"Allocatable Memory Size \(KB\): +\d+")
_BDF = re.compile(r"([0-9a-f]{2}):([0-9a-f]{1,2})\.(\d)")


def parse(text: str, origin: str, titles: Sequence[str] = DEFAULT) -> PlacedValues:
    """Parse matrices: values by title, row and column, without those printed as ``N/A``.

    A device is ``CPU 00`` for the first host domain and ``GPU 00`` for the first GPU. A GPU's copy
    to itself counts its bytes twice, read and written. A copy in both directions counts the bytes
    of both, over the time from the first start to the last end. For a link type the place ends with
    ``P`` or ``X``, and the value is 1.

    :param origin: the file, for errors.
    :param titles: the requested titles, such as `DEFAULT`.
    :raises GarbledOutput: when the text is cut off, damaged, or contradicts itself.
    :raises OtherRunError: when it has other matrices, or is of another version.
    :raises WrongDataError: when a validation failed.
    """
    reader = _Reader(text, origin)
    reader.version()
    names, gpus, addresses = reader.devices()
    values: dict[tuple[str | int, ...], float] = {}
    found = []
    while not reader.over:
        line = reader.take("a title")
        title = line.text.strip()
        if title not in _FORMS:
            raise line.garbled(f"'{title}' is not a title of a matrix")
        found.append(title)
        values |= _matrix(reader, title, names)
        if title in (ONE_WAY, BOTH_WAYS):
            _require_access(line, title, names, values)
    if tuple(found) != tuple(titles):
        if tuple(found) == tuple(titles[: len(found)]):
            raise GarbledOutput(
                origin, None, f"the text ends before '{titles[len(found)]}', so it is cut off"
            )
        raise OtherRunError(origin, None, f"its matrices are {_list(found)}, not {_list(titles)}")
    return PlacedValues(values, VERSION, tuple(gpus), tuple(addresses))


def _require_access(
    line: Line, title: str, names: Sequence[str], values: Mapping[tuple[str | int, ...], float]
) -> None:
    """Require values where it copies: not between CPUs, and of a GPU with itself one way only."""
    for source, target in itertools.product(names, names):
        access = [values.get((ACCESS, *way), 0) for way in ((source, target), (target, source))]
        has = (title, source, target) in values
        none = source[:3] == target[:3] == "CPU" or (title == BOTH_WAYS and source == target)
        if has and (none or not any(access)):
            why = "it copies nothing between them" if none else "no access"
            raise line.garbled(f"{source} and {target} have a value, but {why}")
        if not has and all(access) and not none:
            raise line.garbled(f"{source} and {target} have access, but no value")


def _list(titles: Sequence[str]) -> str:
    return ", ".join(title.partition(":")[0] for title in titles) or "none"


def _matrix(
    reader: _Reader, title: str, names: Sequence[str]
) -> dict[tuple[str | int, ...], float]:
    line = reader.take("the numbers of the columns")
    if line.words != ["D/D", *map(str, range(len(names)))]:
        raise line.garbled(f"the columns of '{title}' are not those of {len(names)} devices")
    values: dict[tuple[str | int, ...], float] = {}
    for number, source in enumerate(names):
        line = reader.take(f"row {number} of '{title}'")
        cells = line.words[1:]
        if line.words[0] != str(number) or len(cells) != len(names):
            raise line.garbled(f"it is not row {number} of '{title}' with {len(names)} values")
        for target, word in zip(names, cells, strict=True):
            if word == "N/A" and title != ACCESS:
                continue
            if _FORMS[title].fullmatch(word) is None:
                raise line.garbled(f"'{word}' is not a value of '{title}'")
            if word == "FAIL":
                raise line.wrong_data(f"the copy from {source} to {target} gave wrong data")
            if title == LINK_TYPE and source == target:
                raise line.garbled(f"{source} has a link to itself")
            if title == LINK_TYPE:
                values[title, source, target, word] = 1.0
            else:
                values[title, source, target] = 1.0 if word == "PASS" else float(word)
            if title in (ONE_WAY, BOTH_WAYS) and float(word) <= 0:
                raise line.garbled(f"'{word}' is not a positive value")
            if title == BOTH_WAYS and target in names[: number + 1]:
                other = None if target == source else values.get((title, target, source))
                if other != float(word):
                    raise line.garbled(f"{source} to {target} is {word}, the way back is {other}")
    if title == BOTH_WAYS:
        for _, *ends in values:
            if (title, *reversed(ends)) not in values:
                raise line.garbled(f"{ends[1]} and {ends[0]} have a value in one direction only")
    return values


class _Reader:
    def __init__(self, text: str, origin: str) -> None:
        self.origin = origin
        self.lines = [
            line for line in ended_lines_of(text, origin) if not _DOTS.fullmatch(line.text)
        ]
        self.at = 0

    @property
    def over(self) -> bool:
        return self.at >= len(self.lines)

    def take(self, what: str) -> Line:
        if self.over:
            raise GarbledOutput(
                self.origin, None, f"the text ends without {what}, so it is cut off"
            )
        self.at += 1
        return self.lines[self.at - 1]

    def version(self) -> None:
        line = self.take("its version")
        match = _VERSION.fullmatch(line.text.strip())
        if match is None:
            raise line.garbled("it is not the version of rocm_bandwidth_test")
        if match[1] != VERSION:
            raise line.other_run(f"it is of version {match[1]}, not of {VERSION}")
        line = self.take("its command")
        if not line.text.strip().startswith("Launch Command is: "):
            raise line.garbled("it does not say 'Launch Command is'")

    def devices(self) -> tuple[list[str], list[str], list[str]]:
        """Return the names of all devices, and the kind and PCI address of each GPU."""
        told: list[tuple[Line, str, tuple[str, str, str] | None]] = []
        while not self.over and (match := _DEVICE.fullmatch(self.lines[self.at].text.strip())):
            line = self.take("a device")
            if int(match[1]) != len(told):
                raise line.garbled(f"device {match[1]} does not follow the one before")
            if match[3] is None and _OF_GPU.search(match[2]):
                raise line.garbled(f"device {match[1]} has no UUID and PCI address")
            told.append((line, match[2], (match[4], match[5], match[6]) if match[3] else None))
        if not told:
            told = self._listed()
        names: list[str] = []
        gpus: list[str] = []
        addresses: list[str] = []
        for _, what, place in told:
            if place is None:
                names.append(f"CPU {len(names) - len(gpus):02d}")
            else:
                names.append(f"GPU {len(gpus):02d}")
                gpus.append(what)
                addresses.append(f"{place[0]}:{int(place[1], 16):02x}.{place[2]}")
        return names, gpus, addresses

    def _listed(self) -> list[tuple[Line, str, tuple[str, str, str] | None]]:
        """Parse the list of devices that ``-t`` prints."""
        told: list[tuple[Line, str, tuple[str, str, str] | None]] = []
        facts: dict[str, str] = {}
        line = self.lines[0]
        while not self.over:
            text = self.lines[self.at].text.strip()
            match = _FACT.fullmatch(text)
            if match is None and not _MEMORY.fullmatch(text):
                break
            if match is not None and match[1] == "Device Index" and facts:
                told.append(self._one(line, facts, len(told)))
                facts = {}
            line = self.take("a device")
            if match is not None:
                if match[1] in facts:
                    raise line.garbled(f"'{match[1]}' occurs twice")
                facts[match[1]] = match[2].strip()
        if not facts:
            raise GarbledOutput(self.origin, None, "it names no device")
        return [*told, self._one(line, facts, len(told))]

    def _one(
        self, line: Line, facts: dict[str, str], number: int
    ) -> tuple[Line, str, tuple[str, str, str] | None]:
        kind, name = facts.get("Device Type"), facts.get("Device Name")
        if facts.get("Device Index") != str(number) or kind not in ("CPU", "GPU") or name is None:
            raise line.garbled(f"device {number} is incomplete")
        if kind == "CPU":
            return line, name, None
        match = _BDF.fullmatch(facts.get("Device  BDF", ""))
        if match is None or not facts.get("Device UUID"):
            raise line.garbled(f"device {number} has no PCI address or UUID")
        return line, name, (match[1], match[2], match[3])
