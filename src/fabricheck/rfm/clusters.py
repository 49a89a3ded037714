"""What sites have in common: how a partition is reached, what its node is, and what it must run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from reframe.core.exceptions import ConfigError

from fabricheck.errors import FabricheckError
from fabricheck.node import NodeModel, load

ROOT = Path(__file__).resolve().parents[3]

#: The variable by which Slurm tells a process that it runs inside an allocation.
ALLOCATION = "SLURM_JOB_ID"

#: The option of a job that each variable gives, where it is set; see docs/feature-words.md.
ASKED = {
    "FABRICHECK_ACCOUNT": "--account={}",
    "FABRICHECK_RESERVATION": "--reservation={}",
    "FABRICHECK_QOS": "--qos={}",
}

CHECKS = (
    "stream_local",
    "stream_scan",
    "stream_concurrent",
    "memcpy_near",
    "memcpy_scan",
    "managed_migration",
    "p2p_engine",
    "p2p_kernel",
    "node_topology",
    "best_devices",
    "affinity",
    "pingpong_right",
    "pingpong_scan",
    "mpi_pairs",
    "mpi_collectives",
    "mpi_data",
    "osu_device_0",
    "osu_all_pairs",
    "osu_collectives",
    "rccl_collectives",
    "rccl_scaling",
    "rccl_scan",
)
AMD_CHECKS = (
    "managed_zero_copy",
    "p2p_engine_off",
    "mpi_pairs_engine_off",
    "osu_device_0_engine_off",
)
#: Checks of placements that not every node has.
PLACEMENTS = ("in_order", "half_right", "half_rotated", "shared_device", "shared_domain")

FEATURES = ("devices", "several_devices", "peers", "managed_memory", "ranks", "placements")
AMD_FEATURES = ("sdma", "xnack")

#: What the programs of an environment are, where all of them are there.
PROGRAMS = (
    "stream",
    "memcpy",
    "managed",
    "p2p",
    "affinity",
    "pingpong",
    "mpi",
    "gpu_aware_mpi",
    "osu",
)
COLLECTIVE_TESTS = {"rocm": "rccl-tests", "cuda": "nccl-tests"}

#: Sizes for devices of 64 GiB and more; both arrays of a copy are well past all caches.
SIZES = {
    "array_bytes": 1 << 30,
    "scan_sizes": "1KiB:8GiB",
    "scan_block_sizes": [64, 128, 256, 512, 1024],
    "copy_sizes": "256:8GiB",
    "pingpong_bytes": 256 << 20,
    "mpi_bytes": 256 << 20,
    "noise_limit": 0.1,
    "host_noise_limit": 0.3,
}


def reached(
    queue: str, *options: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return scheduler, launcher and access of a partition of Slurm.

    On a login node each check is a job of its own. Inside an allocation the same partition is the
    node around the session, each check a step of it, and the options are what salloc was asked for.

    :param queue: Slurm's own partition, unless ``FABRICHECK_QUEUE`` names another.
    :param options: the other options of a job: devices, constraints.
    :param environment: that of the session; by default that of this process.
    """
    found = os.environ if environment is None else environment
    if found.get(ALLOCATION):
        return {"scheduler": "local", "launcher": "srun", "max_jobs": 1}
    asked = [option.format(found[name]) for name, option in ASKED.items() if found.get(name)]
    return {
        "scheduler": found.get("FABRICHECK_SCHEDULER") or "slurm",
        "launcher": "srun",
        "max_jobs": 4,
        "access": [f"--partition={found.get('FABRICHECK_QUEUE') or queue}", *options, *asked],
    }


def node(name: str, references: str, **extras: Any) -> dict[str, Any]:
    """Return devices, features and extras of a partition whose nodes a node model describes.

    :param name: the node model.
    :param references: the set of references (docs/feature-words.md).
    :param extras: others, or instead of those that all share (`SIZES`).
    :raises ConfigError: when there is no such model.
    """
    model = _model(name)
    amd = model.vendor == "amd"
    several = len(model.domains) > 1
    placed = [one for one in PLACEMENTS if one in model.placements()]
    return {
        "features": [
            *FEATURES,
            *(["several_domains"] if several else []),
            *(AMD_FEATURES if amd else []),
        ],
        "devices": [{"type": "gpu", "arch": model.architecture, "num_devices": len(model.devices)}],
        "extras": {
            "expected_checks": [
                *CHECKS,
                *(["memcpy_numa"] if several else []),
                *(AMD_CHECKS if amd else []),
                *(f"pingpong_{one}" for one in placed),
            ],
            "node": name,
            "references": references,
            **SIZES,
            **extras,
        },
    }


def programs(runtime: str, spack_environment: str) -> dict[str, Any]:
    """Return features and extras of an environment whose programs Spack installs.

    The folders are those of the environment's view, or what these name, RUNTIME in capitals:
    ``FABRICHECK_RUNTIME_PROGRAMS``, ``FABRICHECK_RUNTIME_OSU``, and ``FABRICHECK_RCCL_TESTS`` or
    ``FABRICHECK_NCCL_TESTS``.

    :param runtime: rocm or cuda.
    :param spack_environment: the folder of spack-env.
    """
    tests = COLLECTIVE_TESTS[runtime]
    seen = view(spack_environment)
    return {
        "features": [*PROGRAMS, tests, "spack"],
        "extras": {
            "runtime": runtime,
            "programs": _folder(f"FABRICHECK_{runtime.upper()}_PROGRAMS", seen / "bin"),
            "osu_folder": _folder(
                f"FABRICHECK_{runtime.upper()}_OSU", seen / "libexec" / "osu-micro-benchmarks"
            ),
            "rccl_folder": _folder(f"FABRICHECK_{tests.replace('-', '_').upper()}", seen / "bin"),
            "build_command": f"spack-env/install {spack_environment}",
            "spack_environment": spack_environment,
        },
    }


def view(environment: str) -> Path:
    """Return the folder in which a Spack environment shows what it installed."""
    return ROOT / "build" / "spack" / environment / "view"


def _folder(variable: str, default: Path) -> str:
    return os.environ.get(variable) or str(default)


@cache
def _model(name: str) -> NodeModel:
    try:
        return load(name)
    except FabricheckError as error:
        raise ConfigError(str(error)) from None
