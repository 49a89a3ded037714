"""Fixtures of all tests: a results folder that looks as ReFrame leaves one."""

import os

import pytest
from hypothesis import HealthCheck, settings

import factories

# What CI systems and terminals set to change colours and widths; typer reads some when imported.
for _name in [
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
]:
    os.environ.pop(_name, None)

# The same examples everywhere, however slow the machine is.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture
def results_folder(tmp_path, monkeypatch):
    """An empty results folder that the environment names."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("FABRICHECK_RESULTS", str(folder))
    return folder


@pytest.fixture
def one_session(results_folder):
    """A session with a check that passed, and its document."""
    factories.session(results_folder, [factories.case()])
    factories.write(factories.case_folder(results_folder, "stream_local") / "result.json")
    return results_folder
