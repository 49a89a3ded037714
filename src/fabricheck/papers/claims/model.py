"""A claim: a published finding as a rule, and its verdict on a partition's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.references.published import folder, of_folder
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

Outcome = Literal["reproduced", "not reproduced", "not testable here"]
REPRODUCED: Outcome = "reproduced"
REFUTED: Outcome = "not reproduced"
NOT_TESTABLE: Outcome = "not testable here"

#: The kinds of a number. A computed number is a ratio, a mean or the like of measured or simulated
#: numbers.
Kind = Literal["measured", "simulated", "published", "derived"]


@dataclass(frozen=True)
class Number:
    """A number used to judge a claim.

    what: its name in a table. unit: GB/s (1e9 bytes per second), us, B, percent, or ratio; for a
    published number also the unit of its record. interval: the 95 % interval of a median, if any.
    computed: whether it comes from several values. noisy: whether its series was noisy. record,
    place: the id of a published number in the data set, and its document and place there.
    """

    what: str
    value: float
    unit: str
    kind: Kind
    interval: tuple[float, float] | None = None
    computed: bool = False
    noisy: bool = False
    record: str | None = None
    place: str = ""


@dataclass(frozen=True)
class Finding:
    """A rule's finding: its outcome, the reason in one sentence, and the numbers in it."""

    outcome: Outcome
    because: str
    numbers: tuple[Number, ...] = ()


class NotTestable(Exception):
    """Raised by a rule that lacks data; the message says what is missing."""


@dataclass(frozen=True)
class Claim:
    """A published finding, and the rule that judges it.

    id: its name on the command line. statement: the finding, in our words. document: key of
    documents.yaml. where: the place in the document. rule: when the finding counts as reproduced,
    with the tolerance and its reason. judge: the function that judges it, of one of the `kinds`; it
    raises NotTestable. requires: the precondition on the node, from `needs`; None for any
    node. records: the records of the published data set that state it; `evaluate` adds them to the
    numbers. rests_on: the keys of a node model that decide the result on a simulated node
    (``simulation.link_efficiency``). If one of them was fitted, the result agrees by construction;
    keys fitted to something else are not listed. built_in: the assumption of the simulated node
    that makes its result no evidence; None if the result follows from the rest.
    """

    id: str
    statement: str
    document: str
    where: str
    rule: str
    judge: Callable[[Observed], Finding] = field(repr=False)
    requires: Callable[[Observed], object] | None = field(default=None, repr=False)
    experiments: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    built_in: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim from a partition's results.

    because: the reason in one sentence. numbers, published: those that judged it, and those of the
    claim's records. fitted: on a simulated node, its keys that were fitted to published values.
    by_construction: whether it is reproduced by a fitted or built-in value, which is not evidence.
    noisy: whether one of its series was too noisy for its check.
    """

    claim: Claim
    outcome: Outcome
    because: str
    by_construction: bool
    fitted: tuple[str, ...]
    noisy: bool
    numbers: tuple[Number, ...]
    published: tuple[Number, ...]


@dataclass(frozen=True)
class Claims:
    """The outcome of every claim on the results of a partition.

    where, on: the partition, empty for documents outside any session, and its node. clock: measured
    or simulated. node: the name of the node model. overlay: the change to a simulated node.
    defects: a sentence for each claim whose rule failed by a defect of the suite.
    """

    where: str
    on: str | None
    clock: str
    runtimes: Sequence[str]
    node: str | None
    overlay: str | None
    verdicts: tuple[Verdict, ...]
    defects: tuple[str, ...] = ()

    @cached_property
    def judged(self) -> list[Verdict]:
        """The judged claims: claims that do not hold first, claims that are no evidence last."""
        judged = [verdict for verdict in self.verdicts if verdict.outcome != NOT_TESTABLE]
        return sorted(
            judged, key=lambda verdict: (verdict.outcome == REPRODUCED, verdict.by_construction)
        )

    @cached_property
    def not_testable(self) -> dict[str, list[Verdict]]:
        """The claims that this partition cannot test, by reason."""
        return grouped(
            (verdict.because.rstrip("."), verdict)
            for verdict in self.verdicts
            if verdict.outcome == NOT_TESTABLE
        )

    @property
    def by_construction(self) -> int:
        """The number of claims that hold on a simulated node by construction: no evidence."""
        return sum(verdict.by_construction for verdict in self.verdicts)

    @property
    def says(self) -> str:
        """The counts in words."""
        count = Counter(verdict.outcome for verdict in self.verdicts)
        made = self.by_construction
        by_construction = f", {made} agree by construction" if made else ""
        return (
            f"{count[REPRODUCED] - made} reproduced{by_construction}, {count[REFUTED]} not "
            f"reproduced, {count[NOT_TESTABLE]} not testable here, of {len(self.verdicts)} claims"
        )


def number(what: str, point: Series) -> Number:
    """Return a series' median with its interval."""
    return Number(what, point.value, point.unit, point.clock, point.interval, noisy=point.noisy)


def computed(what: str, value: float, unit: str, *series: Series) -> Number:
    """Return a number computed from several medians; ``series`` are theirs."""
    noisy = any(point.noisy for point in series)
    return Number(what, value, unit, series[0].clock, computed=True, noisy=noisy)


def counted(what: str, count: float, unit: str, kind: Kind = "derived") -> Number:
    """Return a count, such as the pairs of a node model."""
    return Number(what, float(count), unit, kind, computed=True)


def verdict(holds: bool, because: str, *numbers: Number) -> Finding:
    """Return the finding of a rule that had all the data it needs."""
    return Finding(REPRODUCED if holds else REFUTED, because, numbers)


def published(record: str) -> Number:
    """Return a published number, read from the data set and never typed again, with its place.

    Its unit is GB/s (1e9 bytes per second), us, or percent where the record's unit can be
    converted, else the record's own unit.

    :raises NotTestable: when the data set cannot be read, or lacks the record.
    """
    try:
        known = of_folder(folder()).record(record)
    except FabricheckError as error:
        raise NotTestable(f"the published values cannot be read: {error}") from None
    # A value that its document cites from another one is marked.
    secondary = " (secondary)" if known.secondary else ""
    what = f"{known.metric.replace('_', ' ')}, {known.system}{secondary}"
    return Number(what, known.value, known.unit, "published", record=record, place=known.place)


def value(record: str) -> float:
    """Return a published value, in the unit of `published`.

    :raises NotTestable: as `published`.
    """
    return published(record).value
