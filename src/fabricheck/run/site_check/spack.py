"""Spack, the environment that it installs, and the site's software that this uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError
from fabricheck.core.models import read_model
from fabricheck.run.site_check import externals
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site.partitions import Section
from fabricheck.site.software import record
from fabricheck.site.software.lock import Lock
from fabricheck.tools.runner import last_words

#: The first Spack that writes, and so reads, each format of a lock.
FIRST_SPACK = {5: (0, 21), 6: (1, 0), 7: (1, 2)}

#: The library with which Cray MPICH accepts device buffers, by runtime.
GTL = {"rocm": "libmpi_gtl_hsa.so", "cuda": "libmpi_gtl_cuda.so"}


def check(environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield the state of an environment's Spack environment; nothing if it has none.

    Where the programs are from elsewhere, Spack and the lock are not asked for.
    """
    extras = environment["extras"]
    name = extras.get("spack_environment")
    if not name:
        return
    if not record.is_inside(Path(extras["programs"]), record.home(name)):
        folder = extras["programs"]
        yield ok(f"The programs are those of {folder}, not of Spack environment {name}.")
        return
    installed = (Path(extras["programs"]) / "stream").exists()
    read = _read(name)
    if isinstance(read, str):
        yield from _spack(machine, name, None, installed)
        yield missing(read)
        return
    path, found = read
    yield from _spack(machine, name, found, installed)
    if installed:
        yield ok(f"The Spack environment {name} is installed in {record.home(name)}.")
    else:
        yield missing(
            f"The Spack environment {name} is not installed, {extras['programs']} has no programs: "
            f"spack-env/install {name}."
        )
    yield from externals.check(machine, path, found, installed)
    yield from _gtl(machine, found, str(extras["runtime"]))


def _read(name: str) -> tuple[Path, Lock] | str:
    """Return the lock of what is installed, else the committed one, or what is wrong with it."""
    committed = checkout.ROOT / "spack-env" / name / "spack.lock"
    for path in (record.home(name) / "spack.lock", committed):
        if path.is_file():
            try:
                return path, read_model(path, Lock)
            except FabricheckError as error:
                return f"The lock of Spack environment {name} cannot be used: {error}"
    return f"The Spack environment {name} has no lock: there is no {committed}."


def _spack(machine: Machine, name: str, found: Lock | None, installed: bool) -> Iterator[Finding]:
    if machine.which("spack") is None:
        if installed:
            yield ok("Spack is not on the PATH, but what it installs exists.")
            return
        made = f" {found.spack_version} or newer" if found and found.spack_version else ""
        yield missing(
            f"Spack is not on the PATH, but spack-env/install {name} needs it: get Spack{made} "
            "and source its share/spack/setup-env.sh."
        )
        return
    code, said = machine.run("spack", "--version")
    match = re.search(r"(\d+)\.(\d+)", said)
    if code != 0 or match is None:
        yield missing(f"'spack --version' reports no version, but: {last_words(said)}.")
        return
    version = match[0]
    first = FIRST_SPACK[found.format] if found else (0, 0)
    if (int(match[1]), int(match[2])) < first:
        assert found is not None
        yield missing(
            f"Spack has version {version}, but the lock of {name} (format {found.format}) needs "
            f"{first[0]}.{first[1]} or newer."
        )
    else:
        made = f"; the lock was made by {found.spack_version}" if found else ""
        yield ok(f"Spack {version} is on the PATH{made}.")


def _gtl(machine: Machine, found: Lock, runtime: str) -> Iterator[Finding]:
    library = GTL.get(runtime)
    cray = [spec for spec in found.externals if spec.name == "cray-mpich"]
    if library is None or not cray:
        return
    # prefix is .../mpich/VERSION/ofi/COMPILER/VERSION, and the libraries of all are beside ofi.
    folders = [machine.at(spec.prefix or "").parents[2] / "gtl" / "lib" for spec in cray]
    stated = machine.environ.get("CRAY_MPICH_ROOTDIR")
    if stated:
        folders.append(machine.at(stated) / "gtl" / "lib")
    there = [folder / library for folder in folders if (folder / library).exists()]
    if there:
        yield ok(f"Cray MPICH has its library for devices: {there[0]}.")
    else:
        looked = " and ".join(map(str, folders))
        yield missing(
            f"Cray MPICH has no {library} in {looked}: without it messages cannot be in device "
            "memory."
        )
