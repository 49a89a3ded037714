"""Parser of ``amd-smi topology``: tables whose rows and columns are PCI addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabricheck.core.lines import Line, lines_of
from fabricheck.tools.topology.reported import Reported
from fabricheck.tools.topology.tables import Table, links_of, read_table

_TITLE = re.compile(r"([A-Z][A-Z -]* TABLE):")
_ADDRESS = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_BANDWIDTH = "NUMA BW TABLE"
_TYPES = "LINK TYPE TABLE"
_LINK_TYPES = ("SELF", "XGMI", "PCIE", "UNKNOWN", "N/A")


def recognises(text: str) -> bool:
    """Whether a text has one of the tables of amd-smi."""
    return any(_TITLE.fullmatch(line.text.strip()) for line in lines_of(text))


def parse(text: str, origin: str) -> Reported:
    """Parse the output of ``amd-smi topology``.

    :param text: the output of one call, as text (not ``--json`` or ``--csv``).
    :param origin: the file or command, for errors.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    """
    lines = lines_of(text, origin)
    tables = _tables(lines)
    labels = next(iter(tables.values())).labels
    for title, table in tables.items():
        if table.labels != labels:
            raise table.first.garbled(f"the table '{title}' names other devices than the first one")
    for title in (_TYPES, _BANDWIDTH):
        if title not in tables:
            raise lines[-1].garbled(
                f"the text ends without the table '{title}', so it may be cut off"
            )
    types = tables[_TYPES].read(_link_type)
    tables[_TYPES].symmetric(types, zero="SELF")
    # PCIe pairs have N/A in the bandwidth table; some driver releases print it for all pairs.
    links, peak = links_of(tables[_BANDWIDTH], unsupported=True)
    xgmi = any(cell == "XGMI" for row in types for cell in row)
    silent = xgmi and not any(map(any, links))
    for a, row in enumerate(links):
        for b, count in enumerate(row):
            if count and types[a][b] != "XGMI":
                table = tables[_BANDWIDTH]
                raise table.rows[a].garbled(
                    f"{labels[a]} to {labels[b]} has XGMI bandwidth but type {types[a][b]}"
                )
    return Reported(
        origin=origin,
        vendor="amd",
        count=len(labels),
        links=None if silent else links,
        link_peak_gbs=peak,
        link_types=types,
        pci=tuple(label.lower() for label in labels),
    )


def _tables(lines: Sequence[Line]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    position = 0
    while position < len(lines):
        line = lines[position]
        match = _TITLE.fullmatch(line.text.strip())
        position += 1
        if match is None:
            if line.words[0].startswith("Legend") or not tables:
                continue
            if _ADDRESS.match(line.words[0]):
                raise line.garbled("a table of devices has no title")
            continue
        title = match[1]
        if title in tables:
            raise line.garbled(f"the table '{title}' occurs twice")
        tables[title] = read_table(
            lines[position:], title, line, lambda _, text: bool(_ADDRESS.fullmatch(text))
        )
        position += len(tables[title].labels) + 1
    return tables


def _link_type(text: str) -> str:
    if text not in _LINK_TYPES:
        raise ValueError("a link type (XGMI, PCIE)")
    return text
