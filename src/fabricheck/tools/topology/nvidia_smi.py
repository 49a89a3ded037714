"""Parser of ``nvidia-smi topo -m``, and of the addresses of ``--query-gpu``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabricheck.core.lines import Line
from fabricheck.node.cores import parse_cores
from fabricheck.tools.topology.reported import Reported, Table

_GPU = re.compile(r"GPU\d+")
_NIC = re.compile(r"NIC\d+|mlx\d_\d+|hfi\d_\d+")
_CELL = re.compile(r"NV(\d+)|SYS|NODE|PHB|PXB|PIX")
_QUERIED = re.compile(r"(\d+), ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_BETWEEN = ("\t", r"\s+")

#: The columns after the devices in the header.
ENDS_HEADER = "CPU Affinity"
_COLUMNS = (ENDS_HEADER, "NUMA Affinity", "GPU NUMA ID")


def recognises(lines: Sequence[Line]) -> bool:
    """Whether a text looks like the matrix or like the queried addresses."""
    return any(_is_header(line) or _QUERIED.fullmatch(line.text) for line in lines)


def parse(lines: Sequence[Line], origin: str) -> Reported:
    """Parse the matrix of ``nvidia-smi topo -m``, or the addresses of ``--query-gpu``.

    :param lines: of the output of one call.
    :param origin: the file or command, for errors.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    """
    if not any(_is_header(line) for line in lines):
        return _queried(lines)
    start = next(i for i, line in enumerate(lines) if _is_header(line))
    for line in lines:
        if _QUERIED.fullmatch(line.text):
            raise line.garbled("addresses are in the text of the matrix: pass each in its own file")
    header = lines[start]
    labels = {line.words[0] for line in lines[start + 1 :]}
    names = [
        word
        for word in header.text.partition(ENDS_HEADER)[0].split()
        if _GPU.fullmatch(word) or _NIC.fullmatch(word) or word in labels
    ]
    gpus = [name for name in names if _GPU.fullmatch(name)]
    if gpus != [f"GPU{i}" for i in range(len(gpus))] or names[: len(gpus)] != gpus:
        raise header.garbled("the columns are not GPU0, GPU1 and so on")
    trailing = " ".join(header.words[len(names) :])
    if trailing not in ("", *(" ".join(_COLUMNS[:count]) for count in (1, 2, 3))):
        raise header.garbled(f"'{trailing}' is not a known end of the header")
    rows, rest = _rows(lines[start + 1 :], names, header)
    end = lines[start + 1 + len(names) :]
    if other := next(filter(_is_header, end), None):
        raise other.garbled("the header of the matrix occurs twice")
    if not any(line.text.strip() == "Legend:" for line in end):
        raise lines[-1].garbled("the text ends without the legend, so it may be cut off")
    count = len(gpus)
    types = tuple(tuple(row[:count]) for row in rows[:count])
    Table(tuple(gpus), types, tuple(rest)).require_symmetry("X")
    _same_fields(rest, header)
    affinity = [row[len(names) :] for row in rows[:count]]
    return Reported(
        origin=origin,
        vendor="nvidia",
        count=count,
        links=tuple(
            tuple(int(cell[2:]) if cell.startswith("NV") else 0 for cell in row) for row in types
        ),
        link_types=types,
        numa=tuple(_numa(values, line) for values, line in zip(affinity, rest, strict=True))
        if "NUMA" in trailing
        else None,
        cpus=tuple(_cpus(values, line) for values, line in zip(affinity, rest, strict=True))
        if "CPU" in trailing
        else None,
    )


def _is_header(line: Line) -> bool:
    return line.words[0] == "GPU0" and not any(word in ("X", "SYS") for word in line.words[1:])


def _rows(
    lines: Sequence[Line], names: Sequence[str], header: Line
) -> tuple[list[list[str]], list[Line]]:
    """Return the cells of each row, affinities last, and the lines of the devices' rows."""
    rows: list[list[str]] = []
    last = header
    for position, name in enumerate(names):
        if position >= len(lines):
            raise last.garbled(f"the text ends here, the row of {name} is missing")
        last = lines[position]
        words = last.words
        if words[0] != name:
            raise last.garbled(f"'{words[0]}' is in the place of the row of {name}")
        if len(words) <= len(names):
            raise last.garbled(f"{name} has {len(words) - 1} cells, not {len(names)}")
        for other, cell in zip(names, words[1:], strict=False):
            if (cell == "X") != (other == name) or (cell != "X" and not _CELL.fullmatch(cell)):
                raise last.garbled(f"'{cell}' ({name} to {other}) is not a kind of connection")
        rows.append([*words[1 : len(names) + 1], *_affinity(last, len(names))])
    return rows, [line for line in lines[: len(names)] if _GPU.fullmatch(line.words[0])]


def _same_fields(rows: Sequence[Line], header: Line) -> None:
    """Refuse rows of different length: the missing field cannot be determined."""
    for line in rows:
        counts = [len(re.split(by, line.text)) for by in _BETWEEN]
        if counts != [len(re.split(by, rows[0].text)) for by in _BETWEEN]:
            raise line.garbled("this row has another number of fields than the first one")
        # nvidia-smi prints one tab more than it has columns.
        if "\t" in line.text and counts[0] - len(header.text.split("\t")) not in (0, 1):
            raise line.garbled("this row has another number of fields than the header has columns")
    if header.text.endswith(_COLUMNS[-1]):
        # Memory of devices as NUMA domains: each device has its own, or none has one.
        domains = [line.words[-1] for line in rows]
        numbers = set(filter(str.isdecimal, domains))
        if len(numbers) not in (0, len(rows)) or {*domains} - numbers - {"N/A"}:
            raise rows[0].garbled(f"the column '{_COLUMNS[-1]}' is damaged ({', '.join(domains)})")


def _affinity(line: Line, columns: int) -> list[str]:
    """Return CPU and NUMA affinity; tabs show which one is empty, else both are required."""
    fields = line.text.split("\t") if "\t" in line.text else line.words
    return [*map(str.strip, fields[columns + 1 :]), "", ""][:2]


def _numa(values: Sequence[str], line: Line) -> int | None:
    text = values[1]
    if text in ("", "N/A"):
        return None
    if found := re.fullmatch(r"(\d+)-(\d+)", text):
        cores = _cpus(values, line)
        if cores is not None and int(found[2]) - int(found[1]) >= len(parse_cores(cores)):
            raise line.garbled(f"the domains {text} outnumber the cores {cores}")
        return None
    if not text.isdecimal():
        raise line.garbled(f"'{text}' is not a NUMA affinity")
    return int(text)


def _cpus(values: Sequence[str], line: Line) -> str | None:
    text = values[0]
    if text in ("", "N/A"):
        return None
    try:
        parse_cores(text)
    except ValueError as error:
        raise line.garbled(f"the CPU affinity is damaged: {error}") from None
    return text


def _queried(lines: Sequence[Line]) -> Reported:
    addresses: list[str] = []
    if lines and lines[0].text.replace(" ", "") == "index,pci.bus_id":
        lines = lines[1:]  # --format=csv writes a header, csv,noheader does not
    for position, line in enumerate(lines):
        match = _QUERIED.fullmatch(line.text)
        if match is None or int(match[1]) != position:
            raise line.garbled(f"the PCI address of GPU {position} is expected here")
        addresses.append(match[2][4:].lower())
    return Reported(
        origin=lines[0].origin,
        vendor="nvidia",
        count=len(addresses),
        pci=tuple(addresses),
        may_be_cut=True,
    )
