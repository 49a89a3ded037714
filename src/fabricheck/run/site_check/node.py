"""The compute node: its devices, cores and NUMA domains, compared with partition and node model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, NotFoundError
from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.node import NodeModel, format_cores, load
from fabricheck.results.settings import numa_balancing
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok, unseen
from fabricheck.site.partitions import Target
from fabricheck.tools.topology import compare, inventory
from fabricheck.tools.topology.host import host_differences

#: The time limit of the drivers' answer, in s.
_TIME_LIMIT_S = 60

#: Requirements that can be checked on a compute node only.
ON_COMPUTE = (
    "The number of devices",
    "The architecture of the devices",
    "The cores that a job may use",
    "NUMA domains and NUMA balancing",
    "Links and addresses of the devices",
)


def check(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield how the node differs from the site file; nothing for a simulated node."""
    runtimes = {environment["extras"]["runtime"] for environment in target.environments}
    if runtimes.isdisjoint(OF_DEVICES):
        return
    if not machine.is_compute:
        yield from map(unseen, ON_COMPUTE)
        return
    try:
        description = _inventory(target)
    except FabricheckError as error:
        yield missing(f"The node's drivers could not be asked: {error}")
        return
    yield from _devices(target, description)
    name = target.partition["extras"].get("node")
    if not name:
        return
    try:
        model = load(name).part(target.devices)
    except FabricheckError as error:
        yield missing(f"The node model of {target.name} cannot be used: {error}")
        return
    yield _cores(model, machine)
    yield _balancing(target, description)
    yield from _as_modelled(model, description)


def _inventory(target: Target) -> Mapping[str, Any]:
    """Return the description of the node by the programs of its devices."""
    (extras, *_) = (environment["extras"] for environment in target.environments
                    if environment["extras"]["runtime"] in OF_DEVICES)  # fmt: skip
    folder = Path(extras["programs"])
    if not (folder / inventory.PROGRAM).is_file():
        raise NotFoundError(
            f"There is no program {folder / inventory.PROGRAM}: build it with "
            f"'{extras['build_command']}'."
        )
    return inventory.ask(folder, _TIME_LIMIT_S)


def _devices(target: Target, description: Mapping[str, Any]) -> Iterator[Finding]:
    found = [device["arch"].split(":")[0] for device in inventory.devices_of(description)]
    if len(found) == target.devices:
        yield ok(f"The node has {len(found)} devices, as {target.name} states.")
    else:
        yield missing(
            f"The node shows {len(found)} devices, but {target.name} states {target.devices}: "
            "request all of them, and check ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES."
        )
    named = ", ".join(f"{number} {arch}" for arch, number in Counter(found).items())
    if set(found) == target.architectures:
        yield ok(f"The architecture of the devices is as stated ({named}).")
    else:
        yield missing(
            f"The devices are {named or 'none'}, but {target.name} states "
            f"{', '.join(sorted(target.architectures))}: choose another partition or node model."
        )


def _cores(model: NodeModel, machine: Machine) -> Finding:
    reserved = {core for domain in model.domains for core in domain.reserved}
    usable = {core for domain in model.domains for core in domain.cores} - reserved
    lacks = usable - machine.cores
    if lacks:
        return missing(
            f"This process may not use cores {format_cores(lacks)}, which {model.name} needs to "
            "bind ranks: request the whole node (--exclusive), or the site reserves other cores "
            "than its node model states."
        )
    free = reserved & machine.cores
    remark = f"; of those that it reserves {format_cores(free)} may be used too" if free else ""
    return ok(f"This process may use all {len(usable)} cores that {model.name} needs{remark}.")


def _balancing(target: Target, description: Mapping[str, Any]) -> Finding:
    setting = numa_balancing(inventory.host_of(description))
    if setting is None:
        return ok("NUMA balancing is off.")
    if target.partition["extras"].get("numa_balancing") == "note":
        return ok("NUMA balancing is on, which the site file makes a note.")
    return missing(setting)


def _as_modelled(model: NodeModel, description: Mapping[str, Any]) -> Iterator[Finding]:
    differences = host_differences(model, inventory.host_of(description))
    yield from map(missing, differences)
    if not differences:
        yield ok(f"NUMA domains are those of {model.name}.")
    if not description["devices"]:
        return
    report = inventory.reported(description)
    compared = compare(model, report)
    # Another number of devices was reported already.
    if report.count == len(model.devices):
        yield from (missing(difference.sentence) for difference in compared.differences)
    if not compared.differences:
        unknown = "" if report.pci else " (their PCI addresses are not reported)"
        yield ok(f"As in {model.name}: {', '.join(compared.compared)}{unknown}.")
