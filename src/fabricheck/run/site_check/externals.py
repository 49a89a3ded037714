"""What a Spack lock uses of the site's software: folders, programs and compilers."""

from __future__ import annotations

import contextlib
import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fabricheck.core import checkout
from fabricheck.core.errors import InvalidInputError
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site.software import spack_yaml
from fabricheck.site.software.lock import Concrete, Lock

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
    yield from _agreement(path, found)
    anew = f"spack-env/install --new-lock {path.parent.name}"
    new_lock = (
        "If the site has other software now, choose its Spack environment of a newer date, or "
        f"change spack.yaml and make the lock anew: {anew}."
    )
    lacks = [
        says for spec in found.externals if (says := _lacks(machine, spec, installed, new_lock))
    ]
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
        yield from _compilers(machine, path, new_lock)


def _agreement(path: Path, found: Lock) -> Iterator[Finding]:
    """Yield that the lock in use differs from the environment that is in the repository."""
    committed = checkout.ROOT / "spack-env" / path.parent.name
    folder = committed if (committed / "spack.yaml").is_file() else path.parent
    # An unreadable spack.yaml is a finding of the compilers.
    with contextlib.suppress(InvalidInputError):
        differs = spack_yaml.disagreement(folder, found)
        if differs:
            yield missing(differs)


def _programs(spec: Concrete) -> list[str]:
    """Return the paths of which one must exist; empty where it is not a program."""
    folder = Path(spec.prefix or "/") / "bin"
    return [str(folder / name) for name in PROGRAMS.get(spec.name, ())]


def _lacks(machine: Machine, spec: Concrete, installed: bool, new_lock: str) -> str | None:
    said = f"The lock uses {spec.name}@{spec.version} from {spec.prefix}, but there is no"
    if not machine.at(spec.prefix or "").is_dir():
        return f"{said} such folder. {new_lock}"
    programs = [] if installed else _programs(spec)
    if programs and not any(_runs(machine, path) for path in programs):
        return f"{said} program {' or '.join(programs)}: install it. {new_lock}"
    return None


def _runs(machine: Machine, path: str) -> bool:
    return machine.at(path).is_file() and os.access(machine.at(path), os.X_OK)


def _compilers(machine: Machine, path: Path, new_lock: str) -> Iterator[Finding]:
    checker = runpy.run_path(str(spack_yaml.CHECKER))
    try:
        lock: dict[str, Any] = checker["read"](str(path))
        described = spack_yaml.packages(path.parent)
        wanted: set[str] = checker["compilers"](lock)
        paths: list[tuple[str, str]] = list(checker["compiler_paths"](described, wanted))
    except checker["BrokenLock"] as error:
        yield missing(f"The compilers of the lock are unknown: {error}.")
        return
    except InvalidInputError as error:
        yield missing(f"The place of the lock's compilers is unknown: {error}")
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
            f"it. {new_lock}"
        )
    if not lacks:
        yield ok(f"The compilers of the lock exist: {', '.join(file for _, file in paths)}.")
