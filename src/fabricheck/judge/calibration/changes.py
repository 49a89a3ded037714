"""What a calibration changes in the reference files, and whether it loosens anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.core.whole_files import write_all
from fabricheck.judge.calibration.files import ReferenceFile, read_folder
from fabricheck.judge.calibration.record import FOLDER, MetricRecord, Record, file_of, read_of, text
from fabricheck.judge.calibration.rule import CEILINGS, COUNT_ENTRY, Entry, entry_of, report_only

#: The effects of a change that let pass what fails at present.
LOOSER = ("looser", "lifted")

#: Sentences in one refusal; the table has all.
MOST_SENTENCES = 8


@dataclass(frozen=True)
class Change:
    """One metric: the entry at present (None: there is none), the new one, and why it is so."""

    check: str
    metric: str
    present: Entry | None
    entry: Entry
    why: str

    @property
    def effect(self) -> str:
        """What it does: new, same, report only, required, tighter, looser, lifted."""
        if self.present is None:
            return "new"
        if self.present == self.entry:
            return "same"
        before, after = limits(self.present), limits(self.entry)
        if before == (None, None):
            return "report only" if after == before else "required"
        if after == (None, None):
            return "lifted"
        return "looser" if self.slack > 0 else "tighter"

    @property
    def slack(self) -> float:
        """How much farther a limit is, a part of the present one; infinite where there is none."""
        if self.present is None:
            return 0.0
        before, after = limits(self.present), limits(self.entry)
        if self.other_unit and before != (None, None):
            return math.inf
        return max(
            _slack(before[0], after[0], lower=True), _slack(before[1], after[1], lower=False)
        )

    @property
    def other_unit(self) -> bool:
        """Whether the present entry is in another unit, so that nobody can tell what is looser."""
        return self.present is not None and self.present[3] != self.entry[3]

    @property
    def value_change(self) -> float | None:
        """The change of the value as a part of the present one, where both are required."""
        if self.present is None or not self.present[0] or not self.entry[0] or self.other_unit:
            return None
        return self.entry[0] / self.present[0] - 1

    @property
    def sentence(self) -> str:
        """Say what is loosened."""
        unit = self.entry[3]
        assert self.present is not None
        if self.effect == "lifted":
            return (
                f"{self.check} {self.metric}: {said(self.present)} would become report only "
                f"({self.why})."
            )
        if self.other_unit:
            return (
                f"{self.check} {self.metric}: {said(self.entry)} is in another unit than "
                f"{said(self.present)}, so which of them lets pass more can not be told."
            )
        low, high = limits(self.present)
        value = self.entry[0]
        by = f", by {100 * self.slack:.2g} %" if math.isfinite(self.slack) else ""
        missed = (low is not None and value < low) or (high is not None and value > high)
        return (
            f"{self.check} {self.metric}: {said(self.entry)} lets pass what {said(self.present)} "
            f"does not{by}"
            + (f", and {value:g} {unit} itself misses the present limit." if missed else ".")
        )


def limits(entry: Entry) -> tuple[float | None, float | None]:
    """Return the least and the most value that an entry lets pass, as ReFrame computes them."""
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


def said(entry: Entry | None) -> str:
    """Write an entry as in a reference file."""
    if entry is None:
        return "-"
    words = (f"{one:.6g}" if isinstance(one, float) else one for one in entry)
    return f"[{', '.join('null' if one is None else str(one) for one in words)}]"


@dataclass
class Proposal:
    """The changes of one partition in the reference files, and what to know of them.

    origin: what x-provenance is to say. slow: a sentence for each new value that is far from what
    was published of the same node model. record: the record to be written, None where it is there.
    named: the set of references that the partition names; it is read and never changed.
    """

    folder: Path
    partition: str
    files: dict[str, ReferenceFile]
    changes: list[Change]
    notes: list[str]
    origin: Mapping[str, str]
    record: Record | None = None
    named: str | None = None
    slow: list[str] = field(default_factory=list)

    def of_file(self, file: ReferenceFile) -> list[Change]:
        """Return the changes that belong in a file."""
        return [one for one in self.changes if self.files[one.check] is file]


def propose(record: Record, folder: Path, named: str | None = None) -> Proposal:
    """Return what a new record changes in the reference files.

    A partition without own entries begins with those of its set. What the set says of a metric from
    which the record gives no limit stays, and so does where that is from.

    :param named: the set of references that the partition names.
    :raises NotFoundError: when the folder, or the file of a check, is not there.
    :raises InvalidInputError: when references rest on the present record, and no session has them;
        or when the present record is none, or another partition's (a-b:c and a:b-c share a name).
    """
    files = read_folder(folder)
    partition = record.partition
    before = read_of(folder, partition) if file_of(folder, partition).exists() else None
    origin = {"kind": "calibration", "record": f"{FOLDER}/{file_of(folder, partition).name}"}
    if record.clock == "simulated":
        origin["clock"] = record.clock
    slow: list[str] = []
    changes: list[Change] = []
    notes: list[str] = []
    for check, metrics in record.checks.items():
        if check not in files:
            raise NotFoundError(f"No file in {folder} has references of the check {check}.")
        file = files[check]
        present = file.partition(check, partition, named)
        stays = _of_the_set(file, check, partition, named)
        wanted: dict[str, tuple[Entry, str]] = {}
        for metric, one in metrics.items():
            entry = entry_of(one.entry)
            assert entry is not None
            slow += _far_from_published(check, metric, one)
            if metric in stays and not one.required and one.unit != "count":
                notes.append(f"{check} {metric}: {said(stays[metric])} stays ({one.why}).")
                continue
            wanted[metric] = (entry, one.why)
        for metric in sorted(present.keys() - metrics.keys() - stays.keys()):
            unit = _unit(present[metric])
            if unit is not None and unit != "count":
                wanted[metric] = (report_only(unit), "no session has it")
        recorded = before.checks.get(check, {}) if before is not None else {}
        gone = {metric: entry_of(one.entry) for metric, one in recorded.items()}
        changes += compare(check, present, wanted, notes, gone)
    if before is not None:
        _refuse_lost(record, before, files, origin["record"])
    others: dict[str, list[str]] = {}
    for file in dict.fromkeys(files.values()):
        for other, stated in (file.content.get("x-provenance") or {}).items():
            if other != partition and (stated or {}).get("record") == origin["record"]:
                others.setdefault(other, []).append(file.path.name)
    notes += [
        f"{other} rests on this record ({', '.join(names)}): run fabricheck calibrate "
        f"--like {partition} --for {other} afterwards."
        for other, names in others.items()
    ]
    notes = sorted(notes)
    return Proposal(folder, partition, files, changes, notes, origin, record, named, slow)


def _of_the_set(
    file: ReferenceFile, check: str, partition: str, named: str | None
) -> dict[str, Entry | None]:
    """Return the limits that a partition has from its set, or took over from it before."""
    if named is None:
        return {}
    own = partition in file.checks[check]
    origins = file.provenance(partition)
    return {
        metric: entry
        for metric, raw in file.partition(check, partition, named).items()
        if (entry := entry_of(raw)) is None or entry[1:3] != (None, None)
        if not own or f"{check}.{metric}" in origins
    }


def compare(
    check: str,
    present: Mapping[str, Any],
    wanted: Mapping[str, tuple[Entry, str]],
    notes: list[str],
    gone: Mapping[str, Entry | None] = MappingProxyType({}),
) -> list[Change]:
    """Return the changes of one check; what can not be changed is added to the notes.

    :param gone: the entries of the present record: what the file has no longer is not loosened
        silently either.
    """
    changes = []
    for metric, (entry, why) in wanted.items():
        raw = present.get(metric)
        before = entry_of(raw)
        if raw is not None and before is None:
            notes.append(f"{check} {metric}: {list(raw)} is no plain reference, and stays.")
            continue
        if entry == COUNT_ENTRY and before is not None and before[3] == "count":
            # What is required of a count was decided by who wrote it.
            entry = before
        change = Change(check, metric, before, entry, why)
        recorded = Change(check, metric, gone.get(metric), entry, why)
        if raw is None and recorded.effect in LOOSER:
            notes.append(
                f"{check} {metric}: {said(recorded.present)} is in the present record, and no "
                "longer in the file."
            )
            change = recorded
        changes.append(change)
    return changes


def _unit(raw: Any) -> str | None:
    entry = entry_of(raw)
    return None if entry is None else entry[3]


def _far_from_published(check: str, metric: str, one: MetricRecord) -> Iterator[str]:
    """Say that a value is farther from a published one than any tolerance may be."""
    if not one.required or one.published is None:
        return
    value, published = float(one.entry[0] or 0), one.published
    part = value / published.value - 1
    if (part if one.unit in SMALLER_IS_BETTER else -part) > CEILINGS[one.unit]:
        of_peak = "" if one.peak is None else f", and {value / one.peak:.0%} of the peak"
        yield (
            f"{check} {metric}: {value:g} {one.unit} is {part:+.0%} from the {published.kind} "
            f"{published.value:g} {one.unit} of the same node model ({published.key}){of_peak}."
        )


def _refuse_lost(
    record: Record, before: Record, files: Mapping[str, ReferenceFile], name: str
) -> None:
    """Refuse to replace a record on which checks rest that the new one does not have.

    A file may have others, which the present record never had.
    """
    lost = [
        check
        for check, file in files.items()
        if check in before.checks.keys() - record.checks.keys()
        and file.provenance(record.partition).get("record") == name
        and any(_unit(raw) != "count" for raw in file.partition(check, record.partition).values())
    ]
    if lost:
        raise InvalidInputError(
            f"The references of {', '.join(lost)} on {record.partition} rest on the present "
            "record, and none of these sessions has values of them: add some that ran all checks."
        )


def looser(proposal: Proposal) -> list[str]:
    """Return a sentence for each entry that would let pass what fails at present, the worst first.

    Of repeated calibrations many are looser by a thousandth.
    """
    found = [one for one in proposal.changes if one.effect in LOOSER]
    return [one.sentence for one in sorted(found, key=lambda one: -one.slack)]


def write(proposal: Proposal, accept_looser: bool, accept_slow: bool = False) -> list[Path]:
    """Write the record and the reference files, all or none.

    :raises NotFoundError: when one can not be written.
    :raises UsageError: when something is loosened, or far from what was published, and that is not
        accepted.
    """
    for sentences, what, option, accepted in (
        (looser(proposal), "would be looser", "--accept-looser", accept_looser),
        (proposal.slow, "would be far from published values", "--accept-slow", accept_slow),
    ):
        if sentences and not accepted:
            more = len(sentences) - MOST_SENTENCES
            raise UsageError(
                f"{len(sentences)} reference(s) of {proposal.partition} {what}, and nothing was "
                f"written: {option} accepts it. {' '.join(sentences[:MOST_SENTENCES])}"
                + (f" And {more} more." if more > 0 else "")
            )
    texts: dict[Path, str] = {}
    if proposal.record is not None:
        texts[file_of(proposal.folder, proposal.partition)] = text(proposal.record)
    for file in dict.fromkeys(proposal.files.values()):
        before = file.text()
        _apply(file, proposal, proposal.of_file(file))
        if file.text() != before:
            texts[file.path] = file.text()
    for path in texts:
        path.parent.mkdir(exist_ok=True)
    write_all(texts)
    return list(texts)


def _apply(file: ReferenceFile, proposal: Proposal, own: Sequence[Change]) -> None:
    measured = {(one.check, one.metric) for one in own if one.entry[3] != "count"}
    for check in dict.fromkeys(one.check for one in own):
        entries = {one.metric: one.entry for one in own if one.check == check}
        if proposal.named is not None and proposal.partition not in file.checks[check]:
            replaced = {metric for name, metric in measured if name == check}
            if not replaced and entries.items() <= _plain(file, check, proposal.named).items():
                continue  # counts only, and those of the set
            file.adopt(check, proposal.partition, proposal.named, replaced)
        file.put(check, proposal.partition, entries)
    # A file of counts only keeps what it says of them.
    if measured:
        file.state(proposal.partition, proposal.origin)
        file.forget(proposal.partition, measured)


def _plain(file: ReferenceFile, check: str, key: str) -> dict[str, Entry | None]:
    return {metric: entry_of(raw) for metric, raw in file.partition(check, key).items()}
