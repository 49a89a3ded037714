"""References of an unmeasured partition from the record of another partition.

Only metrics that do not depend on the number of devices are taken: values of a single device, and
values of a single pair by its link class. The worst of many devices tends to be worse than the
worst of few.
"""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration.changes import Change, Proposal
from fabricheck.judge.coverage import checks_folders
from fabricheck.references.calibrated import Transfer, file_of, read_of
from fabricheck.references.entries import Entry, entry_of
from fabricheck.references.stated import References


def transfer(folder: Path, like: str, partition: str) -> Proposal:
    """Return the metrics that a partition takes from another one's record; other entries stay.

    :param folder: the folder of the reference files.
    :param like: the measured partition.
    :param partition: the unmeasured partition; its metrics are those with entries.
    :raises NotFoundError: when the record does not exist, or the partition has no entries.
    :raises UsageError: when both partitions are the same.
    :raises InvalidInputError: when the partition has values of its own, or the record is invalid,
        simulated, or of another partition.
    """
    if like == partition:
        raise UsageError(f"{like} cannot be used for itself.")
    record = read_of(folder, like)
    if record.clock == "simulated":
        raise InvalidInputError(
            f"{file_of(folder, like)}: it is simulated, so it cannot be used for another partition."
        )
    references = References(folder)
    if references.record(partition) is not None:
        raise InvalidInputError(
            f"{file_of(folder, partition)}: {partition} has its own calibration, which values "
            f"measured on {like} do not replace."
        )
    # Imported here because it loads ReFrame's front end.
    from fabricheck.rfm import listing

    independent = listing.independent(like, checks_folders(), folder)
    taken: dict[str, list[str]] = {}
    changes: list[Change] = []
    notes: list[str] = []
    for check in references.file_of:
        present, given = references.entries(check, partition), record.entries(check)
        if present and not given:
            notes.append(f"{check}: {like} has no values of it, so its entries stay.")
        for metric, raw in present.items() if given else ():
            before = entry_of(raw)
            if before is None:
                notes.append(f"{check} {metric}: {raw} is not a plain reference and stays.")
            elif metric in given and metric in independent.get(check, ()):
                entry, why = given[metric]
                taken.setdefault(check, []).append(metric)
                why = why if why != "rule" else f"measured on {like}"
                changes.append(Change(check, metric, before, entry_of(entry) or before, why))
            elif before[3] != "count":
                why = "depends on the number of devices"
                why = why if metric in given else f"not measured on {like}"
                entry = _without(references, check, partition, metric)
                changes.append(Change(check, metric, before, entry, why))
    if not changes:
        raise NotFoundError(
            f"The reference files in {folder} list no metric of {partition} that {like} has: "
            "enter its checks first, with each metric as report only."
        )
    made = Transfer(partition=partition, measured_on=like, checks=taken)
    return Proposal(folder, made, changes, sorted(notes))


def _without(references: References, check: str, partition: str, metric: str) -> Entry:
    """Return the entry that the reference files state for a metric that is not taken.

    :raises InvalidInputError: when the files have no entry, because the metric was taken before.
    """
    stated = entry_of(references.stated(check, partition).get(metric))
    if stated is None:
        raise InvalidInputError(
            f"{references.file_of[check]}: {metric} of {check} on {partition} is not available "
            "any more: enter it as report only."
        )
    return stated
