"""Published values beside those of a session: each with its place, and of such nodes only."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass

from fabricheck.core.errors import FabricheckError
from fabricheck.node import NodeModel
from fabricheck.references.published import UNITS, folder, of_folder

#: The unit of records that are one value over another: no ground for a reference.
RATIO = ("ratio",)


@dataclass(frozen=True)
class Value:
    """A published value, in ``unit``: GB/s (1e9 bytes per second), us, percent or ratio.

    kind: published, or secondary where its document cites another one. place: document and place
    in it. system: the machine of the value. size: of the array or message in bytes; None where the
    document does not state it.
    """

    record: str
    value: float
    unit: str
    kind: str
    system: str
    place: str
    size: int | None = None


def beside(node: NodeModel | None, *patterns: str) -> Iterator[Value]:
    """Yield the records that fit a pattern and are of a machine with such nodes.

    Nothing where the node model is none, names no machines, or the data set can not be read: what
    the page shows of it is an addition.

    :param patterns: ids of records, with ``*`` and ``?`` as of files.
    """
    if node is None:
        return
    try:
        data = of_folder(folder())
    except FabricheckError:
        return
    for name, record in data.records.items():
        fits = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        stated = record.get("unit_si", record.get("unit"))
        if not fits or record["system"] not in node.systems or stated not in (*UNITS, *RATIO):
            continue
        value, unit = (record["value"], "ratio") if stated in RATIO else data.value(name)
        source = record["source"]
        kind = "secondary" if record.get("secondary") else "published"
        place = f"{source['title']}, {source.get('where', '')}".rstrip(", ")
        size = record["conditions"].get("message_size_bytes")
        yield Value(name, value, unit, kind, record["system"], place, size)
