"""The partitions of the sites, from the site files."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core.errors import (
    FabricheckError,
    InvalidInputError,
    NotFoundError,
    UsageError,
)
from fabricheck.core.show import listed
from fabricheck.site import clusters, sites, this_machine

#: A system, a partition or an environment, as in a site file.
Section = Mapping[str, Any]


#: By experiment the features, of a partition and of its environments, with which it has a check.
IMPLIED: Mapping[str, Sequence[str]] = {
    "E1": ("devices stream",),
    "E2": ("devices memcpy",),
    "E3": ("managed_memory managed", "xnack managed"),
    "E4": ("several_domains memcpy",),
    "E5": ("several_devices stream",),
    "E6": ("several_devices ranks pingpong",),
    "E7": ("peers p2p",),
    "E8": ("several_devices peers p2p",),
    "E9": ("several_devices ranks mpi",),
    "E10": ("several_devices ranks mpi",),
    "E11": ("several_devices peers rccl-tests", "several_devices peers nccl-tests"),
    "E12": ("several_devices ranks mpi",),
    "E13": ("peers p2p",),
    "E14": ("several_devices peers p2p",),
    "E15": ("several_devices ranks affinity",),
    "E16": ("nics stream",),
    "E17": ("several_nodes ranks mpi",),
}


def implied(features: set[str]) -> list[str]:
    """Return the experiments that the features of a partition and its environments imply."""
    return [
        experiment
        for experiment, alternatives in IMPLIED.items()
        if any(features.issuperset(words.split()) for words in alternatives)
    ]


def able(gathered: dict[str, list[dict[str, Any]]] | None) -> dict[str, tuple[str, ...]] | None:
    """Return by experiment the partitions, ``system:partition``, whose features imply it.

    A simulated one is marked, as in ``local:sim-mi250x (simulated)``. None where there are no
    sites.

    :param gathered: the content of the site files.
    """
    if gathered is None:
        return None
    partitions: dict[str, list[str]] = {}
    for name, partition in named(gathered):
        features = partition.get("features", [])
        simulated = " (simulated)" if "simulated" in features else ""
        environments = _environments(gathered, name.partition(":")[0], partition)
        provided = (feature for env in environments for feature in env.get("features", []))
        for experiment in implied({*features, *provided}):
            partitions.setdefault(experiment, []).append(f"{name}{simulated}")
    return {experiment: tuple(names) for experiment, names in partitions.items()}


@functools.cache
def known_sites(*folders: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Return the content of the site files, read once per process; None without readable ones.

    A site file is Python and may need its machine, so a broken one is not an error of this command.
    """
    try:
        return sites.gather(*folders)
    except FabricheckError:
        return None


#: Why nothing defines a partition, where no site file is broken.
_NOWHERE = "No site file has this partition."


@functools.cache
def read_site(system: str) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return the content of the site file of a system, and why it lacks what it lacks."""
    try:
        return sites.gather(system=system), _NOWHERE
    except InvalidInputError as error:
        # A site file may need its machine, for example a variable that is set only there.
        return {}, str(error)
    except NotFoundError:
        return {}, _NOWHERE


def named(gathered: Mapping[str, Any] | None) -> Iterator[tuple[str, Section]]:
    """Yield the partitions of sites, each with its name ``system:partition``."""
    for system in (gathered or {}).get("systems", []):
        for partition in system.get("partitions", []):
            yield f"{system['name']}:{partition['name']}", partition


def known(where: str) -> Mapping[str, Any]:
    """Return the site's definition of a partition, ``system:partition``; empty if there is none."""
    return dict(named(read_site(where.partition(":")[0])[0])).get(where, {})


def simulates(where: str) -> bool | None:
    """Whether a partition simulates, by its site file; None where that does not have it."""
    partition = known(where)
    return "simulated" in partition.get("features", ()) if partition else None


