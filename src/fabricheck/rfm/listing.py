"""ReFrame's list of the checks of a partition, which may belong to another machine.

Checks are set up as in a session with all programs installed, and nothing is started.
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

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.references.published import PREFIX_VARIABLE
from fabricheck.rfm import seams
from fabricheck.site import expected_checks, sets, sites
from fabricheck.site.expected_checks import Check, Listed

#: Variables by which a user or a job changes a site; a list is made without them.
_VARIABLES = ("FABRICHECK_", "SLURM_")


def listed(files: Sequence[Path], checks: Sequence[Path], references: Path) -> dict[Path, str]:
    """Return the text of the list of each site file, by the path of the list.

    :param checks: the folders of checks.
    :param references: the folder of the reference files.
    :raises InvalidInputError: when a site file cannot be read, or a check cannot be loaded.
    """
    found: dict[Path, list[Listed]] = {}
    with _environment_kept(), _checks(checks, references) as loaded:
        for name in [name for name in os.environ if name.startswith(_VARIABLES)]:
            del os.environ[name]
        for file in files:
            own = found.setdefault(expected_checks.beside(file), [])
            for variables in sites.variants(file):
                with _environment_kept():
                    os.environ.update(variables)
                    own += loaded.of(sites.read(file))
    return {file: expected_checks.written(own) for file, own in found.items()}


def independent(
    partition: str, checks: Sequence[Path], references: Path
) -> dict[str, frozenset[str]]:
    """Return by check the metrics that do not depend on the number of devices.

    :param partition: the partition of the metrics.
    :param checks, references: as in `listed`.
    :raises NotFoundError: when no site has the partition.
    :raises InvalidInputError: when a check cannot be loaded.
    """
    with set_up(partition, checks, references) as found:
        return {
            type(check).__name__: frozenset(
                one.name for one in check.expected_metrics() if one.independent
            )
            for check in found
        }


@contextmanager
def set_up(partition: str, checks: Sequence[Path], references: Path) -> Iterator[Iterator[Any]]:
    """Set up ReFrame for a partition, and return the checks of its sets, set up for it.

    :param checks, references: as in `listed`.
    :raises NotFoundError: when no site has the partition.
    :raises InvalidInputError: when a check cannot be loaded.
    """
    for file in sites.files(*sites.folders()):
        site = sites.read(file)
        for system in site.get("systems", []):
            if partition in (f"{system['name']}:{one['name']}" for one in system["partitions"]):
                with (
                    _checks(checks, references) as loaded,
                    loaded.runtime(system, site["environments"]),
                ):
                    yield loaded.set_up(partition)
                    return
    raise NotFoundError(f"No site has the partition {partition}.")


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore the environment variables afterwards."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _checks(checks: Sequence[Path], references: Path) -> Iterator[_Checks]:
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        yield _Checks(Path(folder), checks, references)


class _Checks:
    """The checks, loaded once for all sites."""

    def __init__(self, folder: Path, checks: Sequence[Path], references: Path) -> None:
        seams.leave_out_ignored_warnings()
        self._folder = folder
        self._paths = [str(one) for one in checks]
        self._references = str(references)
        self._loaded: list[Any] = []

    def of(self, site: Mapping[str, Any]) -> Iterator[Listed]:
        """Yield the lists of the partitions of a site."""
        for system in site.get("systems", []):
            with self.runtime(system, site["environments"]):
                for one in system["partitions"]:
                    where = f"{system['name']}:{one['name']}"
                    found = {
                        type(check).__name__: Check(
                            environs=list(check.valid_prog_environs), tags=sorted(check.tags)
                        )
                        for check in self.set_up(where)
                    }
                    listed = dict(sorted(found.items()))
                    yield Listed(partition=where, node=one["extras"].get("node"), checks=listed)

    @contextmanager
    def runtime(
        self, system: Mapping[str, Any], environments: Sequence[Mapping[str, Any]]
    ) -> Iterator[None]:
        """Set up ReFrame for a system."""
        settings = self._folder / "settings.yaml"
        settings.write_text(yaml.safe_dump(_plain(system, environments)))
        options = {"systems/prefix": str(self._folder)}
        with _environment_kept():
            os.environ[PREFIX_VARIABLE] = self._references
            with temp_runtime(str(settings), system["name"], options):
                if not self._loaded:
                    self._loaded = self._load()
                yield

    def _load(self) -> list[Any]:
        try:
            return seams.load_checks(self._paths)
        except (ReframeError, SyntaxError, UnicodeError) as error:
            why = str(error).partition(" (rerun with")[0]
            raise InvalidInputError(f"The checks cannot be loaded: {why}.") from None

    def set_up(self, partition: str) -> Iterator[Any]:
        """Yield the checks of a partition's sets, without skipped checks."""
        for case in seams.test_cases(self._loaded):
            # Checks in no set run only if requested.
            of_sets = sets.known().keys() & case.check.tags
            if case.partition.fullname == partition and of_sets:
                try:
                    case.check.setup(case.partition, case.environ)
                except SkipTestError:
                    continue
                except ReframeError:
                    # A session will report its failure, as for a missing reference.
                    pass
                yield case.check


def _plain(system: Mapping[str, Any], environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a system's settings with all programs installed, and an unused launcher."""
    partitions = [
        {
            **one,
            "scheduler": "local",
            "launcher": "local",
            "extras": {
                name: one["extras"][name] for name in one["extras"].keys() - {"mpi_launcher"}
            },
        }
        for one in system["partitions"]
    ]
    return {
        "systems": [{"name": system["name"], "hostnames": ["^$"], "partitions": partitions}],
        "environments": [expected_checks.with_all_installed(one) for one in environments],
    }
