"""The checks that a session could select on each partition, and those of them that were lost.

A report lists only what ran. So the session guard writes the checks of all partitions beside the
results before anything is measured, and names those that are lost. A verdict compares the checks
that ran with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from fabricheck.core.grouping import grouped
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.whole_files import write_whole
from fabricheck.results.requested_nodes import Moment
from fabricheck.site.deviations import Deviation, DeviationName

#: The file, in the folder of a session's outputs.
CHECKS_FILE = "checks.json"


class PartitionChecks(StrictModel):
    """The checks of a partition.

    checks: by class name the tags of each. lost: by name of a check, or of an experiment without
    one, why it should be there. ran: those that ran, in this session or an earlier one. plain:
    tests of ReFrame alone, which other sessions may lack. without_value: by check that passed its
    performance variables without a value, or in another unit than that of their references;
    ReFrame only warns of them. deviations: how the session deviated here from what its commit
    states; accepts: by name those that the site file accepts.
    """

    checks: Mapping[str, Sequence[str]]
    lost: Mapping[str, str] = {}
    ran: Sequence[str] = ()
    plain: Sequence[str] = ()
    without_value: Mapping[str, Sequence[str]] = {}
    deviations: Sequence[Deviation] = ()
    accepts: Sequence[DeviationName] = ()

    def valueless(self, where: str) -> Iterator[str]:
        """Yield one sentence for each check that passed without a value."""
        for name, metrics in self.without_value.items():
            yield f"{name} on {where} passed without a value of {listed(metrics)}."

    def losses(self, where: str) -> Iterator[str]:
        """Yield one sentence for each reason why the partition lost checks.

        :param where: ``system:partition``.
        """
        for why, names in grouped((why, name) for name, why in self.lost.items()).items():
            yield f"{where} lost {count(len(names), 'check')}: {listed(names)}, {why}."

    def of_set(self, name: str | None) -> list[str]:
        """Return the checks of a set; none without a set."""
        return [check for check, tags in self.checks.items() if name in tags]


class SessionChecks(StrictModel):
    """The checks of a session's partitions, by ``system:partition``."""

    form: Literal["fabricheck-checks-1"] = "fabricheck-checks-1"
    written: Moment
    partitions: Mapping[str, PartitionChecks]


def write_checks(outputs: Path, checks: SessionChecks) -> None:
    """Write the record of a session.

    :param outputs: the folder of its outputs.
    :raises NotFoundError: when it cannot be written.
    """
    outputs.mkdir(parents=True, exist_ok=True)
    write_whole(outputs / CHECKS_FILE, checks.model_dump_json() + "\n")


def joined_checks(records: Sequence[SessionChecks]) -> SessionChecks:
    """Return the first record with the deviations of all, and what all of them accept."""
    first, *others = records
    partitions = dict(first.partitions)
    for where, partition in first.partitions.items():
        rest = [record.partitions[where] for record in others if where in record.partitions]
        deviations = [*partition.deviations]
        accepts = [*partition.accepts]
        for other in rest:
            deviations += [each for each in other.deviations if each not in deviations]
            accepts = [name for name in accepts if name in other.accepts]
        changes = {"deviations": deviations, "accepts": accepts}
        partitions[where] = partition.model_copy(update=changes)
    return first.model_copy(update={"partitions": partitions})


def checks_of(outputs: Iterable[Path]) -> Mapping[str, PartitionChecks]:
    """Return the checks of a session's partitions; empty without a record.

    :param outputs: the folders where its outputs may be, in order.
    :raises InvalidInputError: when the record cannot be read.
    """
    for folder in outputs:
        if (folder / CHECKS_FILE).is_file():
            return read_model(folder / CHECKS_FILE, SessionChecks).partitions
    return {}


def last_checks(results: Path, where: str) -> SessionChecks | None:
    """Return the last record of a partition in a results folder; None without one.

    A session of plain tests alone does not count: it may lack every check of this suite.

    :param where: ``system:partition``.
    :raises InvalidInputError: when it, or a later one, cannot be read.
    """
    # The names of the folders begin with the start of the session.
    paths = sorted(results.glob(f"output/*/{CHECKS_FILE}"), reverse=True)
    for path in paths:
        record = read_model(path, SessionChecks)
        partition = record.partitions.get(where)
        if partition is not None and partition.checks.keys() - partition.plain:
            return record
    return None
