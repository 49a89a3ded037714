"""The values of one partition on one node, for each series and each metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabricheck.judge.comparison import keys
from fabricheck.judge.comparison.judging import SIMULATED_FLOOR, Estimate, estimate_of, together
from fabricheck.judge.comparison.keys import Key
from fabricheck.judge.comparison.pairing import NodeChecks
from fabricheck.results import table
from fabricheck.results.table import Check

#: The terms that a metric aggregates over its series: all but places and block sizes.
_BASIS = ("bytes_counted", "size", "datatype", "movement", "in_place", "engines_off", "shared_by")


def estimates(side: NodeChecks) -> dict[Key, Estimate]:
    """Return the values by key; for a repeated check, the median of its repetitions."""
    several: dict[Key, list[Estimate]] = {}
    for row in side.checks:
        series = [(keys.of_series(one), estimate_of(one)) for one in table.series(row, None)]
        # A document with two measurements of one key counts as a repeated check.
        for key, value in (*series, *_metrics(row, series)):
            several.setdefault(key, []).append(value)
    return {key: together(found) for key, found in several.items()}


def _metrics(
    check: Check, series: Sequence[tuple[Key, Estimate]]
) -> Iterator[tuple[Key, Estimate]]:
    if check.clock is None:
        return
    for row in table.metrics(check):
        if row.value is None:
            continue
        key = keys.of_metric(row)
        # Most metrics are the median of a series and have its samples.
        made_of = [series[index][1] for index in row.series or range(len(series))]
        alike = (one for one in made_of if (one.unit, one.median) == (row.unit, row.value))
        own = next(alike, None)
        if row.unit == "count":
            yield key, Estimate(row.value, row.unit, (), True, 0.0, check.clock)
            continue
        if own is None:
            exact = check.clock == "simulated"
            floor = SIMULATED_FLOOR if exact else 0.0
            own = Estimate(row.value, row.unit, (), exact, floor, check.clock)
        basis = (_basis(one) for one, _ in series if (one.check, one.unit) == (key.check, key.unit))
        yield key, replace(own, basis=frozenset(basis))


def _basis(key: Key) -> tuple[object, ...]:
    return tuple(value for name, value in key.terms if name in _BASIS)
