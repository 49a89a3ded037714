"""What of an experiment cannot be tested in a partition, and why: never a pass, never silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.results.entry import Entry
from fabricheck.results.session import Case

#: The experiments with collectives, of which a site may leave out some (`mpi_without`).
WITH_COLLECTIVES = frozenset({"E10", "E12"})

#: What a document says of an operation that was left out on purpose.
LEFT_OUT = "left out by --without"


def features_of_devices(
    sites: dict[str, list[dict[str, Any]]] | None,
) -> dict[str, frozenset[str]]:
    """Return the features of each partition, ``system:partition``, that measures real devices.

    :param sites: what the site files say (`partitions.read_sites`); None when that is not known.
    """
    if sites is None:
        return {}
    runtimes = {
        entry["name"]: entry.get("extras", {}).get("runtime")
        for entry in sites.get("environments", [])
    }
    return {
        f"{system['name']}:{one['name']}": frozenset(one.get("features", []))
        for system in sites.get("systems", [])
        for one in system.get("partitions", [])
        if not {runtimes.get(name) for name in one["environs"]}.isdisjoint(OF_DEVICES)
    }


def reasons(
    experiment: str,
    not_without: Mapping[str, str],
    skipped: str | None,
    features: frozenset[str] | None,
    entries: Sequence[tuple[Case, Entry | None]],
) -> Iterator[str]:
    """Yield why an experiment, or a part of it, cannot be tested in one partition.

    :param not_without: why nothing, or not all, can be tested without a feature; the first counts.
    :param skipped: why its checks are skipped, where one was.
    :param features: those of the partition; None where nobody states them.
    :param entries: the cases of the experiment in that partition, with their documents.
    """
    if features is not None:
        yield from [why for word, why in not_without.items() if word not in features][:1]
    names = [case.name for case, _ in entries if case.skipped]
    if names and skipped is not None:
        yield f"{', '.join(names)}: {skipped}"
    if experiment in WITH_COLLECTIVES:
        left_out = sorted({name for _, entry in entries for name in _left_out(entry)})
        if left_out:
            yield f"{', '.join(left_out)}: left out, as its MPI cannot do them (mpi_without)"


def _left_out(entry: Entry | None) -> Iterator[str]:
    document = entry.document if entry is not None else None
    for one in (document.get("skipped") if document else None) or ():
        if one["reason"] == LEFT_OUT:
            yield one["operation"]
