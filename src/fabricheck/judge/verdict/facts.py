"""What a verdict tells of a node besides its word: times, devices, versions."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge.verdict import model
from fabricheck.judge.verdict.grouping import Results
from fabricheck.judge.verdict.sources import Source
from fabricheck.results.model import ResultDocument
from fabricheck.site.software.record import FOLDER


def times(results: Results) -> tuple[datetime | None, float | None]:
    """Return when the first program began, and the seconds of all sessions on the node."""
    spans: dict[int, list[datetime]] = {}
    for number, source in enumerate(results.sources):
        own = {id(case) for case in source.cases}
        times = [
            datetime.fromisoformat(text)
            for one in results.attempts
            if one.document is not None and (
                id(one.case) in own or any(one.entry is loose for loose in source.loose))
            for text in (one.document["started"], one.document["finished"])
            if text is not None
        ]  # fmt: skip
        if times:
            spans[number] = times
    if not spans:
        return None, None
    start = min(min(times) for times in spans.values()).astimezone(UTC)
    return start, sum((max(times) - min(times)).total_seconds() for times in spans.values())


def devices(documents: Iterable[ResultDocument]) -> list[model.Device]:
    """Return every device that a document names, once each.

    What asks the node's tools knows less of a device than its runtime: it adds none.
    """
    every = [
        model.Device(
            index=one["index"],
            name=one["name"],
            arch=one["arch"],
            pci_address=one["pci_address"],
            unique_id=one["unique_id"],
        )
        for document in documents
        for one in document["devices"]
    ]
    found: dict[tuple[int, str | None, str | None], model.Device] = {}
    for one in sorted(every, key=lambda device: device.unique_id is None):
        known = {(index, address) for index, address, _ in found}
        if one.unique_id is not None or (one.index, one.pci_address) not in known:
            found.setdefault((one.index, one.pci_address, one.unique_id), one)
    return sorted(found.values(), key=lambda one: one.index)


def versions(documents: Sequence[ResultDocument], sources: Sequence[Source]) -> model.Versions:
    """Return what the results were made with, as programs that ran on the devices tell it."""
    own = [one for one in documents if one["program"]["commit"] != UNKNOWN]
    told = [one["versions"] for one in documents if one["program"]["name"] != "topology"]
    locks: dict[str, str] = {}
    for source in sources:
        locks |= _locks_in(source.session.outputs if source.session else ())
    return model.Versions(
        fabricheck=_each(one["program"]["version"] for one in own or documents),
        commits=_each(one["program"]["commit"] for one in own),
        runtime=_each(one.get("runtime") for one in told),
        driver=_each(one.get("driver") for one in told),
        mpi=_each(one.get("mpi") for one in told),
        rccl=_each(one.get("rccl") for one in told),
        reframe=_each(one.session.reframe for one in sources if one.session is not None),
        spack_locks=locks,
    )


def _each(told: Iterable[object]) -> list[str]:
    found = {str(one) for one in told if one}
    return sorted(found - {"none", UNKNOWN} or found)


@functools.cache
def _locks_in(outputs: tuple[Path, ...]) -> dict[str, str]:
    # A session of hundreds of nodes has them once.
    found: dict[str, str] = {}
    for folder in outputs:
        for path in sorted((folder / FOLDER).glob("*.spack.lock")):
            found.setdefault(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    return found
