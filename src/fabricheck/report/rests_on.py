"""The reference of each metric of a partition, and its origin."""

from __future__ import annotations

from dataclasses import dataclass

from fabricheck.core.errors import FabricheckError
from fabricheck.references import stated
from fabricheck.references.dry_run import Told
from fabricheck.references.listing import RULE, Row, Source, rows
from fabricheck.references.published import folder
from fabricheck.report.worst import Metric, metrics
from fabricheck.results.observed import Observed
from fabricheck.site.partitions import extras

#: The remark on a reference that the reference files no longer contain, or that changed there.
CHANGED = "changed since"


@dataclass(frozen=True)
class Reference:
    """The reference of a metric, and its origin.

    kind: as in `fabricheck limits show`, or ``changed since``.
    """

    of: Metric
    kind: str
    how: str
    sources: tuple[Source, ...]

    @property
    def limits(self) -> str:
        """The limits as text; empty if the reference has none."""
        judged = self.of.judged
        said = []
        for limit, part, word in (
            (judged.least, judged.lower, "at least"), (judged.most, judged.upper, "at most"),
        ):  # fmt: skip
            if limit is not None:
                percent = f" ({100 * part:+.3g} %)" if part else ""
                said.append(f"{word} {limit:.5g}{percent}")
        return " and ".join(said)


def of(observed: Observed) -> tuple[Reference, ...]:
    """Return a row for each metric that has a value."""
    records = {entry.case.name: entry.metrics for entry in observed.entries if entry.case}
    environs = {case.name: case.environ for case in observed.cases}
    found = []
    for metric in metrics(observed):
        record = records.get(metric.check, {}).get(metric.metric)
        if record is not None and record.rule is not None:
            found.append(Reference(metric, RULE, record.rule, ()))
        else:
            environ = environs[metric.check]
            found.append(Reference(metric, *_origin(observed.where, environ, metric)))
    return tuple(found)


def sources(reference: Reference) -> list[tuple[Source, list[str]]]:
    """Return each document that a reference depends on, with all its places."""
    found: dict[tuple[object, ...], tuple[Source, list[str]]] = {}
    for one in reference.sources:
        key = (one.title, one.system, one.inferred, one.limit)
        found.setdefault(key, (one, []))[1].append(one.where)
    return list(found.values())


def _origin(where: str, environ: str, metric: Metric) -> tuple[str, str, tuple[Source, ...]]:
    """Return kind, explanation and sources from today's reference files."""
    judged = metric.judged
    try:
        found = stated.of(folder())
        # ReFrame names a repeated check "name %$REPEAT_NUM=0".
        name = metric.check.split()[0]
        entry = [judged.reference, judged.lower, judged.upper, metric.unit]
        named = extras(where).get("references")
        about = {"unit": metric.unit, "entry": entry}
        told = Told(name, where, environ, {metric.metric: about})
        row: Row = next(rows([told], found, {where: named}, {}))
    except FabricheckError as error:
        return CHANGED, str(error), ()
    return row.kind, row.how, row.sources
