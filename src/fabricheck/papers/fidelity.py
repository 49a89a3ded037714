"""Fidelity: the agreement of a simulated node with published values of real ones.

The simulated programs are run, each run of the plan once, and values are read from their documents.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.show import enumerated
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, BytesOfCopy
from fabricheck.node import NodeModel
from fabricheck.node.placement import placements
from fabricheck.node.system import platform_json
from fabricheck.papers.fidelity_plan import (
    Place,
    Plan,
    PlanFile,
    ProgramRun,
    Read,
    Row,
    Statement,
    Table,
    plan_path,
    read_plan,
)
from fabricheck.references.published import Record
from fabricheck.results import document
from fabricheck.tools import runner
from fabricheck.tools.runner import ProgramFailed

#: The fraction of predicted records that should be reproduced, for bandwidths and latencies.
AIM = 0.95


#: The platform of simulated ranks, in the folder of the programs.
_PLATFORM = "libfabricheck_node.so"

#: The folder of the simulated programs in the source tree.
_OWN_PROGRAMS = ROOT / "build" / "sim" / "bin"

#: The time limit of one run in seconds; all runs together take a few seconds.
TIME_LIMIT = 300

#: Variables that would change a simulation.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_")

#: Bytes that a kernel or a copy moves, for each byte of a message.
_PER_MESSAGE: dict[BytesOfCopy, int] = {"once": 1, "read+write": 2}

_Documents = Mapping[str, Mapping[str, Any]]


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
    """The whole comparison of a node: the tables of its plan, with what was simulated."""

    plan: Plan
    tables: Mapping[str, tuple[Table, ...]]
    statements: tuple[Judged, ...]

    def share(self, *, latency: bool, beside: bool = False, aim: str | None = None) -> Share:
        """Return how many predicted bandwidths or latencies are reproduced.

        :param beside: also count the rows shown beside the predicted ones.
        :param aim: count only the experiments of that aim of the plan.
        """
        file = self.plan.file
        counted = file.experiments if aim is None else file.aims[aim].experiments
        experiments = {name for experiment in counted for name in file.experiments[experiment]}
        tables = (*self.tables["predicted"], *(self.tables["beside"] if beside else ()))
        rows = [
            row
            for row in chain.from_iterable(table.rows for table in tables)
            if row.record.is_latency == latency and row.record.experiment in experiments
        ]
        rows.sort(key=lambda row: row.record.id)
        rows.sort(key=lambda row: math.inf if row.deviation is None else abs(row.deviation),
                  reverse=True)  # fmt: skip
        return Share(
            n=len(rows),
            within=sum(row.within for row in rows),
            distinct=len(
                {f"{row.record.unit} {row.simulated:.6g}" for row in rows if row.simulated}
            ),
            tolerance=file.tolerance.latency if latency else file.tolerance.bandwidth,
            worst=tuple(rows[:3]),
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
    return evaluate(plan, run_all(plan.file, node, programs or _OWN_PROGRAMS))


def programs_of(plan: PlanFile) -> list[str]:
    """Return the files in a folder of programs that the runs of a plan need."""
    several = any(run.placement or run.ranks for run in plan.runs.values())
    return sorted({run.program for run in plan.runs.values()} | ({_PLATFORM} if several else set()))


def run_all(plan: PlanFile, node: NodeModel, folder: Path) -> dict[str, dict[str, Any]]:
    """Run every run of a plan once, and return the documents by the run's name.

    :param folder: of the programs, built for the sim runtime.
    :raises NotFoundError: when a program is missing.
    :raises ProgramFailed: when one fails, with its own last sentence.
    :raises InvalidInputError: when a document is not of a simulation of this node.
    """
    for program in programs_of(plan):
        if not (folder / program).is_file():
            raise NotFoundError(
                f"There is no simulated program {folder / program}: build it with 'cmake -G Ninja "
                "-S . -B build/sim -DFABRICHECK_RUNTIME=sim -DFABRICHECK_MPI=ON && cmake --build "
                "build/sim', or name its folder with --programs."
            )
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as name:
        temporary = Path(name)
        platform = temporary / "node.json"
        platform.write_text(platform_json(node), encoding="utf-8")
        return {
            key: _run(key, run, node, folder, platform, temporary / f"{key}.json")
            for key, run in plan.runs.items()
        }


def command(run: ProgramRun, node: NodeModel, folder: Path, temporary: Path) -> list[str]:
    """Return the command of a run, without its output; the hosts of ranks are written to a file.

    Every rank runs on the host of its device. With a placement it is bound to a core, and its
    memory is in the NUMA domain of that core.

    :param folder: of the programs, built for the sim runtime.
    :param temporary: a folder for the file of hosts.
    :raises InvalidInputError: for a placement that the node does not have.
    """
    program = [str(folder / run.program), *run.arguments.split()]
    if run.placement is not None:
        placement = placements(node).get(run.placement)
        if placement is None:
            raise InvalidInputError(f"{node.name} has no placement '{run.placement}'.")
        devices = placement.devices
        program += ["--placement", placement.name]
        program += ["--map", ",".join(map(str, devices)), "--bind", placement.map_cpu]
    elif run.ranks is not None:
        devices = tuple(range(run.ranks))
    else:
        return program
    hosts = temporary / "hosts"
    hosts.write_text("".join(f"device{device}\n" for device in devices), encoding="utf-8")
    launcher = ["smpirun", "-np", str(len(devices)), "-platform", str(folder / _PLATFORM)]
    return [*launcher, "-hostfile", str(hosts), "--log=root.thresh:error", *program]


def _run(
    name: str, run: ProgramRun, node: NodeModel, folder: Path, platform: Path, output: Path
) -> dict[str, Any]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(_VARIABLES)}
    line = [*command(run, node, folder, output.parent), "--output", str(output)]
    what = f"the run '{name}' of {run.program} on {node.name}"
    variables = inherited | {ENV_SIMULATED_NODE: str(platform)} | run.environment
    try:
        done = runner.run(line, TIME_LIMIT, variables)
    except OSError as error:
        raise ProgramFailed(f"{line[0]} cannot be run ({error.strerror}).") from None
    done.require_good(what, TIME_LIMIT, done.err)
    try:
        document_: dict[str, Any] = dict(document.load(output))
    except FabricheckError as error:
        raise ProgramFailed(f"{what} left no usable document: {error}") from None
    if not document_["complete"]:
        raise ProgramFailed(f"{what} left an incomplete document.")
    if document_["clock"] != "simulated":
        raise InvalidInputError(f"{what} was not simulated: its clock is {document_['clock']}.")
    identity = document_.get("node") or {}
    if (identity.get("name"), identity.get("digest"), identity.get("overlay")) != (
        node.name,
        node.sha256,
        None,
    ):
        raise InvalidInputError(f"{what} simulated another node, or a changed one.")
    return document_


def value_of(documents: _Documents, read: Read, place: Place, node: NodeModel) -> float:
    """Return the simulated value of a place, converted to the unit of the publication.

    :param place: empty for the mean of all ranks, or a sum of several.
    :returns: GB/s, us or percent.
    :raises InvalidInputError: when there is not exactly one such series, or its unit cannot be
        converted.
    """
    if not place and read.rank:
        ranks = _ranks(documents, read)
        return sum(value_of(documents, read, rank, node) for rank in ranks) / len(ranks)
    parts = [_series(documents, read, operation, place, node) for operation in read.operations]
    what = (
        f"the run '{enumerated(sorted(read.runs))}', operation "
        f"{enumerated(sorted(read.operations))}, place {_text(place)}"
    )
    units = {series["unit"] for series in parts}
    latency = read.counts is None and read.convert is None
    if units != {"us" if latency else "GB/s"}:
        kind = "latency" if latency else "bandwidth"
        raise InvalidInputError(
            f"{what}: it is in {enumerated(sorted(units))}, which is not a {kind}."
        )
    if latency:
        return float(sum(series["median"] for series in parts))
    times = sum(series["bytes_moved"] / series["median"] for series in parts)  # ns
    if read.counts is None or read.convert is not None:
        return float(times) * 1e-3
    moved = sum(series["bytes_moved"] / _PER_MESSAGE[series["bytes_counted"]] for series in parts)
    value = float(_PER_MESSAGE[read.counts] * moved / times)
    if read.percent_of is None:
        return value
    if len(place) != 2:
        raise InvalidInputError(f"{what}: only a pair has a path's peak.")
    peak = node.peer_peak_gbs(*place) * (2 if read.percent_of == "path-both" else 1)
    return 100 * value / peak


def _series(
    documents: _Documents, read: Read, operation: str, place: Place, node: NodeModel
) -> Mapping[str, Any]:
    all_series = [series for run in read.runs for series in documents[run]["series"]]
    matching = [
        series
        for series in all_series
        if series["operation"] == operation
        and _is_of(series, read, place)
        and read.bytes in (None, series["bytes"])
        and (read.domain is None or read.domain == _distance(series, node))
    ]
    if read.domain == "far" and matching:
        return dict(min(matching, key=lambda series: series["median"]))
    if len(matching) != 1:
        raise InvalidInputError(
            f"The run '{enumerated(sorted(read.runs))}' has {len(matching)} series of operation "
            f"{operation} at place {_text(place)}; exactly one is required."
        )
    return dict(matching[0])


def _is_of(series: Mapping[str, Any], read: Read, place: Place) -> bool:
    """Whether a series belongs to a place: for a set, its sum; for a rank, its share."""
    if not place:
        return bool(series["role"] == "sum")
    if read.rank:
        return series["role"] == "share" and (series["device"],) == place
    return series["role"] != "share" and tuple(series["device_set"]) == place


def _ranks(documents: _Documents, read: Read) -> list[Place]:
    """Return the places of the ranks of a run, in the order of their devices."""
    all_series = [series for run in read.runs for series in documents[run]["series"]]
    devices = {series["device"] for series in all_series if series["role"] == "share"}
    if not devices:
        raise InvalidInputError(
            f"The run '{enumerated(sorted(read.runs))}' has no series of several ranks."
        )
    return [(device,) for device in sorted(devices)]


def _distance(series: Mapping[str, Any], node: NodeModel) -> str:
    """Return near if the host memory is in the NUMA domain of the series' device, else far."""
    domains = {series[side]["numa_domain"] for side in ("source", "destination")}
    return "near" if node.device(series["device_set"][0]).domain in domains else "far"


