"""Gathering of the site files into one ReFrame configuration."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reframe.core.exceptions import ConfigError

from fabricheck.site import site_schema


def gather(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the sections of all site files in a folder, each section one list.

    Systems that take any host name come last: ReFrame selects the first that matches.

    :raises ConfigError: for a file that can not be read, assigns no ``site_configuration``, or
        lacks what the checks rely on, with its name; for two definitions of the same system,
        partition or environment; and for a folder without site files.
    """
    sections: dict[str, list[dict[str, Any]]] = {}
    defined: dict[str, Path] = {}
    for file in sorted(folder.glob("*.py")):
        site = _read(file)
        for what in _defined(site):
            if what in defined:
                raise ConfigError(f"Site files {defined[what]} and {file} define the same {what}.")
            defined[what] = file
        for name, entries in site.items():
            sections.setdefault(name, []).extend(entries)
    if "systems" not in sections:
        raise ConfigError(f"There is no site file with a system in {folder}.")
    sections["systems"].sort(key=lambda system: ".*" in system.get("hostnames", []))
    return sections


def _read(file: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        site = runpy.run_path(str(file)).get("site_configuration")
    except ConfigError as error:
        raise ConfigError(f"Site file {file}: {error}") from None
    except Exception as error:
        # Without its cause, which ReFrame would say again.
        raise ConfigError(
            f"Site file {file} can not be read: {type(error).__name__}: {error}."
        ) from None
    if not isinstance(site, dict) or not all(isinstance(part, list) for part in site.values()):
        raise ConfigError(f"Site file {file} assigns no site_configuration made of lists.")
    wrong = site_schema.fault(site)
    if wrong:
        raise ConfigError(f"Site file {file}: {wrong}")
    return site


def _defined(site: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    # ReFrame takes one of two that have the same name, and warns before warnings are errors.
    for system in site.get("systems", []):
        yield f"system {system['name']}"
        for partition in system["partitions"]:
            yield f"partition {system['name']}:{partition['name']}"
    for environment in site.get("environments", []):
        for system in environment.get("target_systems") or ["*"]:
            yield f"environment {environment['name']} of {system}"
