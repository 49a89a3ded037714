"""Nodes of AMD's models that are drafted from what their driver tells, and measured as local:gpu.

The driver is a stand-in: its description states what the node model of `config/nodes` does. The
draft, with the parameters of a simulation, is simulated; the checks of `local:gpu` measure it, and
floors, peers and peaks of the draft judge it. Parameters that a model lacks are those of MI250X.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import inventories
from fabricheck.core.checkout import ROOT
from fabricheck.node import NodeModel, load
from fabricheck.node.loading import available
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.drafting import drafted
from proof.faults.sessions import Said, Session, Site

#: The models of AMD's nodes.
MODELS = tuple(name for name in available() if load(name).vendor == "amd")

#: The checks of the set node that say what the rules of any node judge.
CHECKS = ("node_topology", "stream_local", "memcpy_near", "p2p_engine", "p2p_kernel")

#: By model the parts that the mode CPX makes of a device; others have no such mode.
PARTS = {"mi300x": 8, "mi300a": 6, "mi325x": 8, "mi355x": 8}

#: What the simulation needs and no driver tells: the memory of a NUMA domain, in GB/s.
DOMAIN_GBS = 400.0

#: The partition of any machine, with simulated programs in the place of those for its GPUs.
SIMULATED = """

(local,) = site_configuration["systems"]
gpu = local["partitions"][-1]
assert gpu["name"] == "gpu"
gpu["environs"] = ["sim"]
gpu["features"].append("simulated")
gpu["extras"]["mpi_launcher"] = "smpirun"
for one in site_configuration["environments"]:
    if one["name"] == "sim":
        one["env_vars"] = [[this_machine.NODE, NODE]]
"""


@dataclass(frozen=True)
class AnyNode(Site):
    """The partition `local:gpu`, of a simulated node."""

    def settings(self, folder: Path) -> tuple[Path, str]:
        """Return the folder of the configuration and the name of the partition."""
        config = folder / "config"
        shutil.copytree(ROOT / "config", config, ignore=shutil.ignore_patterns("__pycache__"))
        path = config / "sites" / "local.py"
        path.write_text(path.read_text() + SIMULATED)
        return config, "local:gpu"


def driver(node: NodeModel, parts: int = 1) -> dict[str, Any]:
    """Return what the driver tells of a node, of which a mode may make parts of the devices."""
    told = inventories.composed(node)
    kind = {"Infinity Fabric": "xgmi", "shared memory": "package"}.get(node.host_link_type, "pcie")
    speed = 16.0 if "4.0" in node.host_link_type else 32.0
    rates = {link.peak_gbs for link in node.links.values()}
    for device in told["devices"]:
        rate = node.devices[device["index"]].host_link_gbs if kind == "xgmi" else None
        device["host_link"] = {"kind": kind, "gb_per_s": rate}
        pcie = device["pcie"] | {"gt_per_s": speed, "gt_per_s_max": speed}
        device["pcie"] = pcie if kind == "pcie" else None
    for way in told["links"]:
        way["gb_per_s"] = min(rates) if way["links"] else None
    if parts > 1:
        told["devices"] = [
            one | {"index": parts * one["index"] + part, "compute_partition": "CPX"}
            for one in told["devices"] for part in range(parts)
        ]  # fmt: skip
        every = range(len(told["devices"]))
        told["links"] = [
            {"from": a, "to": b, "kind": "xgmi", "links": None, "gb_per_s": None, "weight": None,
             "hops": None, "peer_access": True}
            for a in every for b in every if a != b
        ]  # fmt: skip
        for one in told["pci_functions"]:
            one |= {"mode": "CPX", "indices": list(range(parts))}
    return told


def draft(folder: Path, name: str) -> Path:
    """Draft a node of a model from its driver, and add what a simulation needs."""
    model = load(name)
    content = yaml.safe_load(drafted(inventory.reported(driver(model)), "mine"))
    peak = max(DOMAIN_GBS, model.device(0).host_link_gbs)
    content["domains"]["memory_peak_gbs"] = {"value": peak, "kind": "assumed", "note": "simulated"}
    own, of_mi250x = (_file(one) for one in (name, "mi250x"))
    content["simulation"] = own.get("simulation", of_mi250x["simulation"])
    content["sources"] |= {**of_mi250x["sources"], **own["sources"]}
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@cache
def _file(name: str) -> Mapping[str, Any]:
    return yaml.safe_load((ROOT / "config" / "nodes" / f"{name}.yaml").read_text())


def session(name: str, fault: str, folder: Path) -> Said:
    """Run a session on a node of a model with a fault in a folder, and judge it."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {"FABRICHECK_NODE": str(draft(folder, name)), "FABRICHECK_MPI": "OFF"}
    overlay, wrapped, checks = OVERLAYS.get(fault, lambda _: {})(load(name)), {}, CHECKS
    if fault == "CPX":
        told = folder / "cpx.json"
        told.write_text(json.dumps(driver(load(name), PARTS[name])))
        wrapped, checks = {"inventory": f'cat "{told}" > "$2"'}, CHECKS[:1]
    return Session(checks, (), overlay, wrapped, variables)(folder, AnyNode())


def gone(node: NodeModel) -> tuple[int, int]:
    """Return the pair whose link is gone."""
    return next(iter(node.links))


#: How a fault changes a node, as in a file of `config/nodes/overlays`.
OVERLAYS = {
    "link gone": lambda node: {"links": [{"pair": [*gone(node)], "gone": True}]},
    "slow memory": lambda node: {
        "resources": [{"names": ["memory of device1"], "bandwidth_factor": 0.8}]
    },
}

FAULTS: Sequence[str] = ("healthy", *OVERLAYS, "CPX")

#: What is measured: CPX only of models that have it.
CASES = [(name, fault) for name in MODELS for fault in FAULTS if fault != "CPX" or name in PARTS]


def named(name: str, fault: str) -> str:
    """Return what must be named of a fault: a component, or the mode."""
    a, b = gone(load(name))
    parts = PARTS.get(name, 1) * len(load(name).devices)
    return {
        "healthy": "",
        "link gone": f"link {a}-{b} gone",
        "slow memory": "HBM of device 1",
        "CPX": f"its GPUs in mode CPX, as {parts} devices: set SPX",
    }[fault]


def is_named(name: str, fault: str, said: Said) -> bool:
    """Whether the verdict of a session is that of the fault, and names it and nothing else."""
    wanted = named(name, fault)
    if fault in OVERLAYS:
        return said.status in ("PERF-FAIL", "HW-FAIL") and said.diagnosed == [[wanted]]
    ((status, sentence),) = said.sentences
    if fault == "CPX":
        return status == said.status == "INCOMPLETE" and wanted in sentence
    # Checks by name accept no node; nothing else speaks against a healthy one.
    only_left_out = status == said.status == "INCOMPLETE" and " left out " in sentence
    return only_left_out and sorted(CHECKS) == [*said.passed]
