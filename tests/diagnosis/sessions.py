"""Sessions of healthy and faulty nodes of four models, as documents that the real checks judge.

    session = healthy("h200")
    session.draw(rng, factors(rng, session.documents))
    session.apply({("stream_local", 3): 0.9})
    session.failures()

That of mi250x is simulated with the parameters of its model. The others are derived from the peaks
of the node model, and from assumptions where it states none (`platform_of`): they say nothing of
what a real node reaches.

`python -m proof.diagnosis --simulate` simulates the healthy nodes anew.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, SMALLER_IS_BETTER
from fabricheck.node import NodeModel, load
from fabricheck.node.overlaid import apply_overlay
from fabricheck.node.overlay import Overlay, OverlayFile
from fabricheck.node.platform import changed, routes
from fabricheck.references import rules
from fabricheck.references.entries import plain
from fabricheck.results import document
from fabricheck.rfm import relative
from fabricheck.rfm.launchers import NODE_PLUGIN, SmpirunLauncher
from fabricheck.rfm.ranks import RanksCheck
from limits import drawn_sessions
from limits.drawn_sessions import Drawn as Session
from limits.drawn_sessions import Judged, Limits, chosen_once, factors

__all__ = ["MODELS", "Session", "chosen_once", "factors", "healthy", "simulated"]

#: By node model the partition whose checks run and judge.
MODELS = {
    "mi250x": "local:sim-mi250x",
    "mi250": "jureca:mi250",
    "a100-booster": "leonardo:booster",
    "h200": "h200:x8",
}

DOCUMENTS = drawn_sessions.OUTPUTS / "diagnosis"
PROGRAMS = ROOT / "build" / "sim" / "bin"
PROGRAM_NAMES = ("stream", "memcpy", "managed", "p2p", "pingpong", "mpi")

#: Checks of the set node that say nothing of the speed of a part, or nothing that others do not.
LEFT_OUT = ("affinity", "mpi_data", "node_topology", "p2p_defaults")

#: Metrics that a healthy node of the assumed noise misses often.
NOT_JUDGED: frozenset[tuple[str, str]] = frozenset()

#: Parts of the host link that the platform of a node has where its model states nothing.
PAGEABLE = 0.4
MIGRATION = 0.1
#: Part of a path or of the host link that a copy engine has where its model states nothing.
ENGINE = 0.9

#: What no measured rate depends on.
HOST_MEMORY, CACHE, COMPUTE_UNITS = 512 << 30, 8 << 20, 100

#: The part of a reference that a value may be worse by where no entry says more. At least it is
#: what members of a node may be behind each other, and some percent for the day.
TOLERANCE = 0.05
OF_A_DAY = 2.0

#: Of a program.
TIME_LIMIT_S = 300

#: What the environment would change in a simulation.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_", "ROC_", "GPU_")


def healthy(model: str) -> Session:
    """Return the session of a healthy node."""
    return drawn_sessions.of(_documents(model), list(_judged(model)))


def simulated(
    model: str,
    checks: Collection[str],
    resources: Sequence[Any] = (),
    links: Sequence[Mapping[str, Any]] = (),
) -> Session:
    """Simulate some checks of a node with a fault; they are judged as of a healthy one.

    :param resources: of an overlay: mappings as in a file of `config/nodes/overlays`.
    :param links: the same of links; not of a model with a switch.
    """
    content = {"name": "a fault", "description": "A fault.", "resources": list(resources),
               "links": [dict(one) for one in links]}  # fmt: skip
    fault = OverlayFile.model_validate(content) if resources or links else None
    platform = platform_of(load(model), fault)
    launches = [one for one in _checks(model)[0] if one.check in checks]
    judged = [one for one in _judged(model) if one.check in checks]
    return drawn_sessions.of(dict(_run(model, launches, platform)), judged)


def platform_of(node: NodeModel, fault: OverlayFile | None = None) -> dict[str, Any]:
    """Return a platform for the runtime: what the model states, else peaks and assumptions."""
    if fault is not None and fault.links:
        alone = OverlayFile(name=fault.name, description=fault.description, links=fault.links)
        node = apply_overlay(node, Overlay("links", "links", "", MappingProxyType({}), alone))
    platform = routes(node)
    platform["node"]["overlay"] = None
    for link in platform["links"]:
        if link["gbs"] is None:
            link["gbs"] = _assumed(node, link["name"])
    if node.simulation is None:
        platform["message_cost"]["small_bytes"] = 1024
        for domain in platform["domains"]:
            domain["memory_bytes"] = HOST_MEMORY
        for device in platform["devices"]:
            device |= {"cache_bytes": CACHE, "compute_units": COMPUTE_UNITS}
    return changed(platform, fault.resources, "fault") if fault is not None else platform


def _assumed(node: NodeModel, name: str) -> float:
    """Return the bandwidth of a resource of which the model states none."""
    devices = [int(one) for one in re.findall(r"device(\d+)", name)]
    host_link = node.device(devices[0]).host_link_gbs
    if name.startswith("pageable copies"):
        return PAGEABLE * host_link
    if name.startswith("page migration"):
        return MIGRATION * host_link
    assert name.startswith("copy engine"), name
    return ENGINE * (node.peer_peak_gbs(*devices) if len(devices) == 2 else host_link)


@dataclass(frozen=True)
class _Launch:
    """How a check starts its program. devices: that of each rank; None of a program of one."""

    check: str
    program: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    devices: tuple[int, ...] | None


@dataclass(frozen=True)
class _Stated:
    """A metric of a check with its entry. by_rule: the entry is not the check's own."""

    check: str
    metric: Any
    entry: Sequence[Any]
    by_rule: bool
    population: Mapping[str, Sequence[Any]]

    def limits(self, value: float, node: NodeModel) -> Limits:
        """Return the limits, of a healthy value where the metric does not compare the node."""
        reference, lower, upper, unit = self.entry
        if isinstance(self.metric, (relative.PeerRatio, relative.OfLinks, relative.OfSingle)):
            value = reference
        else:
            smaller = unit in SMALLER_IS_BETTER
            if self.by_rule or (lower is None and upper is None):
                lower, upper = (None, TOLERANCE) if smaller else (-TOLERANCE, None)
            least = (
                rules.allowed_percent(relative.kind_of_metric(self.metric, node)) + OF_A_DAY
            ) / 100
            lower = None if lower is None else -max(-lower, least)
            upper = None if upper is None else max(upper, least)
        low, high = (None if one is None else value * (1 + one) for one in (lower, upper))
        return low, high


