"""The values of one side: of each series, and of each metric that ReFrame recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from fabricheck.judge.comparison import subjects
from fabricheck.judge.comparison.judging import SIMULATED_FLOOR, Value, together, value_of
from fabricheck.judge.comparison.sides import Check, Part
from fabricheck.judge.comparison.subjects import Metric, Subject, Terms
from fabricheck.results import split_checks


def values(part: Part) -> dict[Subject | Metric, Value]:
    """Return the values of a partition; of a repeated check the median of its repetitions."""
    several: dict[Subject | Metric, list[Value]] = {}
    for check in part.checks:
        own = dict[Subject | Metric, Value]()
        for subject, value in _series(check):
            if subject in own:
                # A document that measured the same twice: as if the check had been repeated.
                several.setdefault(subject, []).append(own[subject])
            own[subject] = value
        for metric, value in _metrics(check, own):
            own[metric] = value
        for what, value in own.items():
            several.setdefault(what, []).append(value)
    return {what: together(found) for what, found in several.items()}


def _series(check: Check) -> Iterator[tuple[Subject, Value]]:
    document = check.document
    if document is None:
        return
    for subject, series in subjects.of_document(check.name, document):
        yield subject, value_of(series, document["clock"], document["program"]["runtime"])


def _metrics(
    check: Check, series: Mapping[Subject | Metric, Value]
) -> Iterator[tuple[Metric, Value]]:
    if check.case is None or check.document is None:
        return
    clock = check.document["clock"]
    for name, (median, unit) in check.case.values.items():
        metric = Metric(split_checks.of_metric(check.name, name), name, unit)
        basis = frozenset(
            _basis(what.terms)
            for what in series
            if _is_in(what, unit) and what.check == metric.check
        )
        # Most metrics are the median of a series, whose samples then are theirs.
        alike = (one for one in series.values() if (one.unit, one.median) == (unit, median))
        own = next(alike, None)
        if unit == "count":
            yield metric, Value(median, unit, (), True, 0.0, clock)
        elif own is not None:
            yield metric, replace(own, basis=basis)
        elif clock == "simulated":
            yield metric, Value(median, unit, (), True, SIMULATED_FLOOR, clock, basis=basis)
        else:
            yield metric, Value(median, unit, (), False, 0.0, clock, basis=basis)


def _is_in(what: Subject | Metric, unit: str) -> TypeGuard[Subject]:
    return isinstance(what, Subject) and what.unit == unit


def _basis(terms: Terms) -> tuple[object, ...]:
    """Return the terms that a metric sums up over its series, but for places and block sizes."""
    own = (terms.bytes_counted, terms.size, terms.datatype, terms.movement, terms.in_place)
    return (*own, terms.engines_off, terms.shared_by)
