"""The simulated programs, and the comparison of the simulated MI250X node, made once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricheck.fidelity import Fidelity, compare, plan_path
from fabricheck.fidelity.runs import run_all
from fabricheck.node import NodeModel, load

ROOT = Path(__file__).resolve().parents[2]

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def node() -> NodeModel:
    return load("mi250x")


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = ROOT / "build" / "sim" / "bin"
    if not all((folder / name).is_file() for name in ("stream", "p2p", "memcpy", "managed")):
        pytest.fail(
            f"There are no programs in {folder}: build them with 'cmake -G Ninja -S . -B build/sim "
            "-DFABRICHECK_RUNTIME=sim && cmake --build build/sim'."
        )
    return folder


@pytest.fixture(scope="session")
def found(node: NodeModel, programs: Path) -> Fidelity:
    return compare(node, programs)


@pytest.fixture(scope="session")
def documents(found: Fidelity, programs: Path) -> dict[str, dict[str, Any]]:
    return run_all(found.plan.file, found.node, programs)


@pytest.fixture(scope="session")
def committed(node: NodeModel) -> dict[str, Any]:
    return yaml.safe_load(plan_path(node).read_text())


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
