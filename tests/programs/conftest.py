"""The built programs of the host runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricheck.results.document import load

ROOT = Path(__file__).resolve().parents[2]

#: What would change a run, taken out of the environment of the tests.
_VARIABLES = ("FABRICHECK_", "HSA_", "HWLOC_", "OMP_", "MPI", "PMI_", "HYDRA_")


@pytest.fixture
def small_cache() -> dict[str, str]:
    """Return variables that give any machine 1 MiB of cache, so that small arrays are past it."""
    return {"HWLOC_SYNTHETIC": "numa:1 l3:1(size=1048576) core:1 pu:1"}


@pytest.fixture(scope="session")
def environment():
    """Return the environment of a run with so many devices, whatever the machine has."""
    # UCX would hook allocations, for network adapters: half the time that a rank takes to start.
    fixed = {"UCX_MEM_EVENTS": "n"}

    def environment(devices: int = 2, **variables: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
        return kept | fixed | {"FABRICHECK_HOST_DEVICES": str(devices)} | variables

    return environment


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = ROOT / "build" / "host" / "bin"
    if not folder.is_dir():
        pytest.fail(f"There are no programs in {folder}: build them with 'make build'.")
    return folder


#: Exit codes that MPICH's mpiexec has of its own when rank 0 ended badly, on a machine under load:
#: 9 where another rank was still there, which it kills, and 0 where it has lost what its proxy knew
#: of the ranks (mpiexec.c of Hydra).
OF_MPIEXEC = (0, 9)


class Ran:
    """How a program ended, and where its document is."""

    def __init__(self, program: str, done: subprocess.CompletedProcess[str], output: Path) -> None:
        self.program = program
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.output = output
        # The last line is the sentence; a table of what was measured may stand above it.
        self.sentence = done.stderr.rstrip().rsplit("\n", 1)[-1]

    @property
    def document(self):
        return load(self.output)

    @property
    def series(self):
        return self.document["series"]

    def refused(self, code: int, parts: Sequence[str]) -> None:
        """Assert that it ended by a code and one sentence, and what the sentence has."""
        assert self.code == code
        assert self.err.count("\n") == 1
        assert self.err.startswith(f"{self.program}: ")
        for part in parts:
            assert part in self.sentence
        if self.output.exists():
            document = load(self.output)
            assert not document["complete"]
            assert document["outcome"]["exit_code"] == code

    def found_nothing_written(self) -> None:
        """Assert that it named each element of each destination as wrong, after a whole run."""
        assert self.code == 5
        document = load(self.output)
        assert document["complete"]
        assert document["faults_injected"] == ["unwritten"]
        for series in document["series"]:
            check = series["verification"]
            assert check["errors"] == check["bytes_checked"] // 8
        assert "WRONG" in self.err


@pytest.fixture
def run(programs: Path, tmp_path: Path, environment):
    """Run a program by name, on two devices unless told otherwise, with a document of its own."""

    def run(
        name: str,
        *arguments: str,
        output: Path | None = None,
        devices: int = 2,
        preexec_fn=None,
        **variables: str,
    ) -> Ran:
        target = output or tmp_path / "result.json"
        done = subprocess.run(
            [str(programs / name), *arguments, "--output", str(target)],
            env=environment(devices, **variables),
            preexec_fn=preexec_fn,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Ran(name, done, target)

    return run


@pytest.fixture(scope="session")
def mpiexec() -> Path:
    """Return the launcher of the MPI that the programs were built with: that of .venv."""
    own = Path(sys.executable).parents[1] / "mpich" / "bin"
    found = shutil.which("mpiexec", path=str(own)) or shutil.which("mpiexec")
    if found is None:
        pytest.fail("There is no mpiexec: set up with 'make setup-test'.")
    return Path(found)


@pytest.fixture
def ranks(ranks_in, tmp_path: Path):
    """Run a program with so many ranks, with a document of its own."""

    def ranks(name: str, count: int, *arguments: str, output: Path | None = None, **more) -> Ran:
        return ranks_in(name, count, *arguments, output=output or tmp_path / "result.json", **more)

    return ranks


@pytest.fixture(scope="session")
def ranks_in(programs: Path, environment, mpiexec: Path):
    """Run a program with so many ranks, on two devices unless told otherwise.

    Where a rank ends badly mpiexec may give an exit code of its own: judge by the document.
    """

    def ranks_in(
        name: str, count: int, *arguments: str, output: Path, devices: int = 2, **variables: str
    ) -> Ran:
        program = [str(programs / name), *arguments, "--output", str(output)]
        done = subprocess.run(
            [str(mpiexec), "-n", str(count), *program],
            env=environment(devices, **variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        ran = Ran(name, done, output)
        if ran.code in OF_MPIEXEC and output.exists():
            ran.code = load(output)["outcome"]["exit_code"]
        return ran

    return ranks_in


@pytest.fixture
def on_nodes(programs: Path, tmp_path: Path, environment, mpiexec: Path):
    """Run a program on some nodes, which are this machine, and return its document.

    ranks: of the nodes in turn. code: the exit code that the document must have. options: of
    mpiexec.
    """

    def on_nodes(
        name: str, *arguments: str, nodes, ranks=(1,), code: int = 0, options=(), **variables: str
    ):
        target = tmp_path / "result.json"
        program = [str(programs / name), *arguments, "--output", str(target)]
        command = [str(mpiexec), *options]
        for index, node in enumerate(nodes):
            count = ranks[index % len(ranks)]
            command += [":"] if index else []
            command += ["-n", str(count), "-env", "SLURMD_NODENAME", node, *program]
        done = subprocess.run(
            command,
            env=environment(2, **variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        document = load(target)
        assert document["outcome"]["exit_code"] == code, done.stderr
        return document

    return on_nodes
