"""What sites with a batch system have in common: how a partition is reached, and what it must run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

#: The variable by which Slurm tells a process that it runs inside an allocation.
ALLOCATION = "SLURM_JOB_ID"

ONE_PROCESS_CHECKS = (
    "stream_local",
    "stream_scan",
    "stream_concurrent",
    "memcpy_near",
    "memcpy_scan",
    "managed_migration",
    "p2p_engine",
    "p2p_kernel",
    "node_topology",
)
RANK_CHECKS = (
    "affinity",
    "pingpong_right",
    "pingpong_scan",
    "pingpong_shared_device",
    "mpi_pairs",
    "mpi_collectives",
    "mpi_data",
)
AMD_CHECKS = ("managed_zero_copy", "p2p_engine_off", "mpi_pairs_engine_off")
OSU_CHECKS = ("osu_device_0", "osu_all_pairs", "osu_collectives")
RCCL_CHECKS = ("rccl_collectives", "rccl_scaling", "rccl_scan")


def reached(access: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return scheduler, launcher and access of a partition of Slurm.

    On a login node each check is a job of its own. Inside an allocation the same partition is the
    node around the session, each check a step of it, and `access` is what salloc was asked for.

    :param access: the options of a job: partition, account, devices.
    :param environment: that of the session; by default that of this process.
    """
    found = os.environ if environment is None else environment
    if found.get(ALLOCATION):
        return {"scheduler": "local", "launcher": "srun", "max_jobs": 1}
    return {"scheduler": "slurm", "launcher": "srun", "max_jobs": 4, "access": list(access)}


def view(environment: str) -> Path:
    """Return the folder in which a Spack environment shows what it installed."""
    return ROOT / "build" / "spack" / environment / "view"
