"""The checks of each partition, asked of ReFrame: what fits its features, and is not skipped there.

A check is set up on each partition as in a session, without what it would start.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from reframe.core.exceptions import ReframeError, SkipTestError
from reframe.core.runtime import temp_runtime
from reframe.frontend.executors import generate_testcases
from reframe.frontend.loader import RegressionCheckLoader

from fabricheck.site import expected_checks, sets, sites
from fabricheck.site.expected_checks import Listed

#: What the environment of a user or a job says of a site; a list is of the site without it.
_VARIABLES = ("FABRICHECK_", "SLURM_")


def listed(files: Sequence[Path], checks: Sequence[Path], references: Path) -> dict[Path, str]:
    """Return the text of the list of each site file, by the file that it belongs in.

    :param checks: the folders of checks. references: that of the reference files.
    :raises ConfigError: for a site file that cannot be read.
    """
    found: dict[Path, list[Listed]] = {}
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder, _without_variables():
        asking = _Asking(Path(folder), checks, references)
        for file in files:
            own = found.setdefault(expected_checks.beside(file), [])
            for variables in sites.variants(file):
                os.environ.update(variables)
                own += asking.of(sites.read(file))
                for name in variables:
                    del os.environ[name]
    return {file: expected_checks.written(own) for file, own in found.items()}


@contextmanager
def _without_variables() -> Iterator[None]:
    kept = {name: text for name, text in os.environ.items() if name.startswith(_VARIABLES)}
    for name in kept:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(kept)


class _Asking:
    """ReFrame with the checks, which are loaded once, and one site after the other."""

    def __init__(self, folder: Path, checks: Sequence[Path], references: Path) -> None:
        self._folder = folder
        self._paths = [str(one) for one in checks]
        self._options = {
            "systems/prefix": str(folder),
            "general/reference_prefix": str(references),
        }
        self._checks: list[Any] = []

    def of(self, site: Mapping[str, Any]) -> Iterator[Listed]:
        """Yield the lists of the partitions of a site."""
        for system in site.get("systems", []):
            settings = self._folder / "settings.yaml"
            settings.write_text(yaml.safe_dump(_plain(system, site["environments"])))
            with temp_runtime(str(settings), system["name"], self._options):
                if not self._checks:
                    self._checks = RegressionCheckLoader(self._paths, recurse=True).load_all()
                for partition in system["partitions"]:
                    where = f"{system['name']}:{partition['name']}"
                    own = self._own(where)
                    yield Listed(partition=where, node=partition["extras"].get("node"), checks=own)

    def _own(self, where: str) -> dict[str, Sequence[str]]:
        cases = [
            case
            for case in generate_testcases(self._checks)
            # What is in no set runs only if asked for.
            if case.partition.fullname == where and sets.EVERYTHING in case.check.tags
        ]
        names = {type(case.check).__name__: case.check for case in cases if not _is_skipped(case)}
        return {name: tuple(names[name].valid_prog_environs) for name in sorted(names)}


def _plain(system: Mapping[str, Any], environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of a system, all programs installed, without a launcher to be asked."""
    local = {"scheduler": "local", "launcher": "local"}
    partitions = [
        {
            **{name: value for name, value in one.items() if name in _KEPT},
            "extras": {k: v for k, v in one["extras"].items() if k != "mpi_launcher"},
            **local,
        }
        for one in system["partitions"]
    ]
    return {
        "systems": [{"name": system["name"], "hostnames": ["^$"], "partitions": partitions}],
        "environments": [
            {
                **{name: value for name, value in one.items() if name in _KEPT},
                "features": expected_checks.with_all_installed(one)["features"],
            }
            for one in environments
        ],
    }


#: What decides which checks a partition has.
_KEPT = ("name", "environs", "features", "devices", "extras", "target_systems")


def _is_skipped(case: Any) -> bool:
    try:
        case.check.setup(case.partition, case.environ)
    except SkipTestError:
        return True
    except ReframeError:
        # That it fails, as for want of a reference, a session will say.
        return False
    return False
