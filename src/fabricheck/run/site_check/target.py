"""Which partition and environments of the site files are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core.errors import UsageError
from fabricheck.site.partitions import require_sites

Section = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """A partition of a system, with the environments that it has there."""

    system: Section
    partition: Section
    environments: Sequence[Section]

    @property
    def name(self) -> str:
        """``system:partition``."""
        return f"{self.system['name']}:{self.partition['name']}"

    @property
    def devices(self) -> int:
        """How many devices a node has."""
        return sum(int(one["num_devices"]) for one in self.partition["devices"])

    @property
    def architectures(self) -> set[str]:
        """Their architectures."""
        return {str(one["arch"]) for one in self.partition["devices"]}

    def modules(self, environment: Section) -> list[str]:
        """Return the names of the modules that are loaded for an environment, in order."""
        stated = [
            one
            for section in (self.system, self.partition, environment)
            for one in section.get("modules", [])
        ]
        return [one["name"] if isinstance(one, dict) else str(one) for one in stated]


def choose(name: str, *folders: Path) -> list[Target]:
    """Return the partitions that ``system`` or ``system:partition`` names.

    :raises UsageError: when there is no such system or partition, with those that there are.
    :raises NotFoundError: when there is no such folder.
    :raises InvalidInputError: when a site file cannot be read.
    """
    gathered = require_sites(*folders)
    wanted, _, part = name.partition(":")
    systems = {system["name"]: system for system in gathered["systems"]}
    if wanted not in systems:
        raise UsageError(f"There is no site {wanted!r}; there are {', '.join(sorted(systems))}.")
    system = systems[wanted]
    partitions = {one["name"]: one for one in system["partitions"]}
    if part and part not in partitions:
        raise UsageError(
            f"The site {wanted} has no partition {part!r}; it has {', '.join(partitions)}."
        )
    chosen = [partitions[part]] if part else list(partitions.values())
    return [Target(system, one, _environments(gathered, wanted, one)) for one in chosen]


def _environments(gathered: Mapping[str, Any], system: str, partition: Section) -> list[Section]:
    names = {"*", system, f"{system}:{partition['name']}"}
    return [
        one
        for one in gathered.get("environments", [])
        if one["name"] in partition["environs"]
        and not names.isdisjoint(one.get("target_systems") or ["*"])
    ]
