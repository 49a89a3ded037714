"""Spack, the environment that it installs, and the site's software that this uses."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.models import read_model
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site import software
from fabricheck.site.partitions import Section
from fabricheck.site.software import Lock
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
    if not software.is_inside(Path(extras["programs"]), software.home(name)):
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
        yield ok(f"The Spack environment {name} is installed in {software.home(name)}.")
    else:
        yield missing(
            f"The Spack environment {name} is not installed, {extras['programs']} has no programs: "
            f"spack-env/install {name}."
        )
    yield from _of_the_site(machine, path, found, installed)
    yield from _gtl(machine, found, str(extras["runtime"]))


def _read(name: str) -> tuple[Path, Lock] | str:
    """Return the lock of what is installed, else the committed one, or what is wrong with it."""
    committed = checkout.ROOT / "spack-env" / name / "spack.lock"
    for path in (software.home(name) / "spack.lock", committed):
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
    code, printed = machine.run("spack", "--version")
    match = re.search(r"(\d+)\.(\d+)", printed)
    if code != 0 or match is None:
        yield missing(f"'spack --version' reports no version, but: {last_words(printed)}.")
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


def _of_the_site(machine: Machine, path: Path, found: Lock, installed: bool) -> Iterator[Finding]:
    """Yield what a lock takes from the site and is not there.

    :param path: the lock; the ``spack.yaml`` beside it states where its compilers are.
    :param installed: whether all is built: a compute node need not have compilers and build tools.
    """
    committed = checkout.ROOT / "spack-env" / path.parent.name
    folder = committed if (committed / "spack.yaml").is_file() else path.parent
    checker, root = runpy.run_path(str(software.CHECKER)), str(machine.root).rstrip("/")
    try:
        lock: dict[str, Any] = checker["read"](str(path))
        lacks = list(checker["absent_folders"](lock, root))
        if not installed:
            described = software.packages(path.parent)
            lacks += checker["absent_programs"](lock, described, root)
            if not list(checker["compiler_paths"](described, checker["compilers"](lock))):
                lacks.append(f"No compiler of the lock is in {path.with_name('spack.yaml')}")
        differs = software.disagreement(folder, found)
        if differs:
            yield missing(differs)
    except (checker["BrokenLock"], InvalidInputError) as error:
        yield missing(f"What the lock takes from the site is unknown: {error}")
        return
    for says in lacks:
        yield missing(
            f"{says}. If the site has other software now, choose its Spack environment of a newer "
            "date, or change spack.yaml and make the lock anew: spack-env/install --new-lock "
            f"{path.parent.name}."
        )
    if not lacks:
        tools = "" if installed else ", and its compilers and build tools"
        yield ok(
            f"The folders of all {len(found.externals)} externals of the lock are there{tools}."
        )


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
