"""Parser of rocm-smi's --shownodesbw, --showtopo, --showtoponuma and --showbus.

The texts have sections, each below a title between equals signs. Sections about other subjects are
skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fabricheck.core.lines import Line, lines_of
from fabricheck.tools.topology.reported import Matrix, Reported
from fabricheck.tools.topology.tables import Table, links_of, read_table

_TITLE = re.compile(r"=+\s*([^=]*?)\s*=+")
_CLOSING = "End of ROCm SMI Log"
_BANDWIDTH = "Bandwidth"
_TYPES = "Link Type between two GPUs"
_NUMBERS = ("Weight between two GPUs", "Hops between two GPUs")
_NUMA = "Numa Nodes"
_BUS = "PCI Bus ID"
_OF_DEVICE = re.compile(r"GPU(?:\[(\d+)\]| (\d+))\s*: (.*)")
_UNSUPPORTED = "Non-xGMI links detected"

#: The kernel's -1, printed by a tool that reads it as an unsigned number.
_NO_DOMAIN = 0xFFFFFFFF


@dataclass
class _Section:
    title: str
    line: Line
    body: list[Line] = field(default_factory=list)


def recognises(text: str) -> bool:
    """Whether a text has a section that this module parses."""
    titles = {section.title for section in _sections(lines_of(text))}
    return bool(titles & {_BANDWIDTH, _TYPES, _NUMA, _BUS, *_NUMBERS})


def parse(text: str, origin: str) -> Reported:
    """Parse the output of rocm-smi.

    :param text: the output of one call, or of several in sequence.
    :param origin: the file or command, for errors.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    """
    sections = _sections(lines_of(text, origin))
    closed = any(section.title == _CLOSING for section in sections)
    found: dict[str, _Section] = {}
    for section in sections:
        if section.title in (_BANDWIDTH, _TYPES, _NUMA, _BUS, *_NUMBERS):
            if section.title in found:
                raise section.line.garbled(f"the section '{section.title}' occurs twice")
            found[section.title] = section
        else:
            _no_table(section)
    tables = {
        title: _table(found[title]) for title in (_BANDWIDTH, _TYPES, *_NUMBERS) if title in found
    }
    if not closed and tables and _BANDWIDTH not in tables:
        # --showtopo prints several sections: such a text may end between two of them.
        last = lines_of(text, origin)[-1]
        raise last.garbled(
            f"the text ends without rocm-smi's line '{_CLOSING}', so it may be cut off"
        )
    links, peak = None, None
    if _BANDWIDTH in tables:
        body = found[_BANDWIDTH].body
        unsupported = any(line.text.startswith(_UNSUPPORTED) for line in body)
        if unsupported or not _tells_nothing(tables[_BANDWIDTH]):
            links, peak = links_of(tables[_BANDWIDTH], unsupported=unsupported)
        _check_unit(body, peak is not None)
    for title in _NUMBERS:
        if title in tables:
            numbers = tables[title].read(_number)
            tables[title].symmetric(numbers, zero=0)
    numa = _numa(found[_NUMA]) if _NUMA in found else None
    pci = _pci(found[_BUS]) if _BUS in found else None
    counts = {title: len(table.labels) for title, table in tables.items()}
    if numa is not None:
        counts[_NUMA] = len(numa)
    if pci is not None:
        counts[_BUS] = len(pci)
    count = _one_count(counts, found)
    return Reported(
        origin=origin,
        vendor="amd",
        count=count,
        links=links,
        link_peak_gbs=peak,
        link_types=_types(tables[_TYPES]) if _TYPES in tables else None,
        numa=numa,
        pci=pci,
        may_be_cut=not closed and not tables,
    )


def _sections(lines: Sequence[Line]) -> list[_Section]:
    sections: list[_Section] = []
    for line in lines:
        match = _TITLE.fullmatch(line.text.strip())
        if match is not None:
            sections.append(_Section(match[1], line))
        elif sections:
            sections[-1].body.append(line)
        else:
            sections.append(_Section("", line, [line]))
    return sections


def _no_table(section: _Section) -> None:
    for line in section.body:
        if re.match(r"\s*GPU(\d|\[)", line.text):
            raise line.garbled(f"a table of GPUs is under the unknown title '{section.title}'")


def _table(section: _Section) -> Table:
    table = read_table(section.body, section.title, section.line, lambda i, text: text == f"GPU{i}")
    for line in section.body[len(table.labels) + 1 :]:
        if line.text.lstrip().startswith("GPU"):
            raise line.garbled(f"the table '{section.title}' has more rows than columns")
    return table


def _check_unit(body: Sequence[Line], needed: bool) -> None:
    told = [line for line in body if line.text.startswith("Format:")]
    for line in told:
        if line.text != "Format: min-max; Units: mps":
            raise line.garbled("the unit of the bandwidths is not mps")
    if needed and not told:
        raise body[-1].garbled("the table ends without the unit of the bandwidths (Units: mps)")


def _tells_nothing(table: Table) -> bool:
    """Whether no pair has a bandwidth, although all are connected by XGMI.

    rocm-smi prints 0 where the driver has no such file, and 0-0 where it is empty.
    """
    pairs = [text for a, row in enumerate(table.cells) for b, text in enumerate(row) if a != b]
    return bool(pairs) and set(pairs) <= {"0", "0-0"}


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a number")
    return int(text)


def _types(table: Table) -> Matrix[str]:
    def link_type(text: str) -> str:
        if text not in ("0", "XGMI", "PCIE", "XXXX"):
            raise ValueError("a link type (XGMI, PCIE)")
        return text

    types = table.read(link_type)
    table.symmetric(types, zero="0")
    return types


def _per_device(
    section: _Section, fields: Sequence[tuple[str, Callable[[str], str | int]]]
) -> list[list[str | int]]:
    """Parse lines such as ``GPU[0] : (Topology) Numa Node: 3``: the same fields of each device."""
    values: list[list[str | int]] = []
    for position, line in enumerate(section.body):
        device, number = divmod(position, len(fields))
        name, read = fields[number]
        match = _OF_DEVICE.fullmatch(line.text.strip())
        if match is None or int(match[1] or match[2]) != device:
            raise line.garbled(f"a line about GPU[{device}] is expected here")
        if not match[3].startswith(f"{name}: "):
            raise line.garbled(f"'{name}' of GPU[{device}] is expected here")
        try:
            value = read(match[3].removeprefix(f"{name}: ").strip())
        except ValueError as error:
            raise line.garbled(f"'{name}' of GPU[{device}] is not {error}") from None
        values.append([value]) if number == 0 else values[-1].append(value)
    if not values or len(values[-1]) != len(fields):
        last = section.body[-1] if section.body else section.line
        raise last.garbled(f"the section '{section.title}' ends in the middle")
    return values


def _domain(text: str) -> int:
    if re.fullmatch(r"-?\d+", text) is None:
        raise ValueError("the number of a NUMA domain")
    return int(text)


def _numa(section: _Section) -> tuple[int | None, ...]:
    fields = (("(Topology) Numa Node", _domain), ("(Topology) Numa Affinity", _domain))
    values = _per_device(section, fields)
    # A negative number is the kernel's value for no affinity.
    return tuple(
        node if isinstance(node, int) and 0 <= node < _NO_DOMAIN else None for node, _ in values
    )


def _address(text: str) -> str:
    if re.fullmatch(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]", text) is None:
        raise ValueError("a PCI address")
    return text.lower()


def _pci(section: _Section) -> tuple[str, ...]:
    addresses = tuple(str(value) for (value,) in _per_device(section, (("PCI Bus", _address),)))
    if len(set(addresses)) != len(addresses):
        raise section.line.garbled("two devices have the same PCI address")
    return addresses


def _one_count(counts: dict[str, int], found: dict[str, _Section]) -> int:
    first, count = next(iter(counts.items()))
    for title, other in counts.items():
        if other != count:
            raise found[title].line.garbled(
                f"'{title}' has {other} devices, but '{first}' has {count}"
            )
    return count
