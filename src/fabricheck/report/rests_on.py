"""The reference of each metric of a partition, and its origin."""

from __future__ import annotations

from dataclasses import dataclass

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.references import stated
from fabricheck.references.dry_run import CheckMetrics
from fabricheck.references.listing import RULE, Row, Source, rows
from fabricheck.references.published import folder
from fabricheck.results.observed import Observed
from fabricheck.results.table import Metric
from fabricheck.site.partitions import extras

#: The remark on a reference that the reference files no longer contain, or that changed there.
CHANGED = "changed since"


@dataclass(frozen=True)
class Reference:
    """The reference of a metric, and its origin.

    kind: as in `fabricheck limits show`, or ``changed since``.
    """

    metric: Metric
    kind: str
    how: str
    sources: tuple[Source, ...]

    @property
    def limits(self) -> str:
        """The limits as text; empty if the reference has none."""
        recorded = self.metric.recorded
        said = []
        for limit, part, word in (
            (recorded.least, recorded.lower, "at least"),
            (recorded.most, recorded.upper, "at most"),
        ):
            if limit is not None:
                percent = f" ({100 * part:+.3g} %)" if part else ""
                said.append(f"{word} {limit:.5g}{percent}")
        return " and ".join(said)


def references_of(observed: Observed) -> tuple[Reference, ...]:
    """Return a row for each metric that has a value."""
    return tuple(Reference(metric, *_origin(observed, metric)) for metric in observed.metrics)


def sources(reference: Reference) -> list[tuple[Source, list[str]]]:
    """Return each document that a reference depends on, with all its places."""
    of_documents = grouped(
        ((source.title, source.system, source.inferred, source.limit), source)
        for source in reference.sources
    )
    return [(places[0], [one.where for one in places]) for places in of_documents.values()]


def _origin(observed: Observed, metric: Metric) -> tuple[str, str, tuple[Source, ...]]:
    """Return kind, explanation and sources: of the rule, the plain test, or today's files."""
    if metric.record is not None and metric.record.rule is not None:
        return RULE, metric.record.rule, ()
    recorded, where = metric.recorded, observed.where
    # ReFrame names a repeated check "name %$REPEAT_NUM=0".
    name = metric.check_row.title.split()[0]
    if observed.recorded is not None and name in observed.recorded.plain:
        return "site", "stated in the test", ()
    try:
        found = stated.references_in(folder())
        entry = [recorded.reference, recorded.lower, recorded.upper, metric.unit]
        named = extras(where).get("references")
        about = {"unit": metric.unit, "entry": entry}
        check_metrics = CheckMetrics(
            name, where, metric.check_row.environment or "", {metric.metric: about}
        )
        row: Row = next(rows([check_metrics], found, {where: named}, {}))
    except FabricheckError as error:
        return CHANGED, str(error), ()
    return row.kind, row.how, row.sources
