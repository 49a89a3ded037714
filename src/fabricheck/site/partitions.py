"""The partitions of the sites: what the site files and the lists beside them say of each."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, NotFoundError
from fabricheck.site import sites


def able(gathered: dict[str, list[dict[str, Any]]] | None) -> dict[str, tuple[str, ...]] | None:
    """Return by tag the partitions, ``system:partition``, that must have a check with it.

    A simulated one says so, as in ``local:sim-mi250x (simulated)``. None where there are no sites.

    :param gathered: what the site files say.
    """
    if gathered is None:
        return None
    found: dict[str, list[str]] = {}
    for system in gathered.get("systems", []):
        for one in system.get("partitions", []):
            simulated = " (simulated)" if "simulated" in one.get("features", []) else ""
            name = f"{system['name']}:{one['name']}{simulated}"
            checks = one.get("extras", {}).get("expected_checks", {})
            for tag in {tag for tags in checks.values() for tag in tags}:
                found.setdefault(tag, []).append(name)
    return {tag: tuple(names) for tag, names in found.items()}


def read_sites(*folders: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Return what the site files say, as ReFrame's settings gather it; None without readable ones.

    A site file is Python and may need its machine, so a broken one is not this command's error.
    """
    try:
        return require_sites(*folders)
    except FabricheckError:
        return None


@functools.cache
def known_sites() -> dict[str, list[dict[str, Any]]] | None:
    """Return what the site files say, read once in a process; None without readable ones."""
    return read_sites()


def known(where: str) -> Mapping[str, Any]:
    """Return what its site says of a partition, ``system:partition``; nothing of one of no site."""
    for system in (known_sites() or {}).get("systems", []):
        for one in system.get("partitions", []):
            if f"{system['name']}:{one['name']}" == where:
                found: dict[str, Any] = one
                return found
    return {}


def extras(where: str) -> Mapping[str, Any]:
    """Return the extras of a partition; none of one of no site."""
    found: dict[str, Any] = known(where).get("extras", {})
    return found


def require_sites(*folders: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what the site files say, as ReFrame's settings gather it.

    :param folders: of site files; by default those of `sites.folders`.
    :raises NotFoundError: without a folder, as outside of the repository.
    :raises InvalidInputError: when a site file cannot be read, with its name and why.
    """
    where = folders or tuple(sites.folders())
    for folder in where:
        if not folder.is_dir():
            raise NotFoundError(
                f"There is no folder of sites {folder}: run this in the repository."
            )
    return sites.gather(*where)
