"""How the session that is being started deviates from what this commit states."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
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


def when_started(partition: Any) -> list[Deviation]:
    """Return the deviations of a partition that its session has before anything is measured."""
    deviations = [
        Deviation(name="other-references", facts=_other_references()),
        Deviation(name="without-mpi", facts=list(_without_mpi(partition))),
        Deviation(name="changed-checks", facts=_changed_variables()),
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


def _changed_variables() -> list[str]:
    """Return the options -S that set a variable by which checks are selected or judged."""
    given: list[str] = reframe_internals.option("vars") or []
    return [each for each in given if each.partition("=")[0].rpartition(".")[2] not in _FREE]


@functools.cache
def _is_of_this_checkout(version: str, commit: str) -> bool:
    if version != fabricheck.__version__:
        return False
    # Without git, as in an installation, the version is all that is known.
    if UNKNOWN in (commit, checkout.commit()):
        return True
    return checkout.has_sources_of(commit)