def _text(place: Place) -> str:
    return "-".join(map(str, place)) or "ranks"


def evaluate(plan: Plan, documents: _Documents) -> Fidelity:
    """Compare documents, by the name of their run, with published values."""

    def simulated(row: Row) -> Row:
        if row.read is None:
            return row
        return replace(row, simulated=value_of(documents, row.read, row.place, plan.node))

    tables = {
        kind: tuple(replace(table, rows=tuple(map(simulated, table.rows))) for table in some)
        for kind, some in plan.tables.items()
    }
    judged = (_judged(statement, plan, documents) for statement in plan.file.statements)
    return Fidelity(plan, tables, tuple(judged))


def _judged(statement: Statement, plan: Plan, documents: _Documents) -> Judged:
    def simulated(read: Read, place: Place) -> float:
        return value_of(documents, read, place, plan.node)

    read, against, lost = statement.read, statement.against, statement.lost
    places = [] if statement.places is None else plan.places(statement.places)
    if statement.ratio is not None:
        above, below = (tuple(map(int, text.split(","))) for text in statement.ratio)
        values = [simulated(read, above) / simulated(read, below)]
    else:
        values = [simulated(read, place) for place in places]
    if against is not None:
        whole = [simulated(against, place) for place in places]
        values = [1 - value / full for value, full in zip(values, whole, strict=True)]
    if lost is not None:
        unit, (published, holds) = "ratio", _by_parts(statement, plan, values)
        named = tuple(name.format(rank="*") for name in (lost.records, lost.below))
    else:
        named = statement.records
        unit = plan.record(named[0]).unit
        if against is not None and unit == "percent":
            values = [100 * value for value in values]
        published, holds = _by_records(statement, plan, values)
    fitted = {(row.read, row.place) for table in plan.tables["fitted"] for row in table.rows}
    return Judged(
        title=statement.title,
        records=named,
        published=published,
        n=len(values),
        fitted=sum((read, place) in fitted for place in places),
        low=min(values),
        high=max(values),
        unit=unit,
        holds=holds,
    )


