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

from fabricheck.beside.outputs import PlacedValues, Reader
from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of

VERSION = "2.6.0"

#: Titles of its matrices, as printed without options; rows are sources.
ACCESS = "Inter-Device Access"
DISTANCE = "Inter-Device Numa Distance"
ONE_WAY = "Unidirectional copy peak bandwidth GB/s"
BOTH_WAYS = "Bidirectional copy peak bandwidth GB/s"

_RATE = re.compile(r"[0-9]+\.[0-9]{3}")
_FORMS = {
    ACCESS: re.compile("[01]"),
    DISTANCE: re.compile("[0-9]{1,9}"),
    ONE_WAY: _RATE,
    BOTH_WAYS: _RATE,
}
_DOTS = re.compile(r"\.+")
_VERSION = re.compile(r"RocmBandwidthTest Version: (\S+)")
_DEVICE = re.compile(
    r"Device: (\d+),  (.*?)(?:,  (GPU-\S+),  ([0-9a-f]{2}):([0-9a-f]{1,2})\.(\d))?"
)
#: Fields that only a GPU has, so that a damaged line of a GPU is not read as a CPU's.
_OF_GPU = re.compile(r"GPU-|,  |:[0-9a-f]+\.\d")


def parse(text: str, origin: str) -> PlacedValues:
    """Parse a run without options: values by title, row and column, without those of ``N/A``.

    A device is ``CPU 00`` for the first host domain and ``GPU 00`` for the first GPU. A GPU's copy
    to itself counts its bytes twice, read and written. A copy in both directions counts the bytes
    of both, over the time from the first start to the last end.

    :param origin: the file, for errors.
    :raises GarbledOutput: when the text is cut off, damaged, or contradicts itself.
    :raises OtherRunError: when it is of another version.
    """
    lines = [line for line in ended_lines_of(text, origin) if not _DOTS.fullmatch(line.text)]
    reader = Reader(lines, origin)
    line = reader.take("its version")
    match = _VERSION.fullmatch(line.text.strip())
    if match is None:
        raise line.garbled("it is not the version of rocm_bandwidth_test")
    if match[1] != VERSION:
        raise line.other_run(f"it is of version {match[1]}, not of {VERSION}")
    reader.take("its command")
    names, gpus, addresses = _devices(reader)
    values: dict[tuple[str | int, ...], float] = {}
    for title in _FORMS:
        line = reader.title(title)
        values |= _matrix(reader, title, names)
        if title in (ONE_WAY, BOTH_WAYS):
            _require_access(line, title, names, values)
    reader.end()
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


def _matrix(reader: Reader, title: str, names: Sequence[str]) -> dict[tuple[str | int, ...], float]:
    line, _ = reader.row(["D/D", *map(str, range(len(names)))], 0)
    values: dict[tuple[str | int, ...], float] = {}
    for number, source in enumerate(names):
        none = "" if title == ACCESS else "N/A"
        line, cells = reader.values([str(number)], len(names), _FORMS[title], none)
        values |= {
            (title, source, target): value
            for target, value in zip(names, cells, strict=True)
            if value is not None
        }
    for (_, start, end), value in values.items() if title == BOTH_WAYS else ():
        back = values.get((title, end, start))
        if start == end or back != value:
            raise line.garbled(f"{start} to {end} is {value}, the way back is {back}")
    return values


def _devices(reader: Reader) -> tuple[list[str], list[str], list[str]]:
    """Return the names of all devices, and the kind and PCI address of each GPU."""
    names: list[str] = []
    gpus: list[str] = []
    addresses: list[str] = []
    while not reader.over and (match := _DEVICE.fullmatch(reader.lines[reader.at].text.strip())):
        line = reader.take("a device")
        number, what, unique_id, bus, slot, function = match.groups()
        if int(number) != len(names):
            raise line.garbled(f"device {number} does not follow the one before")
        if unique_id is None and _OF_GPU.search(what):
            raise line.garbled(f"device {number} has no UUID and PCI address")
        if unique_id is None:
            names.append(f"CPU {len(names) - len(gpus):02d}")
            continue
        names.append(f"GPU {len(gpus):02d}")
        gpus.append(what)
        addresses.append(f"{bus}:{int(slot, 16):02x}.{function}")
    if not names:
        raise GarbledOutput(reader.origin, None, "it names no device")
    return names, gpus, addresses
