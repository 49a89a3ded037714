"""The site files: what each must have, and gathering them into one ReFrame configuration."""

from __future__ import annotations

import argparse
import functools
import os
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import enumerated, listed
from fabricheck.core.vocabulary import BytesOfCopy, Collective, Runtime, SeriesUnit, StreamOperation
from fabricheck.node.fabric import load_fabric

SHIPPED = ROOT / "config" / "sites"

#: The variable with a folder of further site files, each with its list of checks.
VARIABLE = "FABRICHECK_SITES"

#: The variable with ReFrame's folder of reference files; the settings set it if unset.
PREFIX_VARIABLE = "RFM_REFERENCE_PREFIX"

#: The reference files of the suite.
OWN_FOLDER = ROOT / "reference_values"

#: Files in the folder that hold no references: published values, rules, and values for simulated
#: nodes.
NO_REFERENCES = ("published_values.yaml", "rules.yaml", "fidelity-*.yaml")

#: The pattern of host names of a system that is for every machine without a system.
_ANY_HOST = ".*"

#: The longest quotation of an error in a site file, in characters.
_LONGEST = 300


def folders(shipped: Path = SHIPPED) -> list[Path]:
    """Return the folders of site files: the one in FABRICHECK_SITES, then the suite's."""
    further = os.environ.get(VARIABLE)
    return [*([Path(further)] if further else []), shipped]


def files(*where: Path) -> list[Path]:
    """Return the site files of some folders, in the order in which they are read."""
    return [file for folder in where for file in sorted(folder.glob("*.py"))]


def selected(arguments: Sequence[str]) -> tuple[str, str]:
    """Return the system and the partition that ReFrame's arguments select; empty without one.

    :param arguments: of its command line, which take the place of RFM_SYSTEM.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--system", default=os.environ.get("RFM_SYSTEM", ""))
    named, _ = parser.parse_known_args(list(arguments))
    system, _, partition = named.system.partition(":")
    return system, partition


def gather(*where: Path, system: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return the merged sections of the site files in some folders.

    Systems that match any host name come last: ReFrame selects the first match, as `system_of`.

    :param where: by default those of `folders`.
    :param system: the only system to return; where the file of that name has it, no other is read.
    :raises InvalidInputError: for a file that cannot be read, assigns no ``site_configuration``, or
        lacks what the checks rely on, with its name; for two definitions of the same system,
        partition or environment; and for a folder without site files.
    :raises NotFoundError: without one of the folders, and without the system.
    """
    where = where or tuple(folders())
    for folder in where:
        if not folder.is_dir():
            raise NotFoundError(
                f"There is no folder of sites {folder}: change to the root of the repository."
            )
    sections: dict[str, list[dict[str, Any]]] = {}
    defined: dict[str, Path] = {}
    for file in files(*where) if system is None else [_file_of(system, *where)]:
        site = read(file)
        if system is not None:
            site["systems"] = [each for each in site["systems"] if each["name"] == system]
        for what in _defined(site):
            if what in defined:
                raise InvalidInputError(
                    f"Site files {defined[what]} and {file} define the same {what}."
                )
            defined[what] = file
        for name, entries in site.items():
            sections.setdefault(name, []).extend(entries)
    if "systems" not in sections:
        raise InvalidInputError(
            f"There is no site file with a system in {enumerated(map(str, where))}."
        )
    sections["systems"].sort(key=lambda system: _ANY_HOST in system["hostnames"])
    return sections


def _file_of(system: str, *where: Path) -> Path:
    named = [folder / f"{system}.py" for folder in where if (folder / f"{system}.py").is_file()]
    others = [file for file in files(*where) if file not in named]
    known = []
    for file in (*named, *others):
        known += [system["name"] for system in read(file).get("systems", [])]
        if system in known:
            return file
    raise NotFoundError(f"There is no site {system!r}; the sites are {listed(sorted(set(known)))}.")


