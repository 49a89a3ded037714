"""References of a partition that was not measured, from the record of another one.

Only what has the same meaning on any number of devices is taken: values of a device alone, and of
a pair alone by its link class. The worst of more devices tends to be worse than that of fewer.
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
    """Return what a partition takes from another one's record; of all else its entries stay.

    :param folder: of the reference files.
    :param like: the partition that was measured.
    :param partition: the one that was not; its metrics are those that it has entries of.
    :raises NotFoundError: when there is no record, or the partition has no entries.
    :raises InvalidInputError: when the partition has values of its own, or the record is none,
        simulated, or another partition's.
    """
    if like == partition:
        raise UsageError(f"{like} cannot be taken for itself.")
    record = read_of(folder, like)
    if record.clock == "simulated":
        raise InvalidInputError(
            f"{file_of(folder, like)}: is simulated, and no ground for another partition."
        )
    references = References(folder)
    if references.record(partition) is not None:
        raise InvalidInputError(
            f"{file_of(folder, partition)}: {partition} has a calibration of its own, which values "
            f"measured on {like} do not replace."
        )
    # Only here, as it brings ReFrame's front end.
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
                notes.append(f"{check} {metric}: {raw} is no plain reference, and stays.")
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
            f"The reference files in {folder} list no metric of {partition} that {like} has: enter "
            "its checks first, each metric as report only, since only they say which it has."
        )
    made = Transfer(partition=partition, measured_on=like, checks=taken)
    return Proposal(folder, made, changes, sorted(notes))


def _without(references: References, check: str, partition: str, metric: str) -> Entry:
    """Return what the files state of a metric that is not taken.

    :raises InvalidInputError: when they state nothing, since it was taken before.
    """
    stated = entry_of(references.stated(check, partition).get(metric))
    if stated is None:
        raise InvalidInputError(
            f"{references.file_of[check]}: {metric} of {check} on {partition} can be taken no "
            "longer: enter it as report only."
        )
    return stated
