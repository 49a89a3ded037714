"""The values of one partition on one node, and the columns that compared values must share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabricheck.judge.comparison.judging import SIMULATED_FLOOR, Estimate, estimate_of, joined
from fabricheck.judge.comparison.pairing import NodeChecks
from fabricheck.results import table
from fabricheck.results.series import Columns
from fabricheck.results.table import Check, Metric, Series


@dataclass(frozen=True)
class Key:
    """The full key of a metric or a series.

    check: its name today. subject: columns that identify it. terms: columns that describe how it
    was measured; values of one subject under other terms are not comparable. row: the first row.
    """

    check: str
    subject: Columns
    terms: Columns
    row: Metric | Series = field(compare=False, repr=False)

    @property
    def without_terms(self) -> tuple[str, Columns]:
        """The key without its terms."""
        return self.check, self.subject

    @property
    def of_series(self) -> bool:
        """Whether it is the key of a series, not of a metric."""
        return isinstance(self.row, Series)

    @property
    def unit(self) -> str:
        """The unit of its values: GB/s (1e9 bytes per second), us, count or %."""
        return self.row.unit

    @property
    def columns(self) -> dict[str, Any]:
        """All columns by name."""
        return {"check": self.check} | dict(self.subject) | dict(self.terms)

    def differs(self, other: Key) -> list[str]:
        """Return, as text, each term in which two keys of one subject differ."""
        theirs = dict(other.terms)
        return [
            f"{name.replace('_', ' ')} {_said(mine)} and {_said(theirs[name])}"
            for name, mine in self.terms
            if mine != theirs[name]
        ]


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join("none" if item is None else str(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _key(row: Metric | Series) -> Key:
    return Key(row.check_row.check or "", row.subject, row.terms, row)


#: The terms that a metric aggregates over its series: all but places and block sizes.
_BASIS = ("bytes_counted", "size", "datatype", "movement", "in_place", "engines_off", "shared_by")


def estimates(side: NodeChecks) -> dict[Key, Estimate]:
    """Return the values by key; for a repeated check, the median of its repetitions."""
    several: dict[Key, list[Estimate]] = {}
    for row in side.checks:
        series = [(_key(its), estimate_of(its)) for its in table.series(row, None)]
        # A document with two measurements of one key counts as a repeated check.
        for key, value in (*series, *_metrics(row, series)):
            several.setdefault(key, []).append(value)
    return {key: joined(found) for key, found in several.items()}


def _metrics(
    check: Check, series: Sequence[tuple[Key, Estimate]]
) -> Iterator[tuple[Key, Estimate]]:
    if check.clock is None:
        return
    for row in table.metrics(check):
        if row.value is None:
            continue
        key = _key(row)
        # Most metrics are the median of a series and have its samples.
        made_of = [series[index][1] for index in row.series or range(len(series))]
        alike = (
            estimate
            for estimate in made_of
            if (estimate.unit, estimate.median) == (row.unit, row.value)
        )
        estimate = next(alike, None)
        if row.unit == "count":
            yield key, Estimate(row.value, row.unit, (), True, 0.0, check.clock)
            continue
        if estimate is None:
            exact = check.clock == "simulated"
            floor = SIMULATED_FLOOR if exact else 0.0
            estimate = Estimate(row.value, row.unit, (), exact, floor, check.clock)
        basis = (
            tuple(value for name, value in other.terms if name in _BASIS)
            for other, _ in series
            if (other.check, other.unit) == (key.check, key.unit)
        )
        yield key, replace(estimate, basis=frozenset(basis))
