"""Gathering of the site files into one ReFrame configuration."""

from __future__ import annotations

import argparse
import os
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.site import site_schema

SHIPPED = ROOT / "config" / "sites"

#: The variable with a folder of further site files, each with its list of checks.
VARIABLE = "FABRICHECK_SITES"

#: The pattern of host names of a system that is for every machine without a system.
_ANY_HOST = ".*"

#: The longest quotation of an error in a site file, in characters.
_LONGEST = 300


def folders(shipped: Path = SHIPPED) -> list[Path]:
    """Return the folders of site files: the one in FABRICHECK_SITES, then the suite's."""
    further = os.environ.get(VARIABLE)
    return [*([Path(further)] if further else []), shipped]


def files(*where: Path) -> list[Path]:
    """Return the site files of some folders, in the order in which they are read."""
    return [file for folder in where for file in sorted(folder.glob("*.py"))]


def selected(arguments: Sequence[str]) -> tuple[str, str]:
    """Return the system and the partition that ReFrame's arguments select; empty without one.

    :param arguments: of its command line, which take the place of RFM_SYSTEM.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--system", default=os.environ.get("RFM_SYSTEM", ""))
    named, _ = parser.parse_known_args(list(arguments))
    system, _, partition = named.system.partition(":")
    return system, partition


def gather(*where: Path, system: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return the merged sections of the site files in some folders.

    Systems that match any host name come last: ReFrame selects the first match, as `system_of`.

    :param system: the only system to return; where the file of that name has it, no other is read.
    :raises InvalidInputError: for a file that cannot be read, assigns no ``site_configuration``, or
        lacks what the checks rely on, with its name; for two definitions of the same system,
        partition or environment; and for a folder without site files.
    :raises NotFoundError: without one of the folders, and without the system.
    """
    for folder in where:
        if not folder.is_dir():
            raise NotFoundError(
                f"There is no folder of sites {folder}: change to the root of the repository."
            )
    sections: dict[str, list[dict[str, Any]]] = {}
    defined: dict[str, Path] = {}
    for file in files(*where) if system is None else [_file_of(system, *where)]:
        site = read(file)
        if system is not None:
            site["systems"] = [one for one in site["systems"] if one["name"] == system]
        for what in _defined(site):
            if what in defined:
                raise InvalidInputError(
                    f"Site files {defined[what]} and {file} define the same {what}."
                )
            defined[what] = file
        for name, entries in site.items():
            sections.setdefault(name, []).extend(entries)
    if "systems" not in sections:
        raise InvalidInputError(
            f"There is no site file with a system in {' and '.join(map(str, where))}."
        )
    sections["systems"].sort(key=lambda system: _ANY_HOST in system["hostnames"])
    return sections


def _file_of(system: str, *where: Path) -> Path:
    named = [folder / f"{system}.py" for folder in where if (folder / f"{system}.py").is_file()]
    others = [file for file in files(*where) if file not in named]
    known = []
    for file in (*named, *others):
        known += [one["name"] for one in read(file).get("systems", [])]
        if system in known:
            return file
    raise NotFoundError(
        f"There is no site {system!r}; the sites are {', '.join(sorted(set(known)))}."
    )


def system_of(machine: str, *where: Path) -> str | None:
    """Return the name of a machine's system, from the first folder that has one; None without any.

    :param machine: its host name and the site's own name, as ``uan01 dardel``.
    :raises InvalidInputError: for a site file as `gather` does; and when host names of two systems
        in one folder match the machine, with both names.
    """
    systems = [[one for file in files(folder) for one in read(file).get("systems", [])]
               for folder in where]  # fmt: skip
    for here in systems:
        found = [one["name"] for one in here if _matches(one, machine)]
        if len(found) > 1:
            raise InvalidInputError(
                f"The machine '{machine}' is both {' and '.join(found)} by the hostnames of their "
                "site files: name one, as in --system, or correct the patterns."
            )
        if found:
            return str(found[0])
    every = (one["name"] for here in systems for one in here if _ANY_HOST in one["hostnames"])
    return next(every, None)


def _matches(system: Mapping[str, Any], machine: str) -> bool:
    patterns = system["hostnames"]
    return _ANY_HOST not in patterns and any(re.match(one, machine) for one in patterns)


def _run(file: Path) -> dict[str, Any]:
    try:
        return runpy.run_path(str(file))
    except InvalidInputError as error:
        raise InvalidInputError(f"Site file {file}: {error}") from None
    except Exception as error:
        # Without its cause, which ReFrame would repeat.
        raise InvalidInputError(
            f"Site file {file} cannot be read: {type(error).__name__}: {_excerpt(error)}."
        ) from None


def _excerpt(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST]


def read(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the content of a site file.

    :raises InvalidInputError: as `gather` does for a file.
    """
    site = _run(file).get("site_configuration")
    if not isinstance(site, dict) or not all(isinstance(part, list) for part in site.values()):
        raise InvalidInputError(
            f"Site file {file} must assign site_configuration, a mapping of lists."
        )
    wrong = site_schema.fault(site)
    if wrong:
        raise InvalidInputError(f"Site file {file}: {wrong}")
    return site


def _defined(site: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    # ReFrame accepts two of the same name, and warns before warnings are errors.
    for system in site.get("systems", []):
        yield f"system {system['name']}"
        for partition in system["partitions"]:
            yield f"partition {system['name']}:{partition['name']}"
    for environment in site.get("environments", []):
        for system in environment.get("target_systems") or ["*"]:
            yield f"environment {environment['name']} of {system}"