@cache
def _checks(model: str) -> tuple[list[_Launch], list[_Stated]]:
    """Return how the checks of a model's partition start their programs, and their metrics."""
    launches, stated = [], []
    with drawn_sessions.checks_of(MODELS[model]) as checks:
        for check in checks:
            name = type(check).__name__
            placed = name.startswith("pingpong_") and not name.endswith(("_scan", "_single"))
            if name in LEFT_OUT or not ("node" in check.tags or placed):
                continue
            if check.program not in PROGRAM_NAMES:
                continue  # of a library that is not simulated
            devices = tuple(check.rank_devices) if isinstance(check, RanksCheck) else None
            variables = {key: str(value) for key, value in check.env_vars.items()}
            line = tuple(map(str, check._command_line()))
            launches.append(_Launch(name, check.program, line, variables, devices))
            for metric in drawn_sessions.measured_metrics(check):
                entry, by_rule = plain(check.entries[metric.name]), metric.name in check.rules_used
                stated.append(_Stated(name, metric, entry, by_rule, check.population()))
    return launches, stated


@cache
def _judged(model: str) -> tuple[Judged, ...]:
    """Return the metrics of the healthy documents, with limits as a calibration makes them."""
    documents = _documents(model)
    found = []
    for one in _checks(model)[1]:
        if one.check in documents and (one.check, one.metric.name) not in NOT_JUDGED:
            value = one.metric.figure(documents[one.check], one.population).value
            limits = one.limits(value, load(model))
            found.append(Judged(one.check, one.metric, limits, one.population, value))
    return tuple(found)


def _documents(model: str) -> dict[str, Any]:
    """Return the documents of a healthy node by check."""
    return {
        check: document.parse(text, f"{model}: {check}") for check, text in _texts(model).items()
    }


@cache
def _texts(model: str) -> dict[str, str]:
    content = gzip.decompress((DOCUMENTS / f"{model}.json.gz").read_bytes())
    return {check: json.dumps(own) for check, own in json.loads(content).items()}


def _run(
    model: str, launches: Sequence[_Launch], platform: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Run the programs of checks on a platform; yield their documents."""
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as name:
        folder = Path(name)
        (folder / "node.json").write_text(json.dumps(platform))
        for launch in launches:
            own = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
            result = folder / "result.json"
            result.unlink(missing_ok=True)
            done = subprocess.run(
                _command(launch, folder),
                cwd=folder,
                env=own | dict(launch.variables) | {ENV_SIMULATED_NODE: "node.json"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIME_LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, f"{model} {launch.check}: {done.stdout[-2000:]}"
            found = document.load(result)
            assert found["complete"], f"{model} {launch.check}: {found['outcome']}"
            yield launch.check, found


def _command(launch: _Launch, folder: Path) -> list[str]:
    program = [str(PROGRAMS / launch.program), *launch.arguments]
    if launch.devices is None:
        return program
    launcher = SmpirunLauncher()
    launcher.platform = str(PROGRAMS / NODE_PLUGIN)
    launcher.hosts = [f"device{device}" for device in launch.devices]
    job = SimpleNamespace(num_tasks=len(launch.devices), workdir=folder)
    return [*launcher.command(job), *program]


def write(model: str) -> Path:
    """Simulate the healthy node of a model, and write its documents."""
    documents = dict(_run(model, _checks(model)[0], platform_of(load(model))))
    path = DOCUMENTS / f"{model}.json.gz"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(documents, separators=(",", ":")) + "\n"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path