def states_gpus(where: str) -> bool:
    """Whether a site states that a partition has GPUs, which are not simulated."""
    partition = known(where)
    types = {device["type"] for device in partition.get("devices", ())}
    return "gpu" in types and "simulated" not in partition.get("features", ())


def extras(where: str) -> Mapping[str, Any]:
    """Return the extras of a partition; empty if no site defines it."""
    values: dict[str, Any] = known(where).get("extras", {})
    return values


def runtime_of(where: str, environment: str) -> str | None:
    """Return the runtime of an environment of a partition; None if no site defines it.

    :param where: ``system:partition``.
    """
    partition = known(where)
    if not partition:
        return None
    system = where.partition(":")[0]
    for environ in _environments(read_site(system)[0], system, partition):
        if environ["name"] == environment:
            runtime: str | None = environ.get("extras", {}).get("runtime")
            return runtime
    return None


@dataclass(frozen=True)
class Target:
    """A partition of a system, with its environments."""

    system: Section
    partition: Section
    environments: Sequence[Section]

    @property
    def name(self) -> str:
        """``system:partition``."""
        return f"{self.system['name']}:{self.partition['name']}"

    @property
    def devices(self) -> int:
        """The number of devices of a node."""
        return sum(int(device["num_devices"]) for device in self.partition["devices"])

    @property
    def architectures(self) -> set[str]:
        """Their architectures."""
        return {str(device["arch"]) for device in self.partition["devices"]}

    def build_command(self, environment: Section) -> str:
        """Return the command that builds the programs of an environment for these devices."""
        return clusters.build_command(environment["extras"], self.architectures)

    def modules(self, environment: Section) -> list[str]:
        """Return the names of the modules that are loaded for an environment, in order."""
        stated = [
            module
            for section in (self.system, self.partition, environment)
            for module in section.get("modules", [])
        ]
        return [module["name"] if isinstance(module, dict) else str(module) for module in stated]

    def exports(self, environment: Section) -> list[str]:
        """Return the shell's exports for an environment, as a job has them after its modules."""
        stated = (
            section.get("env_vars", []) for section in (self.system, self.partition, environment)
        )
        return [f"export {name}={value}" for pairs in stated for name, value in dict(pairs).items()]


def choose(name: str, *folders: Path) -> list[Target]:
    """Return the partitions that ``system`` or ``system:partition`` names.

    :raises UsageError: when there is no such system or partition, listing the existing ones.
    :raises NotFoundError: when there is no such folder.
    :raises InvalidInputError: when a site file cannot be read.
    """
    site = sites.gather(*folders)
    wanted, _, part = name.partition(":")
    systems = {system["name"]: system for system in site["systems"]}
    if wanted not in systems:
        raise UsageError(f"There is no site {wanted!r}; the sites are {listed(sorted(systems))}.")
    system = systems[wanted]
    partitions = {each["name"]: each for each in system["partitions"]}
    if part and part not in partitions:
        if name == this_machine.NAME:
            this_machine.node(required=True)
        raise UsageError(
            f"The site {wanted} has no partition {part!r}; it has {listed(partitions)}."
        )
    chosen = [partitions[part]] if part else list(partitions.values())
    return [Target(system, each, _environments(site, wanted, each)) for each in chosen]


def target(where: str) -> Target | None:
    """Return a partition with its environments by the site file of its system; None without one."""
    system_name, _, name = where.partition(":")
    site, _ = read_site(system_name)
    for system in site.get("systems", []):
        for partition in system["partitions"]:
            if (system["name"], partition["name"]) == (system_name, name):
                return Target(system, partition, _environments(site, system_name, partition))
    return None


def _environments(site: Mapping[str, Any], system: str, partition: Section) -> list[Section]:
    names = {"*", system, f"{system}:{partition['name']}"}
    return [
        each
        for each in site.get("environments", [])
        if each["name"] in partition["environs"]
        and not names.isdisjoint(each.get("target_systems") or ["*"])
    ]
