"""Published values of a metric, by the node model of a partition."""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.judge.calibration.record import Expected
from fabricheck.references.calibrated import PublishedRecord
from fabricheck.references.entries import requires
from fabricheck.references.origin import Origin, follow, load
from fabricheck.references.stated import References
from fabricheck.site import clusters, partitions


def of(folder: Path, partition: str) -> Expected:
    """Return a function that finds published values in the reference files.

    It uses the values of the node model that the partition's site names, under any partition or
    set. Values of the partition itself or of its set come first. A partition without a node model
    has no published values. A calibration that replaces such values changes nothing here.

    :param folder: the folder of the reference files.
    :raises NotFoundError: when the folder does not exist.
    :raises InvalidInputError: when a file, or the origin of a value in it, cannot be read.
    """
    extras = partitions.extras(partition)
    found = References(folder)
    model = extras.get("node")
    first = [key for key in (partition, extras.get("references")) if key]
    users = _users(str(model)) if model is not None else set()

    def look_up(check: str, metric: str, unit: str) -> PublishedRecord | None:
        keys = dict.fromkeys([*first, *found.table(check)])
        for key in keys if model is not None else ():
            entry = found.stated(check, key).get(metric)
            if not isinstance(entry, list) or len(entry) != 4 or not requires(entry):
                continue
            origin = found.stated_origin(check, key, metric)
            if origin is None or not _counts(origin, str(model), key in users):
                continue
            try:
                value, stated = follow(origin, found.data)
            except InvalidInputError as error:
                raise InvalidInputError(f"{folder / found.file_of[check]}: {error}") from None
            if stated == unit:
                value = float(f"{value:.5g}")
                return PublishedRecord.model_validate(
                    {"value": value, "key": key, "kind": origin.kind}
                )
        return None

    return look_up


def _counts(origin: Origin, model: str, used: bool) -> bool:
    """Whether a value belongs to a node model: by its own entry, or by its machine or its user."""
    if origin.kind not in ("published", "derived") or origin.by_definition:
        return False
    return used or origin.map == model or origin.system in load(model).systems


def _users(model: str) -> set[str]:
    """Return the partitions of a node model, the sets that they name, and that of its devices."""
    return {clusters.references_of(load(model))} | {
        one["extras"].get("references", name)
        for name, one in partitions.named(partitions.known_sites())
        if one["extras"].get("node") == model
    }
