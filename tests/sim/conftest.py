"""The programs of the sim runtime, run on node models; the published values to compare with."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricheck.node import load
from fabricheck.node.system import platform_json
from fabricheck.results import document

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "config" / "nodes" / "overlays"

#: What would change a simulation, taken out of the environment of the tests.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_")


@dataclass(frozen=True)
class Ran:
    """A run of a program: exit code, standard error, and the document's file."""

    code: int
    err: str
    output: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(document.load(self.output))

    @property
    def series(self) -> list[dict[str, Any]]:
        return self.document["series"]

    @property
    def sentence(self) -> str:
        return self.err.rstrip().rsplit("\n", 1)[-1]


Run = Callable[..., Ran]


@functools.cache
def platform_of(node: str, overlay: str | None = None) -> str:
    """The platform of a node model, changed by the overlay of that name if there is one."""
    return platform_json(load(node, OVERLAYS / f"{overlay}.yaml" if overlay else None))


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = ROOT / "build" / "sim" / "bin"
    if not folder.is_dir():
        pytest.fail(
            f"There are no programs in {folder}: build them with 'cmake -G Ninja -S . -B build/sim "
            "-DFABRICHECK_RUNTIME=sim && cmake --build build/sim'."
        )
    return folder


@pytest.fixture(scope="session")
def run(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a program on a node, changed by the overlay of that name if there is one."""

    def run(
        program: str,
        *arguments: str,
        node: str | Path = "mi250x",
        overlay: str | None = None,
        **variables: str,
    ) -> Ran:
        folder = tmp_path_factory.mktemp("run")
        if not isinstance(node, Path):
            text = platform_of(node, overlay)
            node = folder / "node.json"
            node.write_text(text)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
        output = folder / "result.json"
        done = subprocess.run(
            [str(programs / program), *arguments, "--output", str(output)],
            env=kept | {"FABRICHECK_SIMULATED_NODE": str(node)} | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Ran(done.returncode, done.stderr, output)

    return run


@pytest.fixture(scope="session")
def ranks(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a program of ranks under SMPI, a rank on each of `hosts`: device3, domain1.

    node, overlay: as in `run`.
    """

    def ranks(
        program: str,
        hosts: Sequence[str],
        *arguments: str,
        node: str | Path = "mi250x",
        overlay: str | None = None,
        **variables: str,
    ) -> Ran:
        folder = tmp_path_factory.mktemp("ranks")
        if not isinstance(node, Path):
            text = platform_of(node, overlay)
            node = folder / "node.json"
            node.write_text(text)
        (folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
        output = folder / "result.json"
        done = subprocess.run(
            [
                *("smpirun", "-np", str(len(hosts)), "-hostfile", "hosts"),
                *("-platform", str(programs / "libfabricheck_node.so")),
                *("--log=root.thresh:error", str(programs / program), *arguments),
                *("--output", str(output)),
            ],
            cwd=folder,
            env=kept | {"FABRICHECK_SIMULATED_NODE": str(node)} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Ran(done.returncode, done.stderr, output)

    return ranks


@pytest.fixture(scope="session")
def published() -> dict[str, float]:
    """The published values by record id, as printed."""
    path = ROOT / "reference_values" / "published_values.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(path.read_text(), Loader=loader)
    return {record["id"]: record.get("value") for record in content["records"]}
