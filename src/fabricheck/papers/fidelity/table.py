"""The comparison: published and simulated values, deviations, and the summary."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.node import NodeModel
from fabricheck.papers.fidelity.plan import (
    Place,
    Plan,
    Read,
    Row,
    Statement,
    Table,
    lost_records,
    places_of,
    plan_path,
    read_plan,
)
from fabricheck.papers.fidelity.runs import OWN_PROGRAMS, Documents, run_all, value_of
from fabricheck.references.published import Record

#: The fraction of predicted records that should be reproduced, for bandwidths and latencies.
AIM = 0.95


@dataclass(frozen=True)
class Judged:
    """A statement; ``low`` and ``high`` are the extremes of its ``n`` simulated values.

    ``records`` are ids, or patterns of ids with a star. ``fitted`` of the n values were used to fit
    a parameter.
    """

    title: str
    records: tuple[str, ...]
    published: str
    n: int
    fitted: int
    low: float
    high: float
    unit: str
    holds: bool


@dataclass(frozen=True)
class Share:
    """The number of rows within their tolerance; ``distinct`` counts different simulated values."""

    n: int
    within: int
    distinct: int
    tolerance: float
    worst: tuple[Row, ...]

    @property
    def part(self) -> float:
        """The fraction of rows within their tolerance; 1 without rows."""
        return self.within / self.n if self.n else 1.0


@dataclass(frozen=True)
class Fidelity:
    """The whole comparison of a node."""

    node: NodeModel
    plan: Plan
    fitted: tuple[Table, ...]
    predicted: tuple[Table, ...]
    beside: tuple[Table, ...]
    statements: tuple[Judged, ...]

    def share(self, *, latency: bool, beside: bool = False, aim: str | None = None) -> Share:
        """Return how many predicted bandwidths or latencies are reproduced.

        :param beside: also count the rows shown beside the predicted ones.
        :param aim: count only the experiments of that aim of the plan.
        """
        file = self.plan.file
        counted = file.experiments if aim is None else file.aims[aim].experiments
        experiments = {name for experiment in counted for name in file.experiments[experiment]}
        rows = [
            row
            for table in self.predicted + (self.beside if beside else ())
            for row in table.rows
            if row.record.is_latency == latency and row.record.experiment in experiments
        ]
        tolerance = self.plan.file.tolerance
        ordered = sorted(
            rows,
            key=lambda row: (
                -math.inf if row.deviation is None else -abs(row.deviation),
                row.record.id,
            ),
        )
        return Share(
            n=len(rows),
            within=sum(row.within for row in rows),
            distinct=len(
                {f"{row.record.unit} {row.simulated:.6g}" for row in rows if row.simulated}
            ),
            tolerance=tolerance.latency if latency else tolerance.bandwidth,
            worst=tuple(ordered[:3]),
        )


def compare(node: NodeModel, programs: Path | None = None, path: Path | None = None) -> Fidelity:
    """Run the simulated programs of a node's plan, and compare with published values.

    :param programs: the folder of the simulated programs.
    :param path: the plan, ``reference_values/fidelity-NODE.yaml`` by default.
    :raises FabricheckError: for a missing or failing program, an invalid plan or document.
    """
    plan = read_plan(path or plan_path(node), node)
    if node.overlay is not None:
        raise InvalidInputError(
            f"{node.overlay.name}: published values describe healthy nodes only."
        )
    documents = run_all(plan.file, node, programs or OWN_PROGRAMS)
    return evaluate(node, plan, documents)


def evaluate(node: NodeModel, plan: Plan, documents: Documents) -> Fidelity:
    """Compare documents, by the name of their run, with published values."""

    def simulated(tables: Iterable[Table]) -> tuple[Table, ...]:
        return tuple(replace(table, rows=tuple(map(_simulated, table.rows))) for table in tables)

    def _simulated(row: Row) -> Row:
        if row.read is None:
            return row
        return replace(row, simulated=value_of(documents, row.read, row.place, node))

    return Fidelity(
        node,
        plan,
        simulated(plan.fitted),
        simulated(plan.predicted),
        simulated(plan.beside),
        tuple(_judged(statement, node, plan, documents) for statement in plan.file.statements),
    )


def _values(statement: Statement, node: NodeModel, plan: Plan, documents: Documents) -> list[float]:
    def simulated(read: Read, place: Place) -> float:
        return value_of(documents, read, place, node)

    if statement.ratio is not None:
        above, below = (tuple(map(int, text.split(","))) for text in statement.ratio)
        return [simulated(statement.read, above) / simulated(statement.read, below)]
    assert statement.places is not None
    places = places_of(statement.places, node, devices=False, path=plan.path)
    values = [simulated(statement.read, place) for place in places]
    if statement.against is None:
        return values
    full = [simulated(statement.against, place) for place in places]
    percent = any(plan.records.record(name).unit == "percent" for name in statement.records)
    return [
        (1 - value / whole) * (100 if percent else 1)
        for value, whole in zip(values, full, strict=True)
    ]


def _judged(statement: Statement, node: NodeModel, plan: Plan, documents: Documents) -> Judged:
    values = _values(statement, node, plan, documents)
    unit, published, holds = (
        _by_records(statement, plan, values)
        if statement.lost is None
        else _by_parts(statement, node, plan, values)
    )
    named = statement.records
    if statement.lost is not None:
        named = tuple(
            name.format(rank="*") for name in (statement.lost.records, statement.lost.below)
        )
    return Judged(
        statement.title,
        named,
        published,
        len(values),
        _count_fitted(statement, node, plan),
        min(values),
        max(values),
        unit,
        holds,
    )


def _by_records(statement: Statement, plan: Plan, values: list[float]) -> tuple[str, str, bool]:
    """Return unit, published text and whether the values agree with the records of a statement."""
    records = [plan.records.record(name) for name in statement.records]
    first, last = records[0], records[-1]
    if statement.near is not None:
        limit = plan.file.tolerance.allowed(first)
        published = f"about {first.value:g}"
        # A deviation from a published 0 is no fraction; the values themselves are compared.
        holds = all(abs(value - first.value) <= limit * (first.value or 1) for value in values)
    elif statement.between is not None:
        published = f"{first.value:g} to {last.value:g}"
        holds = all(
            first.value <= _printed(value, first) and _printed(value, last) <= last.value
            for value in values
        )
    else:
        published = f"below {first.value:g}"
        holds = all(value < first.value for value in values)
    return first.unit, published, holds


def _by_parts(
    statement: Statement, node: NodeModel, plan: Plan, values: list[float]
) -> tuple[str, str, bool]:
    """Return unit, text and agreement of a statement on the fraction that records are lower."""
    lost = statement.lost
    assert lost is not None
    pairs = lost_records(statement, node, plan.path)
    parts = [1 - plan.records.record(a).value / plan.records.record(b).value for a, b in pairs]
    if lost.above is not None:
        holds = all(value > lost.above for value in values)
    else:
        holds = all(abs(value) <= (lost.within or 0) for value in values)
    return "ratio", f"{min(parts):.2f} to {max(parts):.2f}", holds


def _count_fitted(statement: Statement, node: NodeModel, plan: Plan) -> int:
    """Return how many places of a statement are read from the same series as a fitted record."""
    if statement.places is None:
        return 0
    fitted = {(row.read, row.place) for table in plan.fitted for row in table.rows}
    places = places_of(statement.places, node, devices=False, path=plan.path)
    return sum((statement.read, place) in fitted for place in places)


def _printed(value: float, record: Record) -> float:
    """Round a value to the last printed digit of a record."""
    return round(round(value / record.step) * record.step, 9)
