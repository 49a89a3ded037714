"""The topology in files that somebody sends: texts of vendors' tools, or of `inventory`.

Those of rocm-smi (--shownodesbw, --showtopo, --showtoponuma, --showbus) and amd-smi topology have
sections below titles; sections that tell of other things are passed over. Those of nvidia-smi are
the matrix of ``topo -m``, and the addresses of ``--query-gpu``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, lines_of, refuse_odd_numbers
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import read_text
from fabricheck.node.cores import parse_cores
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.reported import Matrix, Reported, Table, merge


def parse_text(text: str, origin: str, *, part: bool = False) -> Reported:
    """Parse the output of rocm-smi, amd-smi or nvidia-smi, or a description by `inventory`.

    :param text: the output of one call; for rocm-smi also of several.
    :param origin: the file or command, for errors.
    :param part: whether it will be merged with other reports; a list of devices without a confirmed
        end is then accepted.
    :raises GarbledOutput: when no tool prints such a text, or it is cut off or damaged.
    """
    if inventory.SCHEMA in text:
        return inventory.reported(inventory.parse(text, Path(origin)), origin)
    lines = lines_of(text, origin)
    refuse_odd_numbers(lines)
    # The header of rocm-smi's tables equals that of nvidia-smi without its additions.
    if any(
        section.by_amd_smi or section.title in (*_TELLS, *_NOT_READ) for section in _sections(lines)
    ):
        if ENDS_HEADER in text:
            raise GarbledOutput(origin, None, "it contains topology tables of several tools")
        report = parse_amd(lines, origin)
    elif any(_is_header(line) or _QUERIED.fullmatch(line.text) for line in lines):
        report = parse_nvidia(lines, origin)
    else:
        raise GarbledOutput(
            origin, None, "it contains no topology table of rocm-smi, amd-smi or nvidia-smi"
        )
    return report if part else _usable(report)


def parse_files(paths: Sequence[Path]) -> Reported:
    """Parse the outputs in files, all of the same node, and merge them.

    :raises NotFoundError: when a file does not exist.
    :raises InvalidInputError: when a file is unusable, or two contradict each other.
    """
    return _usable(merge([parse_text(read_text(path), str(path), part=True) for path in paths]))


def _usable(report: Reported) -> Reported:
    """Refuse a list of devices with an unconfirmed end: if cut off, it describes a smaller node."""
    if report.may_be_cut:
        reason = "the list of devices may be cut off: add a table of links of the same node"
        raise GarbledOutput(report.origin, None, reason)
    return report


#: A title of rocm-smi, and one of amd-smi.
_TITLE = re.compile(r"=+\s*(?P<rocm>[^=]*?)\s*=+|(?P<amd>[A-Z][A-Z -]* TABLE):")

#: What a section tells, by its title: those of rocm-smi, then those of amd-smi.
_TELLS = {
    "Bandwidth": "bandwidth",
    "Link Type between two GPUs": "types",
    "Numa Nodes": "numa",
    "PCI Bus ID": "pci",
    "NUMA BW TABLE": "bandwidth",
    "LINK TYPE TABLE": "types",
}

#: Tables of rocm-smi that tell nothing more.
_NOT_READ = ("Weight between two GPUs", "Hops between two GPUs")

_CLOSING = "End of ROCm SMI Log"
_UNIT = "Format: min-max; Units: mps"
_UNSUPPORTED = "Non-xGMI links detected"

_ADDRESS = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
#: The beginning of a line about a device.
_ROW = re.compile(rf"\s*(?:GPU[\d[]|{_ADDRESS})")
_RANGE = re.compile(r"(\d+)-(\d+)")
_LINK_TYPES = ("0", "SELF", "XGMI", "PCIE", "UNKNOWN", "XXXX", "N/A")
_OF_DEVICE = re.compile(r"GPU(?:\[(\d+)\]| (\d+))\s*: (.*)")

#: The lines of each device below a title: the name of a value, its form, and what that is.
_FIELDS = {
    "numa": [
        (f"(Topology) Numa {what}", re.compile(r"-?\d+"), "the number of a NUMA domain")
        for what in ("Node", "Affinity")
    ],
    "pci": [("PCI Bus", re.compile(_ADDRESS), "a PCI address")],
}

#: The kernel's -1, printed by a tool that reads it as an unsigned number.
_NO_DOMAIN = 0xFFFFFFFF


@dataclass
class _Section:
    title: str
    by_amd_smi: bool
    line: Line
    body: list[Line] = field(default_factory=list)


def parse_amd(lines: Sequence[Line], origin: str) -> Reported:
    """Parse the output of one call of ``amd-smi topology``, or of calls of rocm-smi in sequence.

    :param origin: the file or command, for errors.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    """
    sections = _sections(lines)
    closed = any(section.title == _CLOSING for section in sections)
    by_title: dict[str, _Section] = {}
    for section in sections:
        if section.by_amd_smi or section.title in (*_TELLS, *_NOT_READ):
            if section.title in by_title:
                raise section.line.garbled(f"the table '{section.title}' occurs twice")
            by_title[section.title] = section
            continue
        for line in section.body:
            if _ROW.match(line.text):
                raise line.garbled(f"a table of GPUs is under the unknown title '{section.title}'")
    by_amd_smi = {section.by_amd_smi for section in by_title.values()}
    if len(by_amd_smi) > 1:
        raise GarbledOutput(origin, None, "it contains topology tables of several tools")
    of_amd_smi = True in by_amd_smi
    known = {_TELLS[title]: section for title, section in by_title.items() if title in _TELLS}
    tables = {what: _table(section) for what, section in known.items() if what not in _FIELDS}
    for title in filter(by_title.__contains__, _NOT_READ):
        _table(by_title[title])  # a table whose title is damaged would be a part of it
    _require_all(tables, by_title, closed, lines[-1])
    types, links, peak = tables.get("types"), None, None
    if types is not None:
        _require_types(types, "SELF" if of_amd_smi else "0")
    if "bandwidth" in tables:
        links, peak = _links(tables["bandwidth"], known["bandwidth"], types)
    values = {what: _values(known[what], what) for what in _FIELDS if what in known}
    counts = {known[what].title: len(table.labels) for what, table in tables.items()}
    counts |= {known[what].title: len(devices) for what, devices in values.items()}
    first, count = next(iter(counts.items()))
    for title, other in counts.items():
        if other != count:
            raise by_title[title].line.garbled(
                f"'{title}' has {other} devices, but '{first}' has {count}"
            )
    pci = tuple(address.lower() for (address,) in values.get("pci", ()))
    if of_amd_smi:
        pci = tuple(label.lower() for label in tables["types"].labels)
    if len(set(pci)) != len(pci):
        raise known["pci"].line.garbled("two devices have the same PCI address")
    return Reported(
        origin=origin,
        vendor="amd",
        count=count,
        links=links,
        link_peak_gbs=peak,
        link_types=None if types is None else types.cells,
        # A negative number is the kernel's value for no affinity.
        numa=tuple(int(node) if 0 <= int(node) < _NO_DOMAIN else None for node, _ in values["numa"])
        if "numa" in values
        else None,
        pci=pci or None,
        may_be_cut=not closed and not tables,
    )


def _sections(lines: Sequence[Line]) -> list[_Section]:
    sections: list[_Section] = []
    for line in lines:
        match = _TITLE.fullmatch(line.text.strip())
        if match is not None:
            sections.append(_Section(match["amd"] or match["rocm"], match["amd"] is not None, line))
        elif sections:
            sections[-1].body.append(line)
        else:
            sections.append(_Section("", False, line, [line]))
    return sections


def _require_all(
    tables: Mapping[str, Table], by_title: Mapping[str, _Section], closed: bool, last: Line
) -> None:
    """Refuse a text that lacks a table, or the line after the last one."""
    if any(section.by_amd_smi for section in by_title.values()):
        for title in ("LINK TYPE TABLE", "NUMA BW TABLE"):
            if title not in by_title:
                raise last.garbled(
                    f"the text ends without the table '{title}', so it may be cut off"
                )
        if tables["types"].labels != tables["bandwidth"].labels:
            raise tables["types"].rows[0].garbled("its two tables name different devices")
    elif (
        not closed
        and "bandwidth" not in tables
        and (tables or not by_title.keys().isdisjoint(_NOT_READ))
    ):
        # --showtopo prints several sections: such a text may end between two of them.
        raise last.garbled(
            f"the text ends without rocm-smi's line '{_CLOSING}', so it may be cut off"
        )


def _table(section: _Section) -> Table:
    """Parse a table: a row of labels, then a row for each label, with a cell for each."""
    name, lines = section.title, section.body
    if not lines:
        raise section.line.garbled(f"the text ends before the table '{name}'")
    header, labels = lines[0], lines[0].words
    for column, text in enumerate(labels):
        good = re.fullmatch(_ADDRESS, text) if section.by_amd_smi else text == f"GPU{column}"
        if not good:
            raise header.garbled(
                f"'{text}' is not a label of column {column} of the table '{name}'"
            )
    if len(set(labels)) != len(labels):
        raise header.garbled(f"the table '{name}' names a device twice")
    rows = _rows(lines[1:], labels, header, f"the table '{name}'")
    for label, line in zip(labels, rows, strict=True):
        if len(line.words) > len(labels) + 1:
            many = len(line.words) - 1
            raise line.garbled(f"{label} has {many} cells in the table '{name}', not {len(labels)}")
    for line in lines[len(labels) + 1 :]:
        if _ROW.match(line.text):
            raise line.garbled(
                f"a row follows the last one of the table '{name}', or a table has no title"
            )
    return Table(tuple(labels), tuple(tuple(row.words[1:]) for row in rows), tuple(rows))


def _require_types(table: Table, diagonal: str) -> None:
    for a, row in enumerate(table.cells):
        for b, text in enumerate(row):
            if text not in _LINK_TYPES:
                raise table.rows[a].garbled(f"{table.place(a, b)} is not a link type (XGMI, PCIE)")
    table.require_symmetry(diagonal)


def _links(
    table: Table, section: _Section, types: Table | None
) -> tuple[Matrix[int] | None, float | None]:
    """Return the links of each pair and the peak of one, in GB/s; None where the driver tells none.

    A cell such as ``50000-200000`` is the bandwidth of one link and that of all, in MB/s, ``0-0``
    no direct link, ``N/A`` a pair without such links. A driver that has no such file, or an empty
    one, gives 0 or 0-0 for all pairs, although XGMI connects them.
    """
    n = range(len(table.labels))
    if {table.cells[a][b] for a, b in permutations(n, 2)} in ({"0"}, {"0-0"}, {"0", "0-0"}):
        return None, None
    unsupported = section.by_amd_smi or any(
        line.text.startswith(_UNSUPPORTED) for line in section.body
    )
    links = [[0 for _ in n] for _ in n]
    peaks: set[int] = set()
    for a in n:
        for b in n:
            text = table.cells[a][b]
            match = _RANGE.fullmatch(text)
            if text == "N/A" and (a == b or unsupported):
                continue
            if a == b or text == "N/A":
                raise table.rows[a].garbled(f"{table.place(a, b)} is out of place")
            if match is None:
                raise table.rows[a].garbled(
                    f"{table.place(a, b)} is not a bandwidth range such as 50000-200000"
                )
            low, high = int(match[1]), int(match[2])
            if (low == 0) != (high == 0) or (low and high % low):
                raise table.rows[a].garbled(
                    f"{table.place(a, b)} is not the bandwidth of one link and a multiple of it"
                )
            if low:
                links[a][b] = high // low
                peaks.add(low)
                if types is not None and types.cells[a][b] != "XGMI":
                    raise table.rows[a].garbled(
                        f"{table.labels[a]} to {table.labels[b]} has XGMI bandwidth but type "
                        f"{types.cells[a][b]}"
                    )
    table.require_symmetry("N/A")
    if len(peaks) > 1:
        listed = enumerated(str(peak) for peak in sorted(peaks))
        raise table.rows[0].garbled(f"one link has {listed} MB/s")
    if peaks and not section.by_amd_smi:
        _require_unit(section.body)
    if not peaks and types is not None and any("XGMI" in row for row in types.cells):
        return None, None
    return tuple(map(tuple, links)), (peaks.pop() / 1000 if peaks else None)


def _require_unit(body: Sequence[Line]) -> None:
    units = [line for line in body if line.text.startswith("Format:")]
    if not units:
        raise body[-1].garbled("the table ends without the unit of the bandwidths (Units: mps)")
    for line in units:
        if line.text != _UNIT:
            raise line.garbled("the unit of the bandwidths is not mps")


def _values(section: _Section, what: str) -> list[list[str]]:
    """Parse lines such as ``GPU[0] : (Topology) Numa Node: 3``: the same values of each device."""
    fields = _FIELDS[what]
    values: list[list[str]] = []
    for position, line in enumerate(section.body):
        device, number = divmod(position, len(fields))
        name, form, meaning = fields[number]
        match = _OF_DEVICE.fullmatch(line.text.strip())
        if match is None or int(match[1] or match[2]) != device:
            raise line.garbled(f"a line about GPU[{device}] is expected here")
        before, _, text = match[3].partition(f"{name}: ")
        if before or not match[3].startswith(name):
            raise line.garbled(f"'{name}' of GPU[{device}] is expected here")
        if form.fullmatch(text.strip()) is None:
            raise line.garbled(f"'{name}' of GPU[{device}] is not {meaning}")
        values.append([text.strip()]) if number == 0 else values[-1].append(text.strip())
    if not values or len(values[-1]) != len(fields):
        last = section.body[-1] if section.body else section.line
        raise last.garbled(f"the section '{section.title}' ends in the middle")
    return values


_GPU = re.compile(r"GPU\d+")
_NIC = re.compile(r"NIC\d+|mlx\d_\d+|hfi\d_\d+")
_CELL = re.compile(r"NV(\d+)|SYS|NODE|PHB|PXB|PIX")
_QUERIED = re.compile(r"(\d+), ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")

#: The columns after the devices in the header.
ENDS_HEADER = "CPU Affinity"
_COLUMNS = (ENDS_HEADER, "NUMA Affinity", "GPU NUMA ID")

#: The fields between tabs after the devices of a row, by the number of these columns: CPU affinity,
#: NUMA affinity and GPU NUMA ID, each of which may be empty, and fields that always are. nvidia-smi
#: doubles the tab before a GPU NUMA ID, and where the NUMA affinity is N/A the one before it; some
#: programs join doubled tabs.
_LAYOUTS = {
    0: ("", " "),
    1: ("c", "c "),
    2: ("cn", "cn ", "c n"),
    3: ("cn g", "c n g", "cng"),
}


def parse_nvidia(lines: Sequence[Line], origin: str) -> Reported:
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
    rows = _rows(lines[start + 1 :], names, header, "the matrix")
    for name, line in zip(names, rows, strict=True):
        for peer, cell in zip(names, line.words[1:], strict=False):
            if (cell == "X") != (peer == name) or (cell != "X" and not _CELL.fullmatch(cell)):
                raise line.garbled(f"'{cell}' ({name} to {peer}) is not a kind of connection")
    end = lines[start + 1 + len(names) :]
    if other := next(filter(_is_header, end), None):
        raise other.garbled("the header of the matrix occurs twice")
    if not any(line.text.strip() == "Legend:" for line in end):
        raise lines[-1].garbled("the text ends without the legend, so it may be cut off")
    count = len(gpus)
    of_devices = rows[:count]
    types = tuple(tuple(line.words[1 : count + 1]) for line in of_devices)
    Table(tuple(gpus), types, tuple(of_devices)).require_symmetry("X")
    columns = sum(column in trailing for column in _COLUMNS)
    near = [_nearness(line, len(names), columns) for line in of_devices]
    _require_own_memory([each.memory for each in near], of_devices[0])
    return Reported(
        origin=origin,
        vendor="nvidia",
        count=count,
        links=tuple(
            tuple(int(cell[2:]) if cell.startswith("NV") else 0 for cell in row) for row in types
        ),
        link_types=types,
        numa=tuple(_numa(*each) for each in zip(near, of_devices, strict=True))
        if columns > 1
        else None,
        cpus=tuple(_cpus(*each) for each in zip(near, of_devices, strict=True))
        if columns > 0
        else None,
    )


def _is_header(line: Line) -> bool:
    return line.words[0] == "GPU0" and not any(word in ("X", "SYS") for word in line.words[1:])


def _rows(lines: Sequence[Line], labels: Sequence[str], header: Line, table: str) -> Sequence[Line]:
    """Return the rows of a table: one for each label, with at least a cell for each."""
    for label, line in zip(labels, lines, strict=False):
        first, *cells = line.words
        if first != label:
            raise line.garbled(f"'{first}' is in the place of {label} in {table}")
        if len(cells) < len(labels):
            raise line.garbled(f"{label} has {len(cells)} cells in {table}, not {len(labels)}")
    if len(lines) < len(labels):
        last = [header, *lines][-1]
        raise last.garbled(f"the text ends here, {table} lacks the row of {labels[len(lines)]}")
    return lines[: len(labels)]


@dataclass(frozen=True)
class _Nearness:
    """The fields after the devices of a row, as printed: empty where the row has none.

    cores: CPU affinity. domains: NUMA affinity. memory: the NUMA domain of the device's memory.
    """

    cores: str = ""
    domains: str = ""
    memory: str = ""


def _nearness(line: Line, names: int, columns: int) -> _Nearness:
    """Return the fields after the devices of a row.

    Only tabs show which of them is empty: without tabs, a row with fewer fields tells nothing.

    :param names: the number of columns of devices.
    :param columns: the number of columns after them.
    """
    if "\t" not in line.text:
        fields = line.words[names + 1 :]
        if len(fields) > columns:
            raise line.garbled("this row has more fields than the header has columns")
        return _Nearness(*fields) if len(fields) == columns else _Nearness()
    entries = [field.strip() for field in line.text.split("\t")]
    if entries[: names + 1] != line.words[: names + 1]:
        raise line.garbled("two columns of devices have no tab between them")
    fields = entries[names + 1 :]
    if columns < len(_COLUMNS):
        # Empty cells at the end of a line are gone with the tabs before them.
        fields += [""] * (columns - len(fields))
    for layout in _LAYOUTS[columns]:
        if _fits(fields, layout):
            by_letter = dict(zip(layout, fields, strict=True))
            return _Nearness(*(by_letter.get(letter, "") for letter in "cng"))
    raise line.garbled("this row has another number of fields than the header has columns")


def _fits(fields: Sequence[str], layout: str) -> bool:
    if len(fields) != len(layout):
        return False
    return not any(field and letter == " " for field, letter in zip(fields, layout, strict=True))


def _require_own_memory(domains: Sequence[str], row: Line) -> None:
    """Refuse memory of devices as NUMA domains that not each device has of its own, or none."""
    numbers = set(filter(str.isdecimal, domains))
    if len(numbers) not in (0, len(domains)) or {*domains} - numbers - {"N/A", ""}:
        raise row.garbled(f"the column '{_COLUMNS[-1]}' is damaged ({listed(domains)})")


def _numa(near: _Nearness, line: Line) -> int | None:
    """Return the NUMA domain near a device; None where it is unknown or one of several.

    A device whose memory is NUMA domains has them in a list behind that of its cores (0,2-17).
    """
    text = near.domains
    if text in ("", "N/A"):
        return None
    try:
        domains = parse_cores(text)
    except ValueError:
        raise line.garbled(f"'{text}' is not a NUMA affinity") from None
    first = text.split(",")[0]
    if first.isdecimal():
        return int(first)
    cores = _cpus(near, line)
    if cores is not None and len(domains) > len(parse_cores(cores)):
        raise line.garbled(f"the domains {text} outnumber the cores {cores}")
    return None


def _cpus(near: _Nearness, line: Line) -> str | None:
    text = near.cores
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
