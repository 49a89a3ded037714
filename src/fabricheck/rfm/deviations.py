"""How the session that is being started deviates from what this commit states."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.references import shipped
from fabricheck.references.published import folder
from fabricheck.rfm import reframe_internals
from fabricheck.site.clusters import RANK_PROGRAMS, mpi_without
from fabricheck.site.deviations import Deviation

#: The variables of checks that -S may set and that change no judgement: the overlay of a simulated
#: node, which every document names, and how long a job may wait or a program take.
_FREE = frozenset(
    {"overlay", "seconds", "max_pending_time", "time_limit", "nodes", "load_s", "energy_s"}
)

#: The checks of this commit.
_CHECKS = checkout.ROOT / "reframe_checks"


def when_started(partition: Any, checks: Iterable[type]) -> list[Deviation]:
    """Return the deviations of a partition that its session has before anything is measured.

    :param checks: the classes of its checks.
    """
    changed = [*_changing_options(), *_other_files(checks)]
    deviations = [
        Deviation(name="other-references", facts=_other_references()),
        Deviation(name="other-references", facts=_other_node_model(partition)),
        Deviation(name="without-mpi", facts=list(_without_mpi(partition))),
        Deviation(name="changed-checks", facts=changed),
    ]
    return [deviation for deviation in deviations if deviation.facts]


def of_programs(programs: Iterable[tuple[str, str]]) -> list[Deviation]:
    """Return the deviation of programs that are not of this checkout's sources.

    :param programs: the version and the commit of each.
    """
    others = [
        f"{version} ({commit})"
        for version, commit in sorted(set(programs))
        if not _is_of_this_checkout(version, commit)
    ]
    if not others:
        return []
    here = f"{fabricheck.__version__} ({checkout.commit()})"
    return [Deviation(name="other-programs", facts=[here, *others])]


def _other_references() -> list[str]:
    """Return the folder of references, and its files that are not those of this commit."""
    files = list(shipped.differing_files(folder()))
    return [str(folder()), *files] if files else []


def _other_node_model(partition: Any) -> list[str]:
    """Return the folder of node models and the partition's, where this commit has another one.

    The working folder comes before the checkout, whose own may have uncommitted changes. A model
    that the commit lacks is a site's own.
    """
    name = partition.extras.get("node")
    shipped_model = checkout.ROOT / "config" / "nodes" / f"{name}.yaml"
    if not name or not shipped_model.is_file():
        return []
    used = checkout.config_file("nodes", name, "node model")
    is_copy = used.read_bytes() == shipped_model.read_bytes()
    if is_copy and used.name not in checkout.changed_files(shipped_model.parent):
        return []
    return [str(used.parent), used.name]


def _without_mpi(partition: Any) -> Iterator[str]:
    """Yield the variables that leave out checks of ranks although the partition has such."""
    if "ranks" not in partition.features:
        return
    for environment in partition.environs:
        runtime = environment.extras.get("runtime", "")
        if os.environ.get("FABRICHECK_MPI") == "OFF" and _lacks_rank_programs(environment):
            yield "FABRICHECK_MPI=OFF"
        variable = f"FABRICHECK_{runtime.upper()}_MPI_WITHOUT"
        if os.environ.get(variable) and mpi_without(runtime):
            yield f"{variable}={os.environ[variable]}"


def _lacks_rank_programs(environment: Any) -> bool:
    return set(RANK_PROGRAMS).isdisjoint(environment.features)


def _changing_options() -> Iterator[str]:
    """Yield the options by which checks are others: of their variables, and without their hooks."""
    for option, name in (("-S", "vars"), ("-P", "parameterize")):
        for each in reframe_internals.option(name) or []:
            if each.partition("=")[0].rpartition(".")[2] not in _FREE:
                yield f"{option} {each}"
    for hook in reframe_internals.option("hooks") or []:
        yield f"--disable-hook={hook}"


def _other_files(checks: Iterable[type]) -> Iterator[str]:
    """Yield the files of checks that have the name of one of this commit and are others.

    As RFM_CHECK_SEARCH_PATH may name them, left set by another checkout.
    """
    classes = dict.fromkeys(base for check in checks for base in check.__mro__)
    names_in: dict[Path, list[str]] = {}
    for each in classes:
        file = getattr(sys.modules.get(each.__module__), "__file__", None)
        if file is not None and not each.__module__.startswith(("fabricheck.", "reframe.")):
            names_in.setdefault(Path(file).resolve(), []).append(each.__name__)
    for file, names in names_in.items():
        if not file.is_relative_to(_CHECKS) and not _is_shipped(file, names):
            yield str(file)


def _is_shipped(file: Path, names: Collection[str]) -> bool:
    """Whether a file has no check of this commit, or is a copy of the file that has them."""
    for content in _shipped_checks():
        defined = re.findall(r"^class (\w+)", content.decode(), re.MULTILINE)
        if not {*names}.isdisjoint(defined) and file.read_bytes() != content:
            return False
    return True


@functools.cache
def _shipped_checks() -> list[bytes]:
    """Return the files of the checks of this commit."""
    return [file.read_bytes() for file in sorted(_CHECKS.rglob("*.py"))]


@functools.cache
def _is_of_this_checkout(version: str, commit: str) -> bool:
    if version != fabricheck.__version__:
        return False
    # Without git, as in an installation, the version is all that is known.
    if UNKNOWN in (commit, checkout.commit()):
        return True
    return checkout.has_sources_of(commit)
