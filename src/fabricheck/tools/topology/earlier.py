"""What earlier sessions found on a host: devices that it had and has no longer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import count
from fabricheck.results.document import load
from fabricheck.results.model import Device, ResultDocument, node_name
from fabricheck.results.other_devices import granting

#: Below the folder of results: documents of passed checks, and of others, by session.
_KEPT = ("output", "stage")

#: System, partition, environment and check below the folder of a session.
_DOCUMENTS = "*/*/*/node_topology*/result.json"


def newest_whole(results: Path, content: Mapping[str, Any]) -> tuple[str, ResultDocument] | None:
    """Return the newest earlier session in which this host had lost no device, and its document.

    A session that found a loss is passed over, so that the loss stays a finding until it is mended.

    :param results: the folder of results.
    :param content: the document of this run.
    """
    return next(
        (
            (session, document)
            for session, document in _newest_first(results)
            if _is_earlier(document, content)
            and not any(one["lost"] for one in document.get("differences") or ())
        ),
        None,
    )


def missing_devices(
    content: Mapping[str, Any], results: Path, hidden: Sequence[str], origin: str
) -> list[str]:
    """Return the sentence on devices that an earlier session of this host had; none without.

    A job that was granted fewer devices misses none.

    :param content: the document of this run.
    :param results: the folder of results.
    :param hidden: the addresses of devices that a setting hides.
    :param origin: what tells the devices of this run.
    """
    devices: Sequence[Device] = content["devices"]
    found = newest_whole(results, content)
    if found is None or granting(content["environment"], len(devices)):
        return []
    session, earlier = found
    before, now = _cards(earlier["devices"]), _cards(devices)
    absent = [address for card, address in before.items() if card not in now]
    if len(now) >= len(before) or set(absent) <= {*hidden}:
        return []
    gone = ", ".join(absent)
    return [
        f"The node has {count(len(now), 'device')} in {origin}, and had {len(before)} in session "
        f"{session}: without {gone}."
    ]


def _cards(devices: Sequence[Device]) -> dict[str, str]:
    """Return the address of each card, whose partitions differ in the function at most."""
    named = [device["pci_address"] or f"device {device['index']}" for device in devices]
    return {name.partition(".")[0]: name for name in reversed(named)}


def _newest_first(results: Path) -> Iterator[tuple[str, ResultDocument]]:
    """Yield each session and its documents, the newest first: names begin with their time."""
    names = {path.name for kept in _KEPT for path in (results / kept).glob("*/")}
    for session in sorted(names, reverse=True):
        for kept in _KEPT:
            for path in sorted((results / kept / session).glob(_DOCUMENTS)):
                with contextlib.suppress(FabricheckError):
                    yield session, load(path)


def _is_earlier(document: ResultDocument, content: Mapping[str, Any]) -> bool:
    return (
        document["program"]["name"] == "topology"
        and node_name(document["host"]) == node_name(content["host"])
        and document["clock"] == content["clock"]
        and document["options"].get("devices") == content["options"]["devices"]
        and bool(document["devices"])
        and document["started"] < content["started"]
    )
