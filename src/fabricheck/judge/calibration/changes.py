"""Changes that a calibration makes to a partition's references, and whether they are looser."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import first_of, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.calibration.record import text
from fabricheck.judge.calibration.rule import CEILINGS
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import listing
from fabricheck.references.calibrated import (
    FOLDER,
    TRANSFERS,
    MetricRecord,
    Record,
    Transfer,
    file_of,
    read_of,
)
from fabricheck.references.entries import Entry, entry_of, formatted
from fabricheck.references.stated import References

#: Effects by which the new references accept values that fail at present.
_LOOSER = ("looser", "lifted")


@dataclass(frozen=True)
class Change:
    """A change of one metric: the present entry (None without one), the new one, and the reason.

    effect: new, same, report only, required, tighter, looser, lifted. value_change: the change of
    the value as a fraction of the present value, if both exist. slack: the fraction of the present
    limit by which the limit becomes looser; may be infinite.
    """

    check: str
    metric: str
    present: Entry | None
    entry: Entry
    why: str
    effect: str
    value_change: float | None = None
    slack: float = field(default=0.0, repr=False)

    @property
    def sentence(self) -> str:
        """Describe what becomes looser."""
        unit = self.entry[3]
        assert self.present is not None
        if self.effect == "lifted":
            return (
                f"{self.check} {self.metric}: {formatted(self.present)} would become report only "
                f"({self.why})."
            )
        if self.present[3] != unit:
            return (
                f"{self.check} {self.metric}: {formatted(self.entry)} is in another unit than "
                f"{formatted(self.present)}, so it is unknown which of them is looser."
            )
        low, high = limits(self.present)
        value = self.entry[0]
        by = f", by {100 * self.slack:.2g} %" if math.isfinite(self.slack) else ""
        missed = (low is not None and value < low) or (high is not None and value > high)
        entry, present = formatted(self.entry), formatted(self.present)
        return f"{self.check} {self.metric}: {entry} accepts what {present} does not{by}" + (
            f", and {value:g} {unit} itself misses the present limit." if missed else "."
        )


def _change_of(check: str, metric: str, present: Entry | None, entry: Entry, why: str) -> Change:
    """Return the change of a metric's entry, with its effect."""
    if present is None:
        return Change(check, metric, None, entry, why, "new")
    before, after = limits(present), limits(entry)
    one_unit = present[3] == entry[3]
    slack = max(_slack(before[0], after[0], lower=True), _slack(before[1], after[1], lower=False))
    if not one_unit and before != (None, None):
        slack = math.inf  # the limits cannot be compared
    effect = "looser" if slack > 0 else "tighter"
    if present == entry:
        effect = "same"
    elif before == (None, None):
        effect = "report only" if after == before else "required"
    elif after == (None, None):
        effect = "lifted"
    part = entry[0] / present[0] - 1 if one_unit and present[0] and entry[0] else None
    return Change(check, metric, present, entry, why, effect, part, slack)


def limits(entry: Entry) -> tuple[float | None, float | None]:
    """Return the least and the greatest value that an entry accepts, as ReFrame computes them."""
    value, lower, upper, _ = entry
    return tuple(  # type: ignore[return-value]
        None if part is None else value * (1 + part) if value else part for part in (lower, upper)
    )


def _slack(before: float | None, after: float | None, lower: bool) -> float:
    if before is None:
        return 0.0
    if after is None:
        return math.inf
    farther = before - after if lower else after - before
    return farther / before if before else math.inf if farther > 0 else 0.0


@dataclass(frozen=True)
class Proposal:
    """The changes of one partition's references, and the record that they come from.

    nodes: by the number of a session its node, which no record contains. far_from_published: a
    sentence for each new value that is far from the published value of the same node model.
    """

    record: Record | Transfer
    nodes: Mapping[int, str]
    changes: list[Change]
    notes: list[str]
    looser: list[str]
    far_from_published: list[str]
    folder: Path = field(repr=False)


