"""Concretizes the Spack environments of other sites here, with a real Spack.

    python tests/spack/relock.py dardel             # compares with the committed lock
    python tests/spack/relock.py --write dardel     # replaces it, and says by which Spack

`spack` is on the PATH, and the Python that it runs with (SPACK_PYTHON) has clingo. Nothing is
fetched, built or written outside a temporary folder, but for --write. The tools of tools.specs are
then concretized on top of the lock. Exit code 1: a lock differs, or the tools change it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from site_stand_ins import SPACK_ENV, STAND_INS, StandIn

HERE = Path(__file__).parent
Nodes = dict[str, dict[str, Any]]


class SpackError(RuntimeError):
    """Spack ended badly; says what it printed last."""


def spack_commit() -> str:
    """The commit of the Spack on the PATH, of its public repository."""
    spack = shutil.which("spack")
    assert spack is not None
    folder = Path(spack).resolve().parents[1]
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    commit: str = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return commit or "unknown"


def pinned_commit(name: str) -> str:
    """The commit of Spack that made the lock of environment `name`."""
    return (SPACK_ENV / name / "spack-commit").read_text().split("#")[0].strip()


def compilers(name: str) -> list[str]:
    """Versions of GCC that environment `name` and what it includes name as externals."""
    found: list[str] = []
    environment = yaml.safe_load((SPACK_ENV / name / "spack.yaml").read_text())["spack"]
    for section in [
        environment,
        *(yaml.safe_load((SPACK_ENV / name / i).read_text()) for i in environment["include"]),
    ]:
        for external in section.get("packages", {}).get("gcc", {}).get("externals", []):
            found.append(external["spec"].split()[0].removeprefix("gcc@"))
    return found


def _stand_in(folder: Path, machine: StandIn, versions: list[str]) -> None:
    """Writes os-release and compilers.yaml of a machine into `folder`."""
    (folder / "os-release").write_text(
        f'ID="{machine.id}"\nVERSION_ID="{machine.version}"\nNAME="{machine.id}"\n'
    )
    paths = {"cc": "/usr/bin/gcc", "cxx": "/usr/bin/g++", "f77": None, "fc": None}
    listed = [
        {
            "compiler": {
                "spec": f"gcc@={version}",
                "paths": paths,
                "operating_system": machine.operating_system,
                "target": "x86_64",
                "modules": [],
            }
        }
        for version in versions
    ]
    (folder / "compilers.yaml").write_text(yaml.safe_dump({"compilers": listed}))


class Trial:
    """A copy of an environment in a temporary folder, on a machine that stands in for its site."""

    def __init__(self, name: str, folder: Path) -> None:
        self.environment = folder / name
        self._scope = folder / "stand-in"
        self._machine = STAND_INS[name]
        for part in ("common", "repo", name):
            shutil.copytree(SPACK_ENV / part, folder / part)
        (folder / "source").mkdir()
        self._scope.mkdir()
        _stand_in(self._scope, self._machine, compilers(name))

    def spack(self, *arguments: str) -> str:
        """Runs spack in the environment.

        Raises SpackError if it fails.
        """
        variables = {
            **os.environ,
            "SPACK_DISABLE_LOCAL_CONFIG": "1",
            "UNIXCONFDIR": str(self._scope),
        }
        command = ["spack", "-C", str(self._scope), "-e", str(self.environment), *arguments]
        got = subprocess.run(command, env=variables, capture_output=True, text=True)
        if got.returncode != 0:
            raise SpackError("\n".join((got.stdout + got.stderr).splitlines()[-20:]))
        return got.stdout

    def concretize(self, *options: str) -> dict[str, Any]:
        """The lock of the environment, made now; --force: without regard to the one it has."""
        self.spack(
            "python",
            str(HERE / "standin.py"),
            self._machine.glibc,
            self._machine.glibc_prefix,
            *options,
        )
        lock: dict[str, Any] = json.loads((self.environment / "spack.lock").read_text())
        return lock

    def with_added(self, specs: list[str]) -> dict[str, Any]:
        """The lock with some specs added on top of what it has."""
        for spec in specs:
            self.spack("add", spec)
        return self.concretize()


def tools_of(name: str) -> list[str]:
    """The specs in tools.specs of an environment; none where it has no such file."""
    file = SPACK_ENV / name / "tools.specs"
    return file.read_text().splitlines() if file.exists() else []


def differences(committed: Nodes, made: Nodes) -> list[str]:
    """What one lock's concrete specs have that the other's do not, by name and version."""
    return [
        f"{'only committed' if key in committed else 'only made now'}: "
        f"{node['name']}@{node['version']} /{key[:7]}"
        for key, node in {**committed, **made}.items()
        if (key in committed) != (key in made)
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="replace the committed locks")
    parser.add_argument("names", nargs="+", choices=sorted(STAND_INS))
    options = parser.parse_args()
    if shutil.which("spack") is None:
        parser.error("there is no spack on the PATH")
    status = 0
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(name, Path(folder))
            made = trial.concretize("--force")
            lock = SPACK_ENV / name / "spack.lock"
            if options.write:
                shutil.copy(trial.environment / "spack.lock", lock)
                (SPACK_ENV / name / "spack-commit").write_text(
                    f"{spack_commit()}  # Spack {made['spack']['version']}\n"
                )
            found = differences(
                json.loads(lock.read_text())["concrete_specs"], made["concrete_specs"]
            )
            print(f"{name}: {len(made['concrete_specs'])} specs, {len(found)} differ", *found)
            status |= bool(found)
            if added := tools_of(name):
                with_tools = trial.with_added(added)["concrete_specs"]
                lost = made["concrete_specs"].keys() - with_tools.keys()
                new = sorted(
                    node["name"]
                    for key, node in with_tools.items()
                    if key not in made["concrete_specs"]
                )
                print(f"{name}: with tools {len(lost)} specs change, new are {', '.join(new)}")
                status |= bool(lost)
    return status


if __name__ == "__main__":
    sys.exit(main())
