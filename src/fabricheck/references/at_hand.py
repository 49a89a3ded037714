"""The version of ROCm or CUDA that an environment of a site has, from the lock of its Spack set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import NotFoundError
from fabricheck.site.software import lock

#: The environments of Spack, and where their working copies are.
FOLDERS = tuple(ROOT / name for name in ("build/spack", "spack-env"))

#: The package whose version is ROCm's or CUDA's.
PACKAGES = {"rocm": "hip", "cuda": "cuda"}


def version(environment: Mapping[str, Any], folders: tuple[Path, ...] = FOLDERS) -> str | None:
    """Return the version, from the lock of what was installed, else from the committed one.

    :param environment: a ReFrame environment of a site file.
    :returns: ``None`` where no lock is there, or the environment is not one of Spack's.
    :raises InvalidInputError: when a lock is broken, or is of an unknown format.
    """
    extras = environment.get("extras", {})
    name, package = extras.get("spack_environment"), PACKAGES.get(extras.get("runtime", ""))
    for folder in folders if name and package else ():
        path = folder / str(name) / "spack.lock"
        try:
            specs = lock.read(path).specs
        except NotFoundError:
            continue
        found = [one.version for one in specs if one.name == package]
        if found:
            return found[0]
    return None


def major(text: str) -> str:
    """Return the major version."""
    return text.split(".")[0]
