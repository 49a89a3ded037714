"""The built programs of the host runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = ROOT / "build" / "host" / "bin"
    if not folder.is_dir():
        pytest.fail(f"There are no programs in {folder}: build them with 'make build'.")
    return folder
