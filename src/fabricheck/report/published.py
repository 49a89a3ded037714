"""Published values beside those of a session: each with its place, and of such nodes only."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.core.errors import FabricheckError
from fabricheck.node import NodeModel
from fabricheck.references.published import Record, folder, of_folder


def beside(node: NodeModel | None, *patterns: str) -> Iterator[Record]:
    """Yield the records that fit a pattern and are of a machine with such nodes.

    Nothing where the node model is none, names no machines, or the data set cannot be read: what
    the page shows of it is an addition.

    :param patterns: ids of records, with ``*`` and ``?`` as of files.
    """
    if node is None:
        return
    try:
        data = of_folder(folder())
    except FabricheckError:
        return
    for record in data.matching(*patterns):
        if record.system in node.systems and record.comparable:
            yield record