def _by_records(statement: Statement, plan: Plan, values: list[float]) -> tuple[str, bool]:
    """Return what the records of a statement say, and whether the values agree."""
    records = [plan.record(name) for name in statement.records]
    first, last = records[0], records[-1]
    if statement.near is not None:
        # A deviation from a published 0 is no fraction; the values themselves are compared.
        most = plan.file.tolerance.allowed(first) * (first.value or 1)
        return f"about {first.value:g}", all(abs(value - first.value) <= most for value in values)
    if statement.between is not None:
        return f"{first.value:g} to {last.value:g}", all(
            first.value <= _printed(value, first) and _printed(value, last) <= last.value
            for value in values
        )
    return f"below {first.value:g}", all(value < first.value for value in values)


def _by_parts(statement: Statement, plan: Plan, values: list[float]) -> tuple[str, bool]:
    """Return the fractions by which records are lower than others, and whether values agree."""
    lost = statement.lost
    assert lost is not None
    parts = [1 - lower.value / base.value for lower, base in plan.lost_records(statement)]
    published = f"{min(parts):.2f} to {max(parts):.2f}"
    if lost.above is not None:
        return published, all(value > lost.above for value in values)
    return published, all(abs(value) <= (lost.within or 0) for value in values)


def _printed(value: float, record: Record) -> float:
    """Round a value to the last printed digit of a record."""
    return round(round(value / record.step) * record.step, 9)
