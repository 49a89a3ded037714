"""The table of E1 to E17 of a partition, and the reference of each metric with its origin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXPERIMENTS
from fabricheck.references import stated
from fabricheck.references.listing import CheckMetrics, Source, rows
from fabricheck.references.published import folder
from fabricheck.references.stated import REDUCED
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Metric, Series
from fabricheck.site.partitions import extras

#: The texts of `Row.outcome`, since colour alone is not accessible.
MISSED, WITHIN, NO_LIMIT, NOT_RUN, NO_VALUE, NO_CHECK = (
    "missed",
    "within",
    "no limit",
    "not run",
    "no value",
    "series without a check",
)


@dataclass(frozen=True)
class Extreme:
    """A value, and its device, pair or rank; empty if unknown."""

    value: float
    where: str


@dataclass(frozen=True)
class Row:
    """One experiment in one partition, by one of its metrics.

    outcome: MISSED and so on. metric: of a check, the one that missed its limit by most, else the
    bandwidth or latency with the smallest margin, without the suffix of how its series were
    reduced; empty if the experiment has no metric here. best, worst: of the series of the metric,
    or its value if these are unknown. limit: as a short text, or the number of rules. reference,
    kind: what the metric is compared with, None without a limit, and its kind. limited, missed: the
    number of metrics of the experiment with a limit, and the number that missed it.
    """

    experiment: str
    title: str
    outcome: str
    metric: str = ""
    unit: str = ""
    best: Extreme | None = None
    worst: Extreme | None = None
    limit: str = ""
    reference: float | None = None
    kind: str | None = None
    limited: int = 0
    missed: int = 0


def experiment_rows(observed: Observed, references: Iterable[Reference]) -> tuple[Row, ...]:
    """Return a row for each of E1 to E17, from the references of a partition."""
    by_experiment: dict[str, list[tuple[Reference, list[Series]]]] = {}
    made_of = grouped(
        ((point.check_row.title, metric.metric), point)
        for point in observed.points
        for metric in observed.metrics_of(point)
    )
    tags = {case.name: case.experiments for case in observed.cases}
    for reference in references:
        check = reference.metric.check_row.title
        series = made_of.get((check, reference.metric.metric), [])
        names = {point.experiment for point in series} or tags.get(check, frozenset())
        # E14 chooses sets of devices from the measurements of E8.
        for name in names & tags.get(check, names) or tags.get(check, names):
            by_experiment.setdefault(name, []).append((reference, series))
    cases = [case for case in observed.cases if not case.skipped]
    ran = {name for case in cases for name in case.experiments}
    measured = {point.experiment for point in observed.points}
    return tuple(
        _row(
            name, title, by_experiment.get(name, []), _without_metric(name in ran, name in measured)
        )
        for name, title in EXPERIMENTS.items()
    )


def _without_metric(ran: bool, measured: bool) -> str:
    """Return the outcome of an experiment that has no metric."""
    if ran:
        return NO_VALUE
    return NO_CHECK if measured else NOT_RUN


def _row(
    name: str, title: str, metrics: list[tuple[Reference, list[Series]]], otherwise: str
) -> Row:
    if not metrics:
        return Row(name, title, otherwise)
    limited = [metric for metric, _ in metrics if metric.limits]
    failed = [reference for reference in limited if reference.metric.recorded.missed]
    shown, series = min(
        enumerate(metrics), key=lambda numbered: (*_place(*numbered[1]), numbered[0])
    )[1]
    metric, outcome = shown.metric, MISSED if failed else WITHIN if limited else NO_LIMIT
    return Row(
        name,
        title,
        outcome,
        f"{metric.check_row.title} {REDUCED.sub('', metric.metric)}",
        metric.unit,
        *_extremes(shown, series),
        _limit(metric) or (count(len(limited), "rule") if limited else ""),
        metric.reference,
        shown.kind,
        len(limited),
        len(failed),
    )


def _limit(metric: Metric) -> str:
    """Return the limits as a short text; empty if there is none."""
    least, most = (
        None if limit is None else f"{limit:.4g}" for limit in (metric.least, metric.most)
    )
    if least is not None and most is not None:
        return f"exactly {least}" if least == most else f"{least} to {most}"
    return f"at least {least}" if least is not None else f"at most {most}" if most else ""


def _place(reference: Reference, series: list[Series]) -> tuple[bool, bool, bool, float]:
    """Return the sort key of a metric: missed, with series of its unit, limited, nearest."""
    margin = 0.0 if reference.metric.margin is None else reference.metric.margin
    has_unit = any(point.unit == reference.metric.unit for point in series)
    return (
        not reference.metric.recorded.missed,
        not has_unit,
        not reference.limits,
        margin if reference.limits else 0.0,
    )


def _extremes(reference: Reference, series: list[Series]) -> tuple[Extreme, Extreme]:
    in_unit = (point for point in series if point.unit == reference.metric.unit)
    ordered = sorted(
        in_unit, key=lambda metric: metric.value if metric.better == "higher" else -metric.value
    )
    ends = [Extreme(point.value, point.place) for point in ordered] or [
        Extreme(reference.metric.value or 0.0, "")
    ]
    return ends[-1], ends[0]


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
        return enumerated(
            f"{word} {limit:.5g}{f' ({100 * part:+.3g} %)' if part else ''}"
            for limit, part, word in (
                (recorded.least, recorded.lower, "at least"),
                (recorded.most, recorded.upper, "at most"),
            )
            if limit is not None
        )


def references_of(observed: Observed) -> tuple[Reference, ...]:
    """Return a row for each metric that has a value."""
    return tuple(Reference(metric, *_origin(observed, metric)) for metric in observed.metrics)


def sources(reference: Reference) -> list[tuple[Source, list[str]]]:
    """Return each document that a reference depends on, with all its places."""
    of_documents = grouped(
        ((source.title, source.system, source.inferred, source.limit), source)
        for source in reference.sources
    )
    return [(places[0], [place.where for place in places]) for places in of_documents.values()]


def _origin(observed: Observed, metric: Metric) -> tuple[str, str, tuple[Source, ...]]:
    """Return kind, explanation and sources: of the rule, the plain test, or today's files."""
    recorded, where = metric.recorded, observed.where
    # ReFrame names a repeated check "name %$REPEAT_NUM=0".
    name = metric.check_row.title.split()[0]
    if observed.recorded is not None and name in observed.recorded.plain:
        return "site", "stated in the test", ()
    try:
        about = {
            "unit": metric.unit,
            "entry": [recorded.reference, recorded.lower, recorded.upper, metric.unit],
            "rule": metric.record and metric.record.rule,
        }
        environment = metric.check_row.environment or ""
        asked = CheckMetrics(name, where, environment, {metric.metric: about})
        named = {where: extras(where).get("references")}
        row = next(rows([asked], stated.references_in(folder()), named, {}))
    except FabricheckError as error:
        return CHANGED, str(error), ()
    return row.kind, row.how, row.sources
