"""The site files: what each must have, and gathering them into one ReFrame configuration."""

from __future__ import annotations

import argparse
import functools
import os
import re
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError, UsageError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import enumerated, listed
from fabricheck.core.vocabulary import BytesOfCopy, Collective, Runtime, SeriesUnit, StreamOperation
from fabricheck.node.fabric import load_fabric
from fabricheck.schedulers import table
from fabricheck.site.deviations import DeviationName

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
ANY_HOST = ".*"

#: The pattern of host names of a system that only --system chooses.
_NO_HOST = "^$"

#: A pattern that writes a domain, as ``login\d+\.frontier`` does.
_WRITES_A_DOMAIN = re.compile(r"\\\.|\[\.\]")

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

    Systems that match any host name come last.

    :param where: by default those of `folders`.
    :param system: the only system to return; where the file of that name has it, no other is read.
    :raises InvalidInputError: for a file that cannot be read, assigns no ``site_configuration``, or
        lacks what the checks rely on, with its name; for two definitions of the same system,
        partition or environment; and for a folder without site files.
    :raises NotFoundError: without one of the folders, and without the system.
    """
    where = where or tuple(folders())
    _require(where)
    sections: dict[str, list[dict[str, Any]]] = {}
    defined: dict[str, Path] = {}
    for file in files(*where) if system is None else [file_of(system, *where)]:
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
    sections["systems"].sort(key=lambda system: ANY_HOST in system["hostnames"])
    return sections


def _require(where: Sequence[Path]) -> None:
    for folder in where:
        if not folder.is_dir():
            raise NotFoundError(
                f"There is no folder of sites {folder}: change to the root of the repository, or "
                f"correct {VARIABLE}."
            )


def file_of(system: str, *where: Path) -> Path:
    """Return the site file of a system: the one of its name, else the first that has it.

    :raises NotFoundError: when there is none.
    :raises InvalidInputError: as `gather` for a file before it.
    """
    named = [folder / f"{system}.py" for folder in where if (folder / f"{system}.py").is_file()]
    others = [file for file in files(*where) if file not in named]
    known = []
    for file in (*named, *others):
        known += [system["name"] for system in read(file).get("systems", [])]
        if system in known:
            return file
    raise NotFoundError(f"There is no site {system!r}; the sites are {listed(sorted(set(known)))}.")


@dataclass(frozen=True)
class Match:
    """Why a machine is of a system: a pattern of its site file, and the name that it matches.

    name: that of the machine as it was given, or without its domain. folder: that of the site file.
    """

    system: str
    pattern: str
    name: str
    folder: Path

    @property
    def is_by_name(self) -> bool:
        """Whether the pattern is for some machines, and not for every one."""
        return self.pattern != ANY_HOST


def without_domain(machine: str) -> str:
    """Return a machine's name with its host name short: ``n0001.hpc.example.edu`` is ``n0001``."""
    host, blank, of_the_site = machine.partition(" ")
    return f"{host.partition('.')[0]}{blank}{of_the_site}"


def name_of_centre(machine: str) -> str:
    """Return what a centre calls the system of a machine: ``uan01 dardel`` is of ``dardel``."""
    return machine.partition(" ")[2]


def match(machine: str, *where: Path) -> Match | None:
    """Return the system of a machine and its pattern, from the first folder that has one.

    Case is ignored. A pattern that writes no domain is also compared with the short host name; one
    that writes a domain is not, since ``ln5.example.org`` is not the ``ln5`` of LUMI. A match of
    the name as it is given counts before one of the short name.

    :param machine: its host name and the site's own name, as ``uan01 dardel``.
    :returns: a system for every machine where no other one matches; None without any.
    :raises InvalidInputError: for a site file as `gather` does; and when host names of two systems
        in one folder match the machine, with both names.
    :raises NotFoundError: without one of the folders.
    """
    _require(where)
    systems = {folder: _systems(folder) for folder in where}
    for folder, in_folder in systems.items():
        named = [_named(system, machine, folder) for system in in_folder]
        matches = [each for each in named if each is not None]
        matches = [each for each in matches if each.name == machine] or matches
        if len(matches) > 1:
            raise InvalidInputError(
                f"The machine '{machine}' is both "
                f"{enumerated(each.system for each in matches)} by the hostnames of their site "
                "files: name one, as in --system, or correct the patterns."
            )
        if matches:
            return matches[0]
    for folder, in_folder in systems.items():
        for system in in_folder:
            if ANY_HOST in system["hostnames"]:
                return Match(system["name"], ANY_HOST, machine, folder)
    return None


