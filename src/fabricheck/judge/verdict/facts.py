"""Facts of a node in a verdict: times, devices, versions."""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge.verdict import model
from fabricheck.judge.verdict.grouping import NodeResults
from fabricheck.results import state
from fabricheck.results.model import ResultDocument
from fabricheck.results.reading import Results, Source
from fabricheck.results.series import has_runtime
from fabricheck.site.software.record import FOLDER


def began(results: Results) -> list[datetime]:
    """Return when the sessions began, in local time and in order; empty if they did not begin."""
    times = sorted(one.start for one in results.sources if one.start)
    if not times:
        times = sorted(one.started.timestamp() for one in results.lists)[:1]
    return [datetime.fromtimestamp(time).astimezone() for time in times]


def times(results: NodeResults) -> tuple[datetime | None, float | None]:
    """Return when the first program began, and the total seconds of all sessions on the node."""
    every = [
        [
            datetime.fromisoformat(text)
            for one in own
            if one.document is not None
            for text in (one.document["started"], one.document["finished"])
            if text is not None
        ]
        for _, own in results.by_source
    ]
    spans = [times for times in every if times]
    if not spans:
        return None, None
    start = min(map(min, spans)).astimezone(UTC)
    return start, sum((max(times) - min(times)).total_seconds() for times in spans)


def devices(documents: Iterable[ResultDocument]) -> list[model.Device]:
    """Return every device that a document names, once each.

    Node tools know less of a device than its runtime does, so they add no devices.
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
    """Return the versions behind the results, from the programs that ran on the devices."""
    own = [one for one in documents if one["program"]["commit"] != UNKNOWN]
    told = [one["versions"] for one in documents if has_runtime(one)]
    states = [one for document in documents for one in state.device_states(document)]
    firmware: dict[str, set[str]] = defaultdict(set)
    for one in states:
        for name, version in (one["firmware"] or {}).items():
            firmware[name].add(version)
    locks: dict[str, str] = {}
    for source in sources:
        locks |= _locks_in(source.session.outputs if source.session else ())
    return model.Versions(
        fabricheck=_each(one["program"]["version"] for one in own or documents),
        commits=_each(one["program"]["commit"] for one in own),
        kernel=_each(one["host"]["kernel"] for one in documents),
        runtime=_each(one.get("runtime") for one in told),
        driver=_each(one.get("driver") for one in told),
        vbios=_each(one["vbios"] for one in states),
        firmware={name: _each(own) for name, own in sorted(firmware.items())},
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
    # Cached, because hundreds of nodes of a session share the same locks.
    found: dict[str, str] = {}
    for folder in outputs:
        for path in sorted((folder / FOLDER).glob("*.spack.lock")):
            found.setdefault(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    return found
