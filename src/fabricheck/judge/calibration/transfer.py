"""References of a partition that was not measured, from the record of another one.

Only what has the same meaning on any number of devices is taken: values of a device alone, and of
a pair alone by its link class. The worst of more devices tends to be worse than that of fewer.
"""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration.changes import Proposal, compare
from fabricheck.judge.calibration.files import read_folder
from fabricheck.judge.calibration.record import FOLDER, file_of, read_of
from fabricheck.judge.calibration.rule import Entry, entry_of, report_only
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import stated as references


def transfer(folder: Path, like: str, partition: str) -> Proposal:
    """Return the entries of a partition from another one's record; others become report only.

    :param folder: of the reference files.
    :param like: the partition that was measured.
    :param partition: the one that was not; its metrics are those that the files list for it.
    :raises NotFoundError: when there is no record, or the files list nothing for the partition.
    :raises InvalidInputError: when the partition has values of its own, or the record is none,
        simulated, or another partition's.
    """
    if like == partition:
        raise UsageError(f"{like} can not be taken for itself.")
    record = read_of(folder, like)
    if record.clock == "simulated":
        raise InvalidInputError(
            f"{file_of(folder, like)}: is simulated, and no ground for another partition."
        )
    # Only here, as it brings ReFrame's front end.
    from fabricheck.rfm import listing

    independent = listing.independent(like, checks_folders(), references.folder())
    files = read_folder(folder)
    changes, notes = [], []
    for check, file in files.items():
        present = file.partition(check, partition)
        if not present:
            continue
        stated = file.provenance(partition)
        if stated.get("kind") == "calibration" and "measured_on" not in stated:
            raise InvalidInputError(
                f"{file.path}: {partition} has a calibration of its own ({stated.get('record')}), "
                f"which values measured on {like} do not replace."
            )
        if check not in record.checks:
            notes.append(f"{check}: {like} has no values of it, so its entries stay.")
            continue
        wanted: dict[str, tuple[Entry, str]] = {}
        for metric, raw in present.items():
            before = entry_of(raw)
            if before is not None and before[3] == "count":
                continue
            found = record.checks[check].get(metric)
            if found is None:
                unit = before[3] if before else "GB/s"
                wanted[metric] = (report_only(unit), f"not measured on {like}")
            elif metric not in independent.get(check, ()):
                wanted[metric] = (report_only(found.unit), "depends on the number of devices")
            else:
                entry = entry_of(found.entry)
                assert entry is not None
                why = found.why if found.why != "rule" else f"measured on {like}"
                wanted[metric] = (entry, why)
        changes += compare(check, present, wanted, notes)
    if not changes:
        raise NotFoundError(
            f"The reference files in {folder} list no metric of {partition} that {like} has: enter "
            "its checks first, each metric as report only, since only they say which it has."
        )
    origin = {
        "kind": "calibration",
        "record": f"{FOLDER}/{file_of(folder, like).name}",
        "measured_on": like,
    }
    return Proposal(folder, partition, files, changes, sorted(notes), origin)
