"""The comparison of the simulated MI250X node, made once, and the sessions of a page."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricheck.node import NodeModel, load
from fabricheck.papers.fidelity import Fidelity, evaluate, programs_of, run_all
from fabricheck.papers.fidelity_plan import plan_path, read_plan
from page_fixtures import one_figure, two_partitions  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def node() -> NodeModel:
    return load("mi250x")


@pytest.fixture(scope="session")
def needed(node: NodeModel) -> list[str]:
    """The files that the committed plan needs of the folder of programs."""
    return programs_of(read_plan(plan_path(node), node).file)


@pytest.fixture(scope="session")
def programs(needed: list[str]) -> Path:
    folder = ROOT / "build" / "sim" / "bin"
    if not all((folder / name).is_file() for name in needed):
        pytest.fail(
            f"There are no programs in {folder}: build them with 'cmake -G Ninja -S . -B build/sim "
            "-DFABRICHECK_RUNTIME=sim -DFABRICHECK_MPI=ON && cmake --build build/sim'."
        )
    return folder


@pytest.fixture(scope="session")
def documents(node: NodeModel, programs: Path, made_once: Any) -> dict[str, dict[str, Any]]:
    """The documents of the runs of the committed plan, simulated once for all workers."""

    def make(folder: Path) -> None:
        found = run_all(read_plan(plan_path(node), node).file, node, programs)
        (folder / "documents.json").write_text(json.dumps(found))

    return json.loads((made_once("fidelity", make) / "documents.json").read_text())


@pytest.fixture(scope="session")
def found(node: NodeModel, documents: dict[str, dict[str, Any]]) -> Fidelity:
    return evaluate(read_plan(plan_path(node), node), documents)


@pytest.fixture(scope="session")
def committed(node: NodeModel) -> dict[str, Any]:
    return yaml.safe_load(plan_path(node).read_text())


@pytest.fixture
def made(found: Fidelity, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Fidelity:
    """Give the command the comparison that is made already."""

    def made(node: NodeModel, folder: Path | None) -> Fidelity:
        assert (node.name, folder) == (found.plan.node.name, programs)
        return found

    monkeypatch.setattr("fabricheck.papers.fidelity_command.compare", made)
    return found


@pytest.fixture
def fake(needed: list[str], tmp_path: Path) -> Callable[[str], Path]:
    """Make programs of a shell script, also for ranks, and return their folder."""

    def fake(text: str) -> Path:
        for name in needed:
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        return tmp_path

    return fake


@pytest.fixture
def changed(committed: dict[str, Any], tmp_path: Path) -> Callable[[Change], Path]:
    """Write the committed plan with a change, and return its file."""

    def changed(change: Change) -> Path:
        content = copy.deepcopy(committed)
        content["published"] = str(ROOT / "reference_values" / content["published"])
        change(content)
        path = tmp_path / "plan.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    return changed
