"""ReFrame with this repository's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from reframe_suite import Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


@pytest.fixture(scope="module")
def shared_suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """The suite for sessions that several tests look at."""
    return Suite(tmp_path_factory.mktemp("suite"))
