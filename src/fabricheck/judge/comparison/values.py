"""The values of one partition on one node, and the columns that compared values must share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabricheck.core.vocabulary import ENGINE_SWITCHES
from fabricheck.judge.comparison.judging import SIMULATED_FLOOR, Estimate, estimate_of, joined
from fabricheck.judge.comparison.pairing import NodeChecks
from fabricheck.results import table
from fabricheck.results.table import Check, Metric, Series

#: The experiment of every NUMA domain with every device.
OF_DOMAINS = "E4"

#: Columns and their values.
Columns = tuple[tuple[str, Any], ...]


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

    @property
    def kind(self) -> str:
        """The common properties of a group of series: experiment, operation, memory and role."""
        row = self.row
        if isinstance(row, Metric):
            return "metric"
        memory = "-".join(
            dict.fromkeys(
                one.removeprefix("host-") for one in (row.source_memory, row.destination_memory)
            )
        )
        parts = [row.experiment, row.operation, memory.replace("device-peer", "peer")]
        if row.role != "single":
            parts.append(row.role)
        if row.direction == "both-ways" and "both" not in row.operation:
            parts.append("both ways")
        return " ".join([*parts, *([row.movement] if row.movement else [])])

    @property
    def place(self) -> str:
        """The devices or ranks, NUMA domains and block size; for a metric, its name."""
        row = self.row
        if isinstance(row, Metric):
            return row.metric
        domains = [f"N{one}" for one in dict.fromkeys(_domains(row)) if one is not None]
        block = [f"block {row.block_size}"] if row.block_size else []
        in_place = ["in place"] if row.in_place else []
        typed = [row.datatype] if row.datatype and row.experiment == "E12" else []
        variant = [row.variant] if row.variant else []
        return ", ".join(
            [" ".join([_taking_part(row), *domains]), *block, *variant, *typed, *in_place]
        )


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join("none" if one is None else str(one) for one in value) or "none"
    return "none" if value is None else str(value)


def _metric_key(row: Metric) -> Key:
    """Return the key of a metric."""
    return Key(row.of.check or "", (("metric", row.metric),), (("unit", row.unit),), row)


def _series_key(row: Series) -> Key:
    """Return the key of a series.

    domains: the NUMA domains in E4, which measures them; empty elsewhere, where the domain near the
    device or rank is used, whatever its number. engines_off: the variables that turn AMD's copy
    engines off. shared_by: the number of engines that share a copy, where known and more than one.
    """
    subject = {
        "program": row.program,
        "experiment": row.experiment,
        "operation": row.operation,
        "role": row.role,
        "device": row.device,
        "device_set": row.devices,
        "source": (row.source_memory, row.source_device),
        "destination": (row.destination_memory, row.destination_device),
        "engine": row.engine,
        "direction": row.direction,
        "ranks": row.ranks,
        "placement": row.placement,
    }
    terms = {
        "unit": row.unit,
        "bytes_counted": row.bytes_counted,
        "size": row.bytes,
        "block_size": row.block_size,
        # Documents from before these were recorded have the defaults.
        "elements": row.elements or (1 if row.engine == "kernel" else None),
        "loads": row.loads or ("plain" if row.engine == "kernel" else None),
        "grid": row.grid,
        "datatype": row.datatype,
        "movement": row.movement,
        "in_place": row.in_place,
        "domains": _domains(row),
        "engines_off": _engines_off(row),
        "shared_by": row.engines if row.ganged else None,
    }
    return Key(row.of.check or "", tuple(subject.items()), tuple(terms.items()), row)


def _domains(row: Series) -> tuple[int | None, ...]:
    return (row.source_domain, row.destination_domain) if row.experiment == OF_DOMAINS else ()


def _engines_off(row: Series) -> tuple[str, ...]:
    if row.of.runtime not in ("rocm", "sim"):
        return ()
    return tuple(name for name in ENGINE_SWITCHES if row.document["environment"].get(name) == "0")


def _taking_part(row: Series) -> str:
    """Return the device, pair or ranks taking part, and the number of others at work."""
    ends = (row.source_device, row.destination_device)
    if row.ranks and row.direction == "collective":
        return f"{len(row.ranks)} ranks"
    if row.device is None and row.ranks:
        return f"ranks {_pair(row.ranks) if len(row.ranks) == 2 else len(row.ranks)}"
    if row.device is None:
        every = ",".join(map(str, row.devices))
        return f"devices {every}" if len(row.devices) > 1 else f"device {every}"
    if None not in ends and ends[0] != ends[1]:
        return _pair(ends)
    others = {*row.devices, *(end for end in ends if end is not None)} - {row.device}
    if others and row.role == "share":
        return f"device {row.device} of {len(row.devices)}"
    if others:
        return f"device {row.device} and {','.join(map(str, sorted(others)))}"
    return f"device {row.device}"


def _pair(two: tuple[int | None, ...]) -> str:
    return "{} to {}".format(*two)


#: The terms that a metric aggregates over its series: all but places and block sizes.
_BASIS = ("bytes_counted", "size", "datatype", "movement", "in_place", "engines_off", "shared_by")


def estimates(side: NodeChecks) -> dict[Key, Estimate]:
    """Return the values by key; for a repeated check, the median of its repetitions."""
    several: dict[Key, list[Estimate]] = {}
    for row in side.checks:
        series = [(_series_key(one), estimate_of(one)) for one in table.series(row, None)]
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
        key = _metric_key(row)
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
