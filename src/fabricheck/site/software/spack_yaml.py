"""An environment's ``spack.yaml``: the site's software that it names, compared with its lock."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.site.software.lock import Lock

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
