"""What a Spack lock uses of the site's software: folders, programs and compilers."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site.software.lock import Concrete, Lock

#: The script with which `spack-env/install` checks locks; a separate program, as Spack's Python
#: runs it.
_CHECKER = ROOT / "spack-env" / "check.py"

#: Prefixes that exist on every machine, whatever is installed.
_SHARED = ("/", "/usr")

#: The externals that are programs, and their possible names in ``bin`` of the prefix.
PROGRAMS = {
    "autoconf": ("autoconf",),
    "automake": ("automake",),
    "cmake": ("cmake",),
    "flex": ("flex",),
    "gmake": ("gmake", "make"),
    "libtool": ("libtoolize",),
    "m4": ("m4",),
    "perl": ("perl",),
    "pkg-config": ("pkg-config",),
    "pkgconf": ("pkgconf", "pkg-config"),
    "python": ("python3",),
}


def check(machine: Machine, path: Path, found: Lock, installed: bool) -> Iterator[Finding]:
    """Yield the missing externals and compilers of a lock.

    :param path: the lock; the ``spack.yaml`` beside it states where its compilers are.
    :param installed: whether all is built: then only folders are checked, as a compute node need
        not have build tools.
    """
    lacks = list(filter(None, (_lacks(machine, spec, installed) for spec in found.externals)))
    yield from map(missing, lacks)
    if not lacks:
        tools = [one.name for one in found.externals if _programs(one)]
        unknown = [one for one in found.externals if one.prefix in _SHARED and not _programs(one)]
        names = ", ".join(sorted(one.name for one in unknown))
        here = "" if installed or not tools else f", and the programs of {', '.join(tools)}"
        rest = f" Not looked for inside / or /usr: {names}." if names else ""
        yield ok(
            f"The folders of all {len(found.externals)} externals of the lock are there{here}."
            f"{rest}"
        )
    if installed:
        yield ok("The environment is built: its compilers and build tools were not checked.")
    else:
        yield from _compilers(machine, path)


def _programs(spec: Concrete) -> list[str]:
    """Return the paths of which one must exist; empty where it is not a program."""
    folder = Path(spec.prefix or "/") / "bin"
    return [str(folder / name) for name in PROGRAMS.get(spec.name, ())]


def _lacks(machine: Machine, spec: Concrete, installed: bool) -> str | None:
    said = f"The lock uses {spec.name}@{spec.version} from {spec.prefix}, but there is no"
    todo = "the site has other software now, see its page for a new lock"
    if not machine.at(spec.prefix or "").is_dir():
        return f"{said} such folder: {todo}."
    programs = [] if installed else _programs(spec)
    if programs and not any(_runs(machine, path) for path in programs):
        return f"{said} program {' or '.join(programs)}: install it, or {todo}."
    return None


def _runs(machine: Machine, path: str) -> bool:
    return machine.at(path).is_file() and os.access(machine.at(path), os.X_OK)


def _compilers(machine: Machine, path: Path) -> Iterator[Finding]:
    checker = runpy.run_path(str(_CHECKER))
    try:
        lock: dict[str, Any] = checker["read"](str(path))
        described = checker["packages"](str(path.parent), yaml.safe_load)
        wanted: set[str] = checker["compilers"](lock)
        paths: list[tuple[str, str]] = list(checker["compiler_paths"](described, wanted))
    except checker["BrokenLock"] as error:
        yield missing(f"The compilers of the lock are unknown: {error}.")
        return
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        reason = f"{path.with_name('spack.yaml')}: {' '.join(str(error).split())}"
        yield missing(f"The place of the lock's compilers is unknown: {reason}.")
        return
    if not paths:
        yield missing(
            f"The place of the lock's compilers is unknown: {path.with_name('spack.yaml')} and "
            "its includes name none of them."
        )
        return
    lacks = [(name, file) for name, file in paths if not _runs(machine, file)]
    for name, file in lacks:
        yield missing(
            f"The lock uses compiler {name} from {file}, but there is no such program: install "
            "it, or the site has other software now, see its page for a new lock."
        )
    if not lacks:
        yield ok(f"The compilers of the lock exist: {', '.join(file for _, file in paths)}.")