def system_of(machine: str, *where: Path) -> str | None:
    """Return the name of a machine's system, from the first folder that has one; None without any.

    :param machine: its host name and the site's own name, as ``uan01 dardel``.
    :raises InvalidInputError: for a site file as `gather` does; and when host names of two systems
        in one folder match the machine, with both names.
    """
    systems = [[system for file in files(folder) for system in read(file).get("systems", [])]
               for folder in where]  # fmt: skip
    for here in systems:
        found = [system["name"] for system in here if _matches(system, machine)]
        if len(found) > 1:
            raise InvalidInputError(
                f"The machine '{machine}' is both {enumerated(found)} by the hostnames of their "
                "site files: name one, as in --system, or correct the patterns."
            )
        if found:
            return str(found[0])
    every = (
        system["name"] for here in systems for system in here if _ANY_HOST in system["hostnames"]
    )
    return next(every, None)


def _matches(system: Mapping[str, Any], machine: str) -> bool:
    patterns = system["hostnames"]
    return _ANY_HOST not in patterns and any(re.match(pattern, machine) for pattern in patterns)


def read(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the content of a site file.

    :raises InvalidInputError: as `gather` does for a file.
    """
    try:
        site = runpy.run_path(str(file)).get("site_configuration")
    except FabricheckError as error:
        raise InvalidInputError(f"Site file {file}: {error}") from None
    except (Exception, SystemExit) as error:
        excerpt = " ".join(str(error).split())[:_LONGEST]
        # Without its cause, which ReFrame would repeat.
        raise InvalidInputError(
            f"Site file {file} cannot be read: {type(error).__name__}: {excerpt}."
        ) from None
    if not isinstance(site, dict) or not all(isinstance(part, list) for part in site.values()):
        raise InvalidInputError(
            f"Site file {file} must assign site_configuration, a mapping of lists."
        )
    validated(_Site, site, f"Site file {file}")
    return site


def _defined(site: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    # ReFrame accepts two of the same name, and warns before warnings are errors.
    for system in site.get("systems", []):
        yield f"system {system['name']}"
        for partition in system["partitions"]:
            yield f"partition {system['name']}:{partition['name']}"
    for environment in site.get("environments", []):
        for system in environment.get("target_systems") or ["*"]:
            yield f"environment {environment['name']} of {system}"


# The content of a site file that the checks rely on, or that would disable one of their protections
# if it were missing or wrong. ReFrame's own schema is checked afterwards.

Name = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Name], Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


def _part_or_no_limit(value: float) -> float:
    # 10 is the largest that programs take; what lies between is a percentage by mistake.
    if 1 <= value != 10:
        raise ValueError(f"must be less than 1, or 10 to end no run for its noise, not {value:g}")
    return value


NoiseLimit = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_part_or_no_limit)]
Kernels = Annotated[list[StreamOperation], Field(min_length=1)]
Sizes = Annotated[list[Count], Field(min_length=2, max_length=2)]


def _fabric(name: str) -> str:
    try:
        load_fabric(name)
    except FabricheckError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    return name


#: A set, or any, among the keys of a check in a reference file.
_KEY_OF_CHECK = re.compile(r"^  ([\w-]+):(?: [&*].*)?$", re.MULTILINE)


@functools.cache
def _references(*folders: Path) -> Sequence[str]:
    return [
        path.read_text(encoding="utf-8", errors="replace")
        for folder in folders
        for path in folder.glob("*.yaml")
        if not any(map(path.match, NO_REFERENCES))
    ]


def _set_of_references(name: str) -> str:
    texts = _references(OWN_FOLDER, Path(os.environ.get(PREFIX_VARIABLE) or OWN_FOLDER))
    # The keys of these files are sought as text: reading them as YAML takes longer than a command.
    key = re.compile(rf"(?<![\w:.-]){re.escape(name)}['\"]?:(\s|$)")
    if not any(map(key.search, texts)):
        known = {key for text in texts for key in _KEY_OF_CHECK.findall(text)} - {"any"}
        raise ValueError(
            f"no reference file has the set {name!r}; the sets are {listed(sorted(known))}"
        )
    return name


class _Section(StrictModel, extra="allow"):
    """A section in which keys that are not named here are ReFrame's, or a single check's."""


class _Bound(StrictModel):
    value: Positive
    origin: Literal["published", "derived"]
    how: Name
    per_device: bool = False
    bytes_counted: BytesOfCopy = "once"


class _Rounds(StrictModel):
    iterations: Count = 1
    warm_up: Annotated[int, Field(ge=0)] = 0
    window: Count = 1


class _Osu(StrictModel):
    sizes: Sizes | None = None
    pair_sizes: Sizes | None = None
    collective_sizes: Sizes | None = None
    rounds: _Rounds | None = None
    latency_rounds: _Rounds | None = None


class _Rccl(StrictModel):
    scan_sizes: Sizes | None = None


class _PartitionExtras(StrictModel, extra="allow"):
    physical_bounds: dict[SeriesUnit, _Bound] | None = None
    node: Name | None = None
    fabric: Annotated[Name, AfterValidator(_fabric)] | None = None
    references: Annotated[Name, AfterValidator(_set_of_references)] | None = None
    noise_limit: NoiseLimit | None = None
    host_noise_limit: NoiseLimit | None = None
    array_bytes: Count | None = None
    concurrent_bytes: Count | None = None
    peer_bytes: Count | None = None
    scan_kernels: Kernels | None = None
    scan_sizes: Name | None = None
    copy_sizes: Name | None = None
    scan_block_sizes: Annotated[list[Count], Field(min_length=1)] | None = None
    pingpong_bytes: Count | None = None
    mpi_bytes: Count | None = None
    mpi_launcher: Name | None = None
    site_binding: Names | None = None
    numa_balancing: Literal["note"] | None = None
    osu: _Osu | None = None
    rccl: _Rccl | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> _PartitionExtras:
        if self.node is None and not self.physical_bounds:
            raise ValueError("has neither a node model (node) nor physical_bounds")
        if self.model_extra:
            raise ValueError(
                f"has unknown keys ({listed(self.model_extra)}); the known ones are "
                f"{listed(sorted(type(self).model_fields))}"
            )
        return self


class _Devices(_Section):
    type: Name
    arch: Name
    num_devices: Count


class _Partition(_Section):
    name: Name
    environs: Names
    devices: Annotated[list[_Devices], Field(min_length=1)]
    extras: _PartitionExtras
    scheduler: Name
    access: list[str] = []

    @model_validator(mode="after")
    def _has_its_nodes_alone(self) -> _Partition:
        # ReFrame requests nodes of PBS by number, and PBS then places other jobs on them.
        if self.scheduler in ("pbs", "torque") and not any(
            "excl" in option for option in self.access
        ):
            raise ValueError("shares its nodes with other jobs: access needs -l place=excl")
        return self


class _System(_Section):
    name: Name
    hostnames: Annotated[list[re.Pattern[str]], Field(min_length=1)]
    partitions: Annotated[list[_Partition], Field(min_length=1)]


class _RcclNodes(StrictModel):
    modules: Names = []
    variables: dict[Name, str] = {}
    srun: Names = []


class _EnvironmentExtras(_Section):
    runtime: Runtime
    programs: Name
    build_command: Name
    mpi_without: list[Collective] = []
    osu_folder: str | None = None
    rccl_folder: Name | None = None
    rccl_version: Name | None = None
    rccl_network: Name | None = None
    rccl_nodes: _RcclNodes | None = None
    spack_environment: Name | None = None


class _Environment(_Section):
    name: Name
    target_systems: Names | None = None
    extras: _EnvironmentExtras


class _Site(_Section):
    systems: list[_System] = []
    environments: list[_Environment] = []

    @model_validator(mode="after")
    def _has_its_environments(self) -> _Site:
        for system, partition in ((one, part) for one in self.systems for part in one.partitions):
            where = f"{system.name}:{partition.name}"
            known = [
                environment.name
                for environment in self.environments
                if {"*", system.name, where} & set(environment.target_systems or "*")
            ]
            # ReFrame itself has one.
            if unknown := set(partition.environs) - {*known, "builtin"}:
                raise ValueError(
                    f"{where} names environments that it does not have "
                    f"({listed(sorted(unknown))}); it has {listed(known) or 'none'}"
                )
        return self
