"""Whether a system measures what an agreement asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricheck.core.errors import InvalidFile
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import agreement as agreements
from fabricheck.references import listing
from fabricheck.references.agreement import Agreement, Measured
from fabricheck.references.entries import entry_of, plain
from fabricheck.references.published import folder as references_folder
from fabricheck.references.stated import references_in
from fabricheck.results.requested_nodes import FOLDER
from fabricheck.results.session_checks import last_checks
from fabricheck.site import partitions


def require(file: Path, agreement: Agreement, folders: Sequence[Path]) -> None:
    """Refuse a system that no site has, and what its checks do not measure.

    The checks are those that a session recorded, else those of a dry run.

    :param file: of the agreement, for errors.
    :param folders: results folders.
    :raises InvalidFile: with the nearest name.
    :raises InvalidInputError: when a dry run reaches no check.
    """
    names = [name for name, _ in partitions.named(partitions.known_sites())]
    if agreement.system not in names:
        near = agreements.nearest(agreement.system, names)
        raise InvalidFile(file, "system", f"no site has the partition {agreement.system}{near}")
    if partitions.simulates(agreement.system) and not agreement.simulated:
        raise InvalidFile(
            file, "simulated", f"{agreement.system} is simulated: state simulated: true"
        )
    if not agreement.criteria:
        return
    checks = _recorded(agreement, folders)
    for metric in agreement.criteria:
        known = checks.get(metric.check)
        if known is None or metric.metric not in known.units:
            # Only a dry run knows the metrics of a partition without references of its own.
            checks = _asked(agreement.system)
            break
    agreements.require_measured(file, agreement, checks)


def _recorded(agreement: Agreement, folders: Sequence[Path]) -> Mapping[str, Measured]:
    """Return the checks that the last session recorded; empty without one."""
    references = references_in(references_folder())
    where = agreement.system
    named = partitions.extras(where).get("references")
    of_jobs = [path for folder in folders for path in sorted(folder.glob(f"{FOLDER}/*/*"))]
    for folder in (*folders, *of_jobs):
        record = last_checks(folder, where) if folder.is_dir() else None
        if record is None:
            continue
        return {
            name: Measured(tags, _units(references.entries(name, where, named)))
            for name, tags in record.partitions[where].checks.items()
        }
    return {}


def _units(entries: Mapping[str, object]) -> Mapping[str, str | None]:
    stated = {metric: entry_of(plain(entry)) for metric, entry in entries.items()}
    return {metric: None if entry is None else entry[3] for metric, entry in stated.items()}


def _asked(system: str) -> Mapping[str, Measured]:
    """Return the checks of a dry run."""
    return {
        each.check: Measured(
            each.tags, {name: str(known["unit"]) for name, known in each.metrics.items()}
        )
        for each in listing.ask(system, checks_folders())
        if each.partition == system
    }
