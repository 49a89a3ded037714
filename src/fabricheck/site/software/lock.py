"""Spack's lock (``spack.lock``): the concrete specs of an environment, read without Spack.

The site's software that its ``spack.yaml`` names is compared with them.

The formats 5 (Spack 0.21 to 0.23), 6 (1.0, 1.1) and 7 (1.2) share what is read here.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, model_validator

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.models import StrictModel

#: The supported formats.
FORMATS = (5, 6, 7)

#: Characters of a hash by which people and Spack name a spec.
SHORT = 7


class _Section(StrictModel, extra="ignore"):
    """A part of a lock, of which only some keys are read."""


class _Meta(_Section):
    file_type: Literal["spack-lockfile"] = Field(alias="file-type")
    version: int = Field(alias="lockfile-version")


class _Maker(_Section):
    version: str


class _External(_Section):
    path: str | None = None


class _Root(_Section):
    hash: str
    spec: str


class Concrete(_Section):
    """One concrete spec."""

    name: str
    version: str
    external: _External | None = None

    @property
    def prefix(self) -> str | None:
        """Where an external package is installed."""
        return self.external.path if self.external else None


class Lock(_Section):
    """A lock: its format, its maker, the requested specs, and all concrete specs by hash."""

    meta: _Meta = Field(alias="_meta")
    spack: _Maker | None = None
    roots: list[_Root] = Field(min_length=1)
    concrete_specs: Mapping[str, Concrete]

    @model_validator(mode="after")
    def _is_known(self) -> Lock:
        if self.format not in FORMATS:
            supported = ", ".join(map(str, FORMATS))
            raise ValueError(f"the lock format {self.format} is unknown; supported are {supported}")
        for root in self.roots:
            if root.hash not in self.concrete_specs:
                raise ValueError(f"there is no concrete spec of its root {root.spec}")
        return self

    @property
    def format(self) -> int:
        """The version of its format."""
        return self.meta.version

    @property
    def spack_version(self) -> str | None:
        """The Spack that made it."""
        return None if self.spack is None else self.spack.version

    @property
    def externals(self) -> list[Concrete]:
        """The specs of externals, installed by the site, by name."""
        found = [spec for spec in self.concrete_specs.values() if spec.prefix]
        return sorted(found, key=lambda spec: (spec.name, spec.version))

    @property
    def root_names(self) -> list[str]:
        """Name, version and the start of the hash of each requested spec."""
        found = {root.hash: self.concrete_specs[root.hash] for root in self.roots}
        return sorted(
            f"{spec.name}@{spec.version}/{hash_[:SHORT]}" for hash_, spec in found.items()
        )


#: The script with which `spack-env/install` checks locks; a separate program, as Spack's Python
#: runs it.
CHECKER = ROOT / "spack-env" / "check.py"

_VERSION = re.compile(r"@=?([\w.-]+)")


def packages(folder: Path) -> dict[str, Any]:
    """Return the section ``packages`` of an environment and its includes.

    :param folder: with ``spack.yaml``.
    :raises InvalidInputError: when a file cannot be read.
    """
    try:
        found: dict[str, Any] = runpy.run_path(str(CHECKER))["packages"](
            str(folder), yaml.safe_load
        )
        _ = [external["spec"] for one in found.values() for external in one.get("externals", [])]
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(f"{folder / 'spack.yaml'}: {reason}.") from None
    return found


def versions(folder: Path) -> dict[str, dict[str, str | None]]:
    """Return by package the version of each external, and its prefix.

    :raises InvalidInputError: as `packages`.
    """
    found: dict[str, dict[str, str | None]] = {}
    for name, about in packages(folder).items():
        for external in about.get("externals", []):
            for version in _VERSION.findall(external["spec"])[:1]:
                found.setdefault(name, {})[version] = external.get("prefix")
    return found


def disagreement(folder: Path, locked: Lock) -> str | None:
    """Return a sentence about externals of a lock that ``spack.yaml`` has in another version or
    folder; None without any.

    :raises InvalidInputError: as `packages`.
    """
    described = versions(folder)
    differ = []
    for external in locked.externals:
        known = described.get(external.name, {})
        if known and known.get(external.version, "") not in (None, external.prefix):
            stated = " or ".join(map(_at, known.items()))
            differ.append(
                f"{external.name} {stated}, locked {_at((external.version, external.prefix))}"
            )
    if not differ:
        return None
    return (
        f"{folder / 'spack.yaml'} and its lock differ ({'; '.join(differ)}): make the lock anew, "
        f"spack-env/install --new-lock {folder.name}."
    )


def _at(external: tuple[str, str | None]) -> str:
    version, prefix = external
    return f"{version} ({prefix})" if prefix else version
