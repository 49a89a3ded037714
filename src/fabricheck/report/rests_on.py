"""What the values of a partition were held against, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabricheck.core.errors import FabricheckError
from fabricheck.references import stated
from fabricheck.references.dry_run import Told
from fabricheck.references.listing import Row, Source, rows
from fabricheck.references.published import folder
from fabricheck.report.worst import nearest_limit
from fabricheck.results import split_checks
from fabricheck.results.observed import Observed
from fabricheck.results.run_report import Judged
from fabricheck.results.session import Case
from fabricheck.site.partitions import extras

#: What is said of a reference that the reference files have no longer, or have otherwise.
CHANGED = "changed since"


@dataclass(frozen=True)
class Reference:
    """A metric of a check: its value, its reference, and what the reference rests on.

    kind: as of `fabricheck references`, or ``changed since``. limits: in words, empty where the
    reference has none. margin: percent of the nearest limit that are left; None without one.
    """

    check: str
    metric: str
    value: float
    unit: str
    reference: float | None
    limits: str
    margin: float | None
    result: str | None
    kind: str
    how: str
    sources: tuple[Source, ...]


def of(observed: Observed) -> tuple[Reference, ...]:
    """Return a row for each metric that has a value."""
    return tuple(
        _row(observed.where, case, metric, value, unit, case.judged[metric])
        for case in observed.cases
        for metric, (value, unit) in case.values.items()
        if metric in case.judged
    )


def sources(reference: Reference) -> list[tuple[Source, list[str]]]:
    """Return each document that a reference rests on, with all places in it."""
    found: dict[tuple[object, ...], tuple[Source, list[str]]] = {}
    for one in reference.sources:
        key = (one.title, one.system, one.inferred, one.limit)
        found.setdefault(key, (one, []))[1].append(one.where)
    return list(found.values())


def _row(where: str, case: Case, metric: str, value: float, unit: str, judged: Judged) -> Reference:
    nearest = nearest_limit(value, judged)
    kind, how, sources = _origin(where, case, metric, unit, judged)
    return Reference(
        case.name, metric, value, unit, judged.reference,
        " and ".join(_limits(judged)), None if nearest is None else nearest[2],
        judged.result, kind, how, sources,
    )  # fmt: skip


def _limits(judged: Judged) -> Iterator[str]:
    if judged.reference is None:
        return
    for part, word in ((judged.lower, "at least"), (judged.upper, "at most")):
        if part is not None:
            percent = f" ({100 * part:+.3g} %)" if part else ""
            yield f"{word} {judged.reference * (1 + part):.5g}{percent}"


def _origin(
    where: str, case: Case, metric: str, unit: str, judged: Judged
) -> tuple[str, str, tuple[Source, ...]]:
    """Return kind, how and sources by the reference files of today."""
    try:
        found = stated.of(folder())
        # ReFrame names a repeated check "name %$REPEAT_NUM=0".
        name = split_checks.of_metric(case.name.split()[0], metric)
        entry = [judged.reference, judged.lower, judged.upper, unit]
        told = Told(name, where, case.environ, {metric: {"unit": unit, "entry": entry}})
        row: Row = next(rows([told], found, {where: extras(where).get("references")}))
    except FabricheckError as error:
        return CHANGED, str(error), ()
    return row.kind, row.how, row.sources
