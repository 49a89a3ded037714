"""The checks of any site's partition, set up here as in a session, without starting anything."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from reframe.core.exceptions import ReframeError, SkipTestError
from reframe.core.logging import getlogger
from reframe.core.runtime import temp_runtime
from reframe.frontend.executors import generate_testcases
from reframe.frontend.loader import RegressionCheckLoader

from fabricheck.core.errors import NotFoundError
from fabricheck.references.published import PREFIX_VARIABLE
from fabricheck.site import sets, sites


@contextmanager
def set_up(partition: str, checks: Sequence[Path], references: Path) -> Iterator[Iterator[Any]]:
    """Set up ReFrame for a partition, and give the checks of its sets, set up for it.

    :param checks: the folders of checks.
    :param references: the folder of the reference files.
    :raises NotFoundError: when no site has the partition.
    """
    system, environments = _site_of(partition)
    with (
        tempfile.TemporaryDirectory(prefix="fabricheck-") as folder,
        mock.patch.dict(os.environ, {PREFIX_VARIABLE: str(references)}),
    ):
        settings = Path(folder) / "settings.yaml"
        settings.write_text(yaml.safe_dump(settings_of(system, environments)))
        with temp_runtime(str(settings), system["name"], {"systems/prefix": folder}):
            yield _of(partition, load(checks))


def _site_of(partition: str) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    for file in sites.files(*sites.folders()):
        site = sites.read(file)
        for system in site.get("systems", []):
            if partition in (f"{system['name']}:{one['name']}" for one in system["partitions"]):
                return system, site["environments"]
    raise NotFoundError(f"No site has the partition {partition}.")


def load(folders: Sequence[Path]) -> list[Any]:
    """Load the checks in some folders; one that cannot be loaded is an error, not a warning."""
    logger = getlogger()
    before, logger.warn_as_error = logger.warn_as_error, True
    try:
        return list(RegressionCheckLoader([str(one) for one in folders], recurse=True).load_all())
    finally:
        logger.warn_as_error = before


def _of(partition: str, checks: Sequence[Any]) -> Iterator[Any]:
    """Yield the checks of a partition's sets, without those that skip themselves."""
    for case in generate_testcases(checks):
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


def settings_of(
    system: Mapping[str, Any], environments: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the settings of a system, with a launcher that any machine has."""
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
        "environments": list(environments),
    }