def is_chosen_by_name(system: Mapping[str, Any]) -> bool:
    """Whether a system has host names of its own: neither of every machine nor of none."""
    return not {ANY_HOST, _NO_HOST}.intersection(system["hostnames"])


def system_of(machine: str, *where: Path) -> str | None:
    """Return the name of a machine's system, as `match` does; None without any."""
    matched = match(machine, *where)
    return None if matched is None else matched.system


def of_this_machine(machine: str, full_name: Callable[[], str], *where: Path) -> Match:
    """Return the system of a session that names none, and its pattern.

    :param machine: as in `match`.
    :param full_name: gives the name with the domain that the resolver knows. It is called only
        where the session would be refused, because a resolver may take seconds.
    :raises InvalidInputError: as `match`.
    :raises UsageError: where another system was meant: site files were named (FABRICHECK_SITES) and
        none of them has this machine; or only the system for every machine has it, and there is an
        allocation, or a centre has named its system.
    """
    matched = match(machine, *where)
    if matched is not None and _is_meant(matched):
        return matched
    full = full_name()
    matched = match(full, *where)
    if matched is not None and _is_meant(matched):
        return matched
    raise UsageError(_no_match(machine, full, matched, *where))


def _is_meant(matched: Match) -> bool:
    """Whether a system was meant: by its name, or because nothing says that another one was."""
    named = os.environ.get(VARIABLE)
    if named:
        return matched.folder == Path(named)
    if matched.is_by_name:
        return True
    return table.allocation(os.environ) is None and not name_of_centre(matched.name)


def _no_match(machine: str, full: str, matched: Match | None, *where: Path) -> str:
    """Compose why a session needs --system: the machine's names, and the patterns of the sites.

    :param matched: the system of the suite that has this machine, where the user's site files have
        none.
    """
    named = os.environ.get(VARIABLE)
    other = "or another system"
    if matched is not None and matched.is_by_name:
        other = f"--system={matched.system} for what this suite has under that name"
    if named:
        where = (Path(named),)
        what = f"No pattern in hostnames of a site file in {named}"
        remedy = "or correct the pattern"
    elif table.allocation(os.environ) is None:
        what = (
            f"This machine is of {name_of_centre(machine)!r}, and no pattern in hostnames of a site"
        )
        remedy = f"or name the folder of your site file in {VARIABLE}"
    else:
        what = (
            f"In this allocation ({table.allocation(os.environ)}) no pattern in hostnames of a site"
        )
        remedy = f"or name the folder of your site file in {VARIABLE}"
    names = dict.fromkeys((machine, without_domain(machine), full))
    systems = [system for folder in where for system in _systems(folder)]
    patterns = [
        f"{system['name']} has {enumerated(system['hostnames'])}"
        for system in systems
        if ANY_HOST not in system["hostnames"]
    ]
    # Who shows the last words of a session shows the beginning of this sentence.
    return (
        f"{what} matches {enumerated(map(repr, names), last='or')}: choose --system=local:gpu for "
        f"its GPUs or --system=local for its memory and a simulated node, {other}, "
        f"{remedy}. The patterns: {listed(patterns, separator='; ') or 'none'}."
    )


def _systems(folder: Path) -> list[dict[str, Any]]:
    return [system for file in files(folder) for system in read(file).get("systems", [])]


def _named(system: Mapping[str, Any], machine: str, folder: Path) -> Match | None:
    """Return how a system's patterns match a machine; None for one that is for every machine."""
    if ANY_HOST in system["hostnames"]:
        return None
    short = without_domain(machine)
    for pattern in system["hostnames"]:
        names = [machine] if _WRITES_A_DOMAIN.search(pattern) else [machine, short]
        for name in names:
            if re.match(pattern, name, re.IGNORECASE):
                return Match(system["name"], pattern, name, folder)
    return None


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
    paths = [path for folder in folders for path in folder.glob("*.yaml")]
    return [
        path.read_text(encoding="utf-8", errors="replace")
        for path in paths
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
    arrays_fit_caches: bool = False
    one_memory: bool = False
    series_seconds: Positive | None = None
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
    accepts: list[DeviationName] = []
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
        refusal = table.refusal(self.scheduler, self.access)
        if refusal is not None:
            raise ValueError(refusal)
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
        pairs = ((system, partition) for system in self.systems for partition in system.partitions)
        for system, partition in pairs:
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
