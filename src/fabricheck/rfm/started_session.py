"""A session that is being started: the checks that it selects, and what it must have at its end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reframe.core import runtime
from reframe.core.exceptions import ReframeError

from fabricheck.core import show
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import enumerated
from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.results import requested_nodes
from fabricheck.results.session_checks import PartitionChecks, SessionChecks, last_checks
from fabricheck.rfm import deviations, distributed, reframe_internals
from fabricheck.site import partitions, sets

#: The options that select test cases.
SELECTING = (
    "names",
    "exclude_names",
    "tags",
    "exclude_tags",
    "filter_expr",
    "maintainers",
    "prgenv",
    "gpu_only",
    "cpu_only",
    "failed",
    "restore_session",
)

#: The defaults of these options.
NOT_GIVEN: tuple[Any, ...] = (None, False, [], [".*"])

#: The options that select checks, as a user types them.
CHOOSING = {
    "names": "-n",
    "exclude_names": "-x",
    "tags": "-t",
    "exclude_tags": "-T",
    "filter_expr": "-E",
}

#: The options that request a check by its properties; the checks of a restored session were
#: requested earlier.
REQUESTING = ("names", "tags", "failed", "restore_session")


@dataclass(frozen=True)
class Ended:
    """The cases that ended: those that ran, passed or not, and those that skipped themselves."""

    ran: Sequence[Any]
    passed: Sequence[Any]
    skipped: Sequence[Any]

    @classmethod
    def of_runner(cls, runner: Any) -> Ended:
        """Return those of a runner of ReFrame."""
        ran, passed, skipped = [], [], []
        for task in reframe_internals.ended_tasks(runner):
            # One whose dependency failed is skipped, but then the session has failed already.
            if task.skipped and not task.failed_deps:
                skipped.append(task.testcase)
                continue
            ran.append(task.testcase)
            if task.succeeded and not task.skipped:
                passed.append(task.testcase)
        return cls(ran, passed, skipped)


class StartedSession:
    """The options and the checks of the session that is being started."""

    def __init__(self) -> None:
        known = reframe_internals.session
        self._path = ":".join(runtime.runtime().get_option("general/0/check_search_path"))
        #: The nodes of --distribute; ``None`` without it.
        self.nodes: distributed.NodeMap | None = known.node_map
        #: The cases of the files, before any selection, --repeat or --distribute.
        self._generated = [
            testcase for testcase in known.testcases if not testcase.check.is_fixture()
        ]

    def requested(self, testcases: Iterable[Any]) -> list[Any]:
        """Return the cases without those that run only if a name or a tag selects them."""
        cases = list(testcases)
        if any(reframe_internals.option(name) for name in REQUESTING):
            return cases
        out = [case for case in cases if getattr(case.check, "only_if_requested", False)]
        if os.environ.get(ENV_METRICS):
            # Who asks for the metrics of all checks asks for all sets.
            out = [case for case in out if sets.known().keys().isdisjoint(case.check.tags)]
        if out:
            names = sorted({type(case.check).__name__ for case in out})
            show.line(f"These checks run only if requested by -n or -t: {show.listed(names)}.")
        return [case for case in cases if case not in out]

    def checks(self) -> SessionChecks:
        """Return the checks of each partition, and those that it lost.

        A session of names (-n), and one that repeats another's part, may be of fewer check files.
        """
        results = Path(runtime.runtime().output_prefix).parent.parent
        partitions = {}
        for partition in _whole_partitions():
            where = partition.fullname
            checks = {
                type(case.check).__name__: sorted(case.check.tags)
                for case in self._generated
                if case.partition.fullname == where
                and not getattr(case.check, "depends_on_place", False)
            }
            before = _last(results, where)
            lost = {} if self._is_part else _lost(partition, checks, before)
            ran = before.partitions[where].ran if before is not None else ()
            classes = dict.fromkeys(
                type(case.check)
                for case in self._generated
                if case.partition.fullname == where and not is_plain(case.check)
            )
            plain = [type(case.check).__name__ for case in self._generated if is_plain(case.check)]
            partitions[where] = PartitionChecks(
                checks=checks,
                lost=lost,
                ran=ran,
                plain=sorted(checks.keys() & plain),
                deviations=deviations.when_started(partition, classes),
                accepts=partition.extras.get("accepts", ()),
            )
        return SessionChecks(written=requested_nodes.now(), partitions=partitions)

    def with_outcomes(self, checks: SessionChecks, ended: Ended) -> SessionChecks:
        """Return the checks with those that ran.

        One that ran before and skips now is lost.
        """
        partitions = {}
        for where, before in checks.partitions.items():
            ran = _classes(ended.ran, where)
            skips = _classes(ended.skipped, where) - ran
            now = () if self._is_part else sorted(skips & set(before.ran))
            lost = {name: "skipped now, run in an earlier session" for name in now}
            programs = _programs(ended.ran, where)
            changes = {
                "deviations": [*before.deviations, *deviations.of_programs(programs)],
                "lost": {**before.lost, **lost},
                "ran": sorted(set(before.ran) - skips | ran),
                "without_value": dict(_without_value(ended.passed, where)),
            }
            partitions[where] = before.model_copy(update=changes)
        return SessionChecks(written=checks.written, partitions=partitions)

    def require_all(self, checks: SessionChecks) -> None:
        """Raise an error when a partition lost checks, or one passed without a value."""
        partitions = checks.partitions.items()
        sentences = [each for where, partition in partitions for each in partition.losses(where)]
        if sentences:
            sentences.append(f"The checks are those of {self._path}.")
        sentences += [
            each for where, partition in partitions for each in partition.valueless(where)
        ]
        if sentences:
            raise ReframeError(" ".join(sentences))

    @property
    def _is_part(self) -> bool:
        return bool(
            reframe_internals.option("names") or reframe_internals.option("restore_session")
        )

    def require_choice(self, testcases: Iterable[Any]) -> None:
        """Raise an error when a name or an environment is unknown, or nothing is selected."""
        self._require_environments()
        self._require_names()
        if not list(testcases):
            raise ReframeError(f"Nothing to run: no test case was selected; {self._why_nothing()}.")
        if not self._is_part and all(is_plain(case.check) for case in self._generated):
            raise ReframeError(
                f"{self._path} has no check of this suite: name reframe_checks by -c too, or the "
                "tests by -n."
            )

    def require_left(self, testcases: Iterable[Any], ended: Ended) -> None:
        """Raise an error when a selected check, or every check, did not finish.

        A check skips itself where the node has not what it measures.
        """
        if not ended.ran:
            raise ReframeError(
                f"Nothing was run: all test cases were skipped or stopped; {self._why_nothing()}."
            )
        for partition in runtime.runtime().system.partitions:
            where = partition.fullname
            done = _classes(ended.ran, where) | _classes(ended.skipped, where)
            stopped = sorted(_classes(testcases, where) - done)
            if stopped:
                raise ReframeError(
                    f"Partition {where}: the session ended before {show.listed(stopped)}."
                )

    def chosen(self) -> list[str]:
        """Return the options that select checks, as a user may type them."""
        words = []
        for name, option in CHOOSING.items():
            for value in reframe_internals.option(name) or ():
                words += [option, value]
        return words

    def _require_names(self) -> None:
        for pattern in reframe_internals.option("names") or []:
            if not reframe_internals.named(pattern, (case.check for case in self._generated)):
                unfit = reframe_internals.named(pattern, reframe_internals.session.checks)
                names = show.listed(sorted({type(case.check).__name__ for case in self._generated}))
                known = f"there are {names or f'none in {self._path}'}"
                raise ReframeError(
                    f"-n {pattern} names no check of system {runtime.runtime().system.name}: "
                    f"{_needs(unfit[0]) if unfit else known}."
                )

    def _require_environments(self) -> None:
        environments = sorted(
            {
                name
                for partition in runtime.runtime().system.partitions
                for name in _environments(partition)
            }
        )
        for pattern in reframe_internals.option("prgenv") or []:
            if not any(re.match(pattern, name) for name in environments):
                raise ReframeError(
                    f"-p {pattern} names no environment of system {runtime.runtime().system.name}: "
                    f"there are {show.listed(environments)}."
                )

    def _why_nothing(self) -> str:
        system = runtime.runtime().system.name
        if not self._generated:
            return f"{self._path} contains no check for system {system}"
        given = {name: reframe_internals.option(name) for name in SELECTING}
        chosen = [f"{name}={value}" for name, value in given.items() if value not in NOT_GIVEN]
        selection = show.listed(chosen) or "all"
        return f"system {system} has {len(self._generated)}; the selection was {selection}"


def is_plain(check: Any) -> bool:
    """Return whether a test derives from no check of this suite."""
    return not any(base.__module__.startswith("fabricheck.") for base in type(check).__mro__)


def _needs(check: Any) -> str:
    """Return what a check needs of a system that does not have it."""
    systems = enumerated(check.valid_systems, last="or")
    environments = enumerated(check.valid_prog_environs, last="or")
    needs = f"{type(check).__name__} needs a partition with {systems}"
    if is_plain(check):
        return f"{needs} and an environment with {environments} that is not simulated"
    return f"{needs} and an environment with {environments}"


def _environments(partition: Any) -> list[str]:
    """Return all environments that the site gives a partition; -p hides those not selected."""
    stated = runtime.runtime().get_option("systems/0/partitions")
    return next(list(part["environs"]) for part in stated if part["name"] == partition.name)


def _whole_partitions() -> list[Any]:
    """Return the partitions whose environments are all selected; others have fewer checks."""
    return [
        partition
        for partition in runtime.runtime().system.partitions
        if {environ.name for environ in partition.environs} == set(_environments(partition))
    ]


def _last(results: Path, where: str) -> SessionChecks | None:
    try:
        return last_checks(results, where)
    except FabricheckError as error:
        show.line(f"The checks of {where} are not compared with those of its last session: {error}")
        return None


def _lost(
    partition: Any, checks: Mapping[str, Sequence[str]], before: SessionChecks | None
) -> dict[str, str]:
    """Return by name of an experiment or a check that a partition lacks why it should have it."""
    features = {
        *partition.features,
        *(feature for env in partition.environs for feature in env.features),
    }
    there = {tag for tags in checks.values() for tag in tags}
    lost = {
        experiment: "which its features imply"
        for experiment in partitions.implied(features)
        if experiment not in there
    }
    if before is not None:
        last = before.partitions[partition.fullname]
        why = f"which its session of {before.written:%Y-%m-%d %H:%M:%S} had"
        lost |= {name: why for name in last.checks if name not in (*checks, *last.plain)}
    return lost


def _classes(testcases: Iterable[Any], where: str) -> set[str]:
    return {type(case.check).__name__ for case in testcases if case.partition.fullname == where}


def _programs(testcases: Iterable[Any], where: str) -> set[tuple[str, str]]:
    """Return version and commit of the programs whose documents the checks of a partition read."""
    return {
        case.check.measured_by
        for case in testcases
        if case.partition.fullname == where and getattr(case.check, "measured_by", None)
    }


def _without_value(passed: Iterable[Any], where: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the checks that passed without the value of a performance variable, and which.

    One in another unit than its reference's is none: ReFrame only warns, and compares the numbers.
    """
    for case in passed:
        judged = {key.rsplit(":", 1)[-1]: key for key in case.check.perfvalues}
        lacking = [name for name in case.check.perf_variables if name not in judged]
        for name, key in judged.items():
            for unit in _stated_unit(case.check.reference.get(key, ())):
                if unit != case.check.perf_variables[name].unit:
                    lacking.append(f"{name} in {unit}, the unit of its reference")
        if lacking and case.partition.fullname == where:
            yield type(case.check).__name__, lacking


def _stated_unit(reference: Any) -> Sequence[str]:
    """Return the unit of a reference, which may be an expected failure; empty without one."""
    return [unit for unit in getattr(reference, "data", reference)[3:] if unit is not None]
