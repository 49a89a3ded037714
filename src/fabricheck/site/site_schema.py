"""Required content of a site file (systems, partitions, environments), as pydantic models.

ReFrame's own schema is checked afterwards. This one states what the checks rely on, and what would
disable one of their protections if it were missing or wrong.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from fabricheck.core.models import StrictModel, reason_of
from fabricheck.core.vocabulary import BytesOfCopy, Collective, Runtime, SeriesUnit, StreamOperation

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


class _PartitionExtras(_Section):
    physical_bounds: dict[SeriesUnit, _Bound] | None = None
    node: Name | None = None
    fabric: Name | None = None
    references: Name | None = None
    noise_limit: NoiseLimit | None = None
    host_noise_limit: NoiseLimit | None = None
    array_bytes: Count | None = None
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
    def _is_bounded(self) -> _PartitionExtras:
        if self.node is None and not self.physical_bounds:
            raise ValueError("has neither a node model (node) nor physical_bounds")
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
    scheduler: str = ""
    access: list[str] = []

    @model_validator(mode="after")
    def _has_its_nodes_alone(self) -> _Partition:
        # ReFrame requests nodes of PBS by number, and PBS then places other jobs on them.
        if self.scheduler in ("pbs", "torque") and not any("excl" in one for one in self.access):
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


def fault(site: dict[str, Any]) -> str | None:
    """Return one sentence about the first fault, ``None`` without any.

    The place is written with names where possible: ``systems[lumi].partitions[gpu].extras``.
    """
    try:
        _Site.model_validate(site)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        return f"{_place(site, first['loc'])}: {reason_of(first)}."
    return None


def _place(site: Any, location: tuple[int | str, ...]) -> str:
    text, here = "", site
    for part in location:
        if isinstance(part, int) and isinstance(here, list):
            here = here[part] if part < len(here) else None
            name = here.get("name") if isinstance(here, dict) else None
            text += f"[{name or part}]"
        elif part != "[key]":
            here = here.get(part) if isinstance(here, dict) else None
            text += f"{'.' if text else ''}{part}"
    return text