def propose(
    record: Record,
    folder: Path,
    named: str | None = None,
    nodes: Mapping[int, str] | None = None,
) -> Proposal:
    """Return the changes that a new record makes to the references of its partition.

    :param named: the set of references that the partition names.
    :param nodes: the nodes of the sessions, to be shown.
    :raises NotFoundError: when the folder does not exist, or no file has references of a check.
    :raises InvalidInputError: when references come from the present record and no session measures
        them; when the present record is invalid; or when it belongs to another partition (``a-b:c``
        and ``a:b-c`` share a file name).
    """
    partition, path = record.partition, file_of(folder, record.partition)
    present = References(folder)
    before = read_of(folder, partition) if path.exists() else None
    if before is not None:
        _refuse_lost(record, before)
        record = record.model_copy(update={"gone": _gone(record, before)})
    after = present.with_record(record)
    changes: list[Change] = []
    notes: list[str] = []
    for check in record.checks:
        if check not in present.file_of:
            raise NotFoundError(f"No file in {folder} has references of check {check}.")
        old, new = (references.entries(check, partition, named) for references in (present, after))
        counts = after.calibrated(check, partition, named)
        for metric, (_, why) in record.entries(check).items():
            entry = entry_of(new[metric])
            if entry is None:
                notes.append(f"{check} {metric}: {new[metric]} is not a plain reference and stays.")
            elif metric not in counts and entry[3] != "count":
                notes.append(f"{check} {metric}: {formatted(entry)} stays ({why}).")
            else:
                changes.append(_change_of(check, metric, entry_of(old.get(metric)), entry, why))
        replaced = counts.keys() & present.stated(check, partition).keys()
        if replaced:
            notes.append(
                f"{present.file_of[check]}: {len(replaced)} of the entries of {check} on "
                f"{partition} are replaced by those of the record."
            )
    notes += [
        f"{transfer.partition} uses entries of this record, and changes with it."
        for transfer in present.transfers.values()
        if transfer.measured_on == partition
    ]
    slow = [
        sentence
        for check, metrics in record.checks.items()
        for metric, measured in metrics.items()
        for sentence in _far_from_published(check, metric, measured)
    ]
    return Proposal(record, nodes or {}, changes, sorted(notes), _looser(changes), slow, folder)


def _gone(record: Record, before: Record) -> dict[str, dict[str, str]]:
    """Return the entries of the present record that no session measures any more."""
    units = {
        check: {
            metric: str(entry[3])
            for metric, (entry, _) in before.entries(check).items()
            if metric not in metrics and entry[3] != "count"
        }
        for check, metrics in record.checks.items()
    }
    return {check: gone for check, gone in units.items() if gone}


def _far_from_published(check: str, metric: str, record: MetricRecord) -> Iterator[str]:
    """Return a sentence if a value differs from a published one by more than any tolerance."""
    if not record.required or record.published is None:
        return
    value, published = float(record.entry[0] or 0), record.published
    part = value / published.value - 1
    if (part if record.unit in SMALLER_IS_BETTER else -part) > CEILINGS[record.unit]:
        of_peak = "" if record.peak is None else f", and {value / record.peak:.0%} of the peak"
        yield (
            f"{check} {metric}: {value:g} {record.unit} is {part:+.0%} from the {published.kind} "
            f"{published.value:g} {record.unit} of the same node model ({published.key}){of_peak}."
        )


def _refuse_lost(record: Record, before: Record) -> None:
    """Refuse to replace a record that has checks which the new record lacks."""
    lost = [
        check
        for check, metrics in before.checks.items()
        if check not in record.checks and any(metric.unit != "count" for metric in metrics.values())
    ]
    if lost:
        raise InvalidInputError(
            f"The references of {listed(lost)} on {record.partition} come from the present "
            "record, but none of these sessions has values of them: add sessions that ran all "
            "checks."
        )


def _looser(changes: Sequence[Change]) -> list[str]:
    """Return a sentence for each entry that accepts values failing at present, the loosest first.

    When a calibration is repeated, many entries become looser by a thousandth.
    """
    looser = [change for change in changes if change.effect in _LOOSER]
    return [change.sentence for change in sorted(looser, key=lambda change: -change.slack)]


def write(proposal: Proposal, accept_looser: bool, accept_slow: bool = False) -> Path:
    """Write the record and return its path.

    :raises NotFoundError: when the record cannot be written.
    :raises UsageError: when an entry becomes looser, or is far from published values, and the
        option that accepts it is not set.
    """
    record = proposal.record
    slow = proposal.far_from_published
    for sentences, what, option, accepted in (
        (proposal.looser, "would be looser", "--accept-looser", accept_looser),
        (slow, "would be far from published values", "--accept-slow", accept_slow),
    ):
        if sentences and not accepted:
            raise UsageError(
                f"{count(len(sentences), 'reference')} of {record.partition} {what}, so nothing "
                f"was written: {option} accepts it. {' '.join(first_of(sentences))}"
            )
    kind = FOLDER if isinstance(record, Record) else TRANSFERS
    path = file_of(proposal.folder, record.partition, kind)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, text(record))
    return path


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
    independent = {
        asked.check: {name for name, about in asked.metrics.items() if about["independent"]}
        for asked in listing.ask(like, checks_folders(), folder)
    }
    taken: list[tuple[str, str]] = []
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
                taken.append((check, metric))
                why = why if why != "rule" else f"measured on {like}"
                changes.append(_change_of(check, metric, before, entry_of(entry) or before, why))
            elif before[3] != "count":
                why = "depends on the number of devices"
                why = why if metric in given else f"not measured on {like}"
                entry = _without(references, check, partition, metric)
                changes.append(_change_of(check, metric, before, entry, why))
    if not changes:
        raise NotFoundError(
            f"The reference files in {folder} list no metric of {partition} that {like} has: "
            "enter its checks first, with each metric as report only."
        )
    made = Transfer(partition=partition, measured_on=like, checks=grouped(taken))
    return Proposal(made, {}, changes, sorted(notes), _looser(changes), [], folder)


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
