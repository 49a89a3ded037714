"""Where a node's results come from: when, from which devices, and with which versions."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge.verdict import model
from fabricheck.node import products
from fabricheck.results import state
from fabricheck.results.model import ResultDocument
from fabricheck.results.series import has_runtime

if TYPE_CHECKING:
    from fabricheck.judge.verdict.attempts import Attempt
    from fabricheck.judge.verdict.subjects import NodeResults
    from fabricheck.results.reading import Source


def times(results: NodeResults) -> tuple[datetime | None, float | None]:
    """Return when the first program began, and the total seconds of all sessions on the node."""
    by_source = [[*_times_of(attempts)] for _, attempts in results.by_source]
    spans = [times for times in by_source if times]
    if not spans:
        return None, None
    start = min(map(min, spans)).astimezone(UTC)
    return start, sum((max(times) - min(times)).total_seconds() for times in spans)


def _times_of(attempts: Iterable[Attempt]) -> Iterator[datetime]:
    for attempt in attempts:
        if attempt.document is None:
            continue
        for text in (attempt.document["started"], attempt.document["finished"]):
            if text is not None:
                yield datetime.fromisoformat(text)


def devices(documents: Iterable[ResultDocument]) -> list[model.Device]:
    """Return every device that a document names, once each.

    Node tools know less of a device than its runtime does, so they add no devices.
    """
    device_of: dict[tuple[int, str | None, str | None], model.Device] = {}
    named = (device for document in documents for device in document["devices"])
    for device in sorted(named, key=lambda device: device["unique_id"] is None):
        index, address, unique_id = device["index"], device["pci_address"], device["unique_id"]
        known = {(index, address) for index, address, _ in device_of}
        if unique_id is not None or (index, address) not in known:
            device_of.setdefault(
                (index, address, unique_id),
                model.Device(
                    index=index,
                    name=products.label(device),
                    arch=device["arch"],
                    pci_address=address,
                    unique_id=unique_id,
                ),
            )
    return sorted(device_of.values(), key=lambda device: device.index)


def versions(documents: Sequence[ResultDocument], sources: Sequence[Source]) -> model.Versions:
    """Return the versions behind the results, from the programs that ran on the devices."""
    ours = [document for document in documents if document["program"]["commit"] != UNKNOWN]
    versions = [document["versions"] for document in documents if has_runtime(document)]
    states = [
        device_state for document in documents for device_state in state.device_states(document)
    ]
    firmware = grouped(
        (name, version)
        for device_state in states
        for name, version in (device_state["firmware"] or {}).items()
    )
    locks = [_locks_in(source.session.outputs) for source in sources if source.reported]
    return model.Versions(
        fabricheck=_each(document["program"]["version"] for document in ours or documents),
        commits=_each(document["program"]["commit"] for document in ours),
        kernel=_each(document["host"]["kernel"] for document in documents),
        runtime=_each(document_versions.get("runtime") for document_versions in versions),
        rocm=_each(document_versions.get("rocm") for document_versions in versions),
        driver=_each(document_versions.get("driver") for document_versions in versions),
        vbios=_each(device_state["vbios"] for device_state in states),
        firmware={name: _each(versions) for name, versions in sorted(firmware.items())},
        mpi=_each(document_versions.get("mpi") for document_versions in versions),
        rccl=_each(document_versions.get("rccl") for document_versions in versions),
        reframe=_each(source.session.reframe for source in sources if source.reported),
        spack_locks={name: digest for of_source in locks for name, digest in of_source.items()},
    )


def _each(values: Iterable[object]) -> list[str]:
    texts = {str(value) for value in values if value}
    return sorted(texts - {"none", UNKNOWN} or texts)


@functools.cache
def _locks_in(outputs: tuple[Path, ...]) -> dict[str, str]:
    # Cached, because hundreds of nodes of a session share the same locks.
    from fabricheck.site.software import FOLDER  # a look has no session

    paths = [
        path
        for folder in reversed(outputs)  # of equal names the first folder's counts
        for path in sorted((folder / FOLDER).glob("*.spack.lock"))
    ]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
