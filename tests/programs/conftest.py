"""The built programs of the host runtime."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: What would change a run, taken out of the environment of the tests.
_VARIABLES = ("FABRICHECK_", "HSA_", "HWLOC_", "OMP_")


@pytest.fixture
def small_cache() -> dict[str, str]:
    """Return variables that give any machine 1 MiB of cache, so that small arrays are past it."""
    return {"HWLOC_SYNTHETIC": "numa:1 l3:1(size=1048576) core:1 pu:1"}


@pytest.fixture
def environment():
    """Return the environment of a run with so many devices, whatever the machine has."""

    def environment(devices: int = 2, **variables: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
        return kept | {"FABRICHECK_HOST_DEVICES": str(devices)} | variables

    return environment


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = ROOT / "build" / "host" / "bin"
    if not folder.is_dir():
        pytest.fail(f"There are no programs in {folder}: build them with 'make build'.")
    return folder
