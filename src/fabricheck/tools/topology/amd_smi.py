"""Reading what ``amd-smi topology`` prints: tables whose rows and columns are PCI addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabricheck.core.errors import GarbledOutput
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
    """Read the output of ``amd-smi topology``.

    :param text: the output of one call, as text (not ``--json`` or ``--csv``).
    :param origin: the file or command, for errors.
    :raises GarbledOutput: when it is cut, damaged or contradicts itself.
    """
    lines = lines_of(text)
    tables = _tables(lines, origin)
    labels = next(iter(tables.values())).labels
    for title, table in tables.items():
        if table.labels != labels:
            reason = f"the table '{title}' names other devices than the first one"
            raise GarbledOutput(origin, table.first.number, reason)
    for title in (_TYPES, _BANDWIDTH):
        if title not in tables:
            reason = f"the text ends without the table '{title}', so it may be cut"
            raise GarbledOutput(origin, lines[-1].number, reason)
    types = tables[_TYPES].read(origin, _link_type)
    tables[_TYPES].symmetric(origin, types, zero="SELF")
    # PCIe pairs have N/A in the bandwidth table; some driver releases print it for all pairs.
    links, peak = links_of(tables[_BANDWIDTH], origin, unsupported=True)
    xgmi = any(cell == "XGMI" for row in types for cell in row)
    silent = xgmi and not any(map(any, links))
    for a, row in enumerate(links):
        for b, count in enumerate(row):
            if count and types[a][b] != "XGMI":
                table = tables[_BANDWIDTH]
                reason = f"{labels[a]} to {labels[b]} has XGMI bandwidth and type {types[a][b]}"
                raise GarbledOutput(origin, table.rows[a].number, reason)
    return Reported(
        origin=origin,
        vendor="amd",
        count=len(labels),
        links=None if silent else links,
        link_peak_gbs=peak,
        link_types=types,
        pci=tuple(label.lower() for label in labels),
    )


def _tables(lines: Sequence[Line], origin: str) -> dict[str, Table]:
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
                reason = "a table of devices stands without its title"
                raise GarbledOutput(origin, line.number, reason)
            continue
        title = match[1]
        if title in tables:
            raise GarbledOutput(origin, line.number, f"the table '{title}' is there twice")
        tables[title] = read_table(
            lines[position:], origin, title, line, lambda _, text: bool(_ADDRESS.fullmatch(text))
        )
        position += len(tables[title].labels) + 1
    return tables


def _link_type(text: str) -> str:
    if text not in _LINK_TYPES:
        raise ValueError("a link type (XGMI, PCIE)")
    return text
