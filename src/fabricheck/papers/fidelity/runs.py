"""Runs of the simulated programs, each once, and reading of values from their documents."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, BytesOfCopy
from fabricheck.node import NodeModel
from fabricheck.node.platform import platform_json
from fabricheck.papers.fidelity.plan import Place, PlanFile, ProgramRun, Read
from fabricheck.results import document
from fabricheck.tools import runner
from fabricheck.tools.runner import ProgramFailed

#: The platform of simulated ranks, in the folder of the programs.
PLATFORM = "libfabricheck_node.so"

#: The folder of the simulated programs in the source tree.
OWN_PROGRAMS = ROOT / "build" / "sim" / "bin"

#: The time limit of one run in seconds; all runs together take a few seconds.
TIME_LIMIT = 300

#: Variables that would change a simulation.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_")

#: Bytes that a kernel or a copy moves, for each byte of a message.
_PER_MESSAGE: dict[BytesOfCopy, int] = {"once": 1, "read+write": 2}

Documents = Mapping[str, Mapping[str, Any]]


def programs_of(plan: PlanFile) -> list[str]:
    """Return the files in a folder of programs that the runs of a plan need."""
    several = any(run.placement or run.ranks for run in plan.runs.values())
    return sorted({run.program for run in plan.runs.values()} | ({PLATFORM} if several else set()))


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
        placement = node.placements().get(run.placement)
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
    launcher = ["smpirun", "-np", str(len(devices)), "-platform", str(folder / PLATFORM)]
    return [*launcher, "-hostfile", str(hosts), "--log=root.thresh:error", *program]


def _run(
    name: str, run: ProgramRun, node: NodeModel, folder: Path, platform: Path, output: Path
) -> dict[str, Any]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_VARIABLES)}
    line = [*command(run, node, folder, output.parent), "--output", str(output)]
    what = f"the run '{name}' of {run.program} on {node.name}"
    variables = kept | {ENV_SIMULATED_NODE: str(platform)} | run.environment
    try:
        done = runner.run(line, TIME_LIMIT, variables)
    except OSError as error:
        raise ProgramFailed(f"{line[0]} cannot be run ({error.strerror}).") from None
    done.require_good(what, TIME_LIMIT, done.err)
    try:
        found: dict[str, Any] = dict(document.load(output))
    except FabricheckError as error:
        raise ProgramFailed(f"{what} left no usable document: {error}") from None
    if not found["complete"]:
        raise ProgramFailed(f"{what} left an incomplete document.")
    if found["clock"] != "simulated":
        raise InvalidInputError(f"{what} was not simulated: its clock is {found['clock']}.")
    identity = found.get("node") or {}
    if (identity.get("name"), identity.get("digest"), identity.get("overlay")) != (
        node.name,
        node.sha256,
        None,
    ):
        raise InvalidInputError(f"{what} simulated another node, or a changed one.")
    return found


def value_of(documents: Documents, read: Read, place: Place, node: NodeModel) -> float:
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
        f"the run '{_named(read.runs)}', operation {_named(read.operations)}, place {_text(place)}"
    )
    units = {series["unit"] for series in parts}
    if read.counts is None and read.convert is None:
        if units != {"us"}:
            raise InvalidInputError(f"{what}: it is in {_named(units)}, which is not a latency.")
        return float(sum(series["median"] for series in parts))
    if units != {"GB/s"}:
        raise InvalidInputError(f"{what}: it is in {_named(units)}, which is not a bandwidth.")
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
    documents: Documents, read: Read, operation: str, place: Place, node: NodeModel
) -> Mapping[str, Any]:
    matching = [
        series
        for run in read.runs
        for series in documents[run]["series"]
        if series["operation"] == operation
        and _is_of(series, read, place)
        and read.bytes in (None, series["bytes"])
        and (read.domain is None or read.domain == _distance(series, node))
    ]
    if read.domain == "far" and matching:
        return dict(min(matching, key=lambda series: series["median"]))
    if len(matching) != 1:
        raise InvalidInputError(
            f"The run '{_named(read.runs)}' has {len(matching)} series of operation {operation} "
            f"at place {_text(place)}; exactly one is required."
        )
    return dict(matching[0])


def _is_of(series: Mapping[str, Any], read: Read, place: Place) -> bool:
    """Whether a series belongs to a place: for a set, its sum; for a rank, its share."""
    if not place:
        return bool(series["role"] == "sum")
    if read.rank:
        return series["role"] == "share" and (series["device"],) == place
    return series["role"] != "share" and tuple(series["device_set"]) == place


def _ranks(documents: Documents, read: Read) -> list[Place]:
    """Return the places of the ranks of a run, in the order of their devices."""
    devices = {
        series["device"]
        for run in read.runs
        for series in documents[run]["series"]
        if series["role"] == "share"
    }
    if not devices:
        raise InvalidInputError(f"The run '{_named(read.runs)}' has no series of several ranks.")
    return [(device,) for device in sorted(devices)]


def _distance(series: Mapping[str, Any], node: NodeModel) -> str:
    """Return near if the host memory is in the NUMA domain of the series' device, else far."""
    domains = {series[side]["numa_domain"] for side in ("source", "destination")}
    return "near" if node.device(series["device_set"][0]).domain in domains else "far"


def _named(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))


def _text(place: Place) -> str:
    return "-".join(map(str, place)) or "ranks"
