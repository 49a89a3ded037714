"""The session guard: a session that ran nothing, or less than it should, fails.

ReFrame ends with status 0 when no test case is left to run, and has no hook around a session. The
functions here are called through `reframe_internals`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe.core import runtime
from reframe.core.exceptions import ReframeError, RunSessionTimeout

from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, end_session
from fabricheck.core.show import enumerated
from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.node import load as load_node
from fabricheck.results import marking, marks, requested_nodes
from fabricheck.results.session_checks import (
    PartitionChecks,
    SessionChecks,
    last_checks,
    write_checks,
)
from fabricheck.rfm import (
    deviations,
    distributed,
    gitlab,
    hosts,
    jobs,
    node_lock,
    reframe_internals,
)
from fabricheck.schedulers import table
from fabricheck.site import partitions, sets, software

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

#: Prints a sentence between ReFrame's own.
say = show.line

#: The tag of checks that measure what joins the nodes of a machine.
NETWORK = "network"

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


def install(mark: Path | None = None) -> None:
    """Install the guard around ReFrame's sessions; a second call changes only the mark.

    :param mark: that of the session; None where nothing is measured.
    :raises ConfigError: when this ReFrame lacks a function that the guard needs.
    """
    reframe_internals.session.mark = mark
    reframe_internals.refuse_doubtful_settings()
    reframe_internals.end_without_warning()
    reframe_internals.skip_ignored_warnings()
    reframe_internals.watch_session(_measures)
    reframe_internals.around_run(_guard_run)
    reframe_internals.around_store(_guard_store)
    reframe_internals.around_pipeline(_guard_pipeline)
    reframe_internals.around_nodes(distributed.distributed_nodes)
    reframe_internals.hold_back(_waits)
    reframe_internals.after_squeue(jobs.complete)
    reframe_internals.around_blocked(jobs.cancel_if_blocked)
    reframe_internals.around_hosts(hosts.submit, hosts.command, hosts.complete)


def _guard_run(original: Any, runner: Any, testcases: Any, *args: Any, **kwargs: Any) -> Any:
    session = _Session()
    testcases = session.requested(testcases)
    session.require_choice(testcases)
    _require_overlays(testcases)
    dry_run = reframe_internals.option("dry_run")
    if dry_run:
        reframe_internals.suppress_reports()
    else:
        _complete_mark()
        _require_judgement(testcases)
        _record_software(testcases)
    checks = session.checks()
    if dry_run:
        session.require_all(checks)
    else:
        _record(checks)
    testcases.sort(key=_turn)
    result = None
    with contextlib.nullcontext() if dry_run else _own_nodes(session, testcases):
        try:
            result = original(runner, testcases, *args, **kwargs)
        except RunSessionTimeout as end:
            # The regular end of a session with --duration. The front end warns of it; as warnings
            # are errors, the session would fail.
            say(f"Session ended: {end}.")
    tasks = reframe_internals.ended_tasks(runner)
    # A test whose dependency failed is skipped, but then the session has failed already.
    skips = [task.testcase for task in tasks if task.skipped and not task.failed_deps]
    ended = [task.testcase for task in tasks if task.testcase not in skips]
    passed = [task.testcase for task in tasks if task.succeeded and not task.skipped]
    if file := os.environ.get(ENV_METRICS):
        _name_silent(Path(file), ended)
    if not dry_run:
        checks = session.with_outcomes(checks, ended, skips, passed)
        _record(checks)
        # ReFrame still prints its summary, the failures and where its report is.
        atexit.unregister(_say_next)
        atexit.register(_say_next)
    session.require_left(testcases, ended, skips)
    session.require_all(checks)
    return result


def _turn(case: Any) -> int:
    """Return when a check runs: first the binding of ranks, since it affects all that is measured,
    and last what repeats the first measurements.
    """
    if getattr(case.check, "runs_first", False):
        return 0
    return 2 if getattr(case.check, "repeats", "") else 1


def _say_next() -> None:
    print(f"now: fabricheck verdict {os.environ.get(marking.ENV_SESSION, '')}".rstrip())


@contextlib.contextmanager
def _own_nodes(session: _Session, testcases: Iterable[Any]) -> Iterator[None]:
    """Measure only nodes that nothing else uses at the same time.

    A scheduler gives a check its node exclusively: to each job (exclusive_access), or to the
    allocation around the session, in which a running step has it. Elsewhere the node lock does so.
    """
    table.make_formats_standard(os.environ)
    used = {case.partition.fullname: case.partition for case in testcases}
    stepping = jobs.of_the_allocation(used.values())
    jobs.require_nodes_of_one_kind(used.values())
    jobs.require_own_nodes(used.values())
    jobs.require_allocation(list(used.values()))
    around = table.around(os.environ)
    if stepping and around is not None:
        around.forget_own_step(os.environ)
    if session.nodes is None:
        jobs.require_any_node(used.values())
    else:
        distributed.begin_distributed(
            session.nodes, session.chosen(), reframe_internals.option("distribute")
        )
    here = any(_is_local(partition) for name, partition in used.items() if name not in stepping)
    # A check is not set up yet; 0 means all nodes of its job.
    numbers = {
        int(getattr(case.check, "nodes", 1))
        for case in testcases
        if case.partition.fullname in stepping
    }
    with contextlib.ExitStack() as locks:
        try:
            locks.enter_context(node_lock.held_nodes(here=here, stepping=numbers, say=say))
        except FabricheckError as error:
            end_session(error)
        yield


def _waits(check: Any, running: Sequence[Any]) -> bool:
    """Return whether a check must wait for what runs.

    All local partitions measure one node. Checks of the network wait for each other, because they
    share its links.
    """
    if _is_local(check.current_partition):
        return any(_is_local(other.current_partition) for other in running)
    here = [other for other in running if other.current_partition is check.current_partition]
    of_network = NETWORK in check.tags and any(NETWORK in other.tags for other in here)
    # A job for a node that another check uses would wait, and take the place of one for another.
    node = reframe_internals.node_of(check)
    return of_network or (
        node is not None and any(reframe_internals.node_of(other) == node for other in here)
    )


def _is_plain(check: Any) -> bool:
    """Return whether a test derives from no check of this suite."""
    return not any(base.__module__.startswith("fabricheck.") for base in type(check).__mro__)


def _measures(case: Any) -> bool:
    """Whether a case measures its partition: a plain test on a simulated one measures this host."""
    return not (_is_plain(case.check) and case.environ.extras.get("runtime") == "sim")


def _is_local(partition: Any) -> bool:
    return bool(partition.scheduler.registered_name == "local")


def _complete_mark() -> None:
    """Add to the mark of the session where ReFrame writes."""
    mark: Path | None = reframe_internals.session.mark
    if mark is None:
        return
    at = runtime.runtime()
    results = mark.resolve().parents[1]
    places = [at.output_prefix, at.stage_prefix]
    if at.get_option("general/0/generate_file_reports"):
        places.append(os.path.expandvars(at.get_option("general/0/report_file")))
    outside = [place for place in places if not Path(place).resolve().is_relative_to(results)]
    try:
        marks.complete(mark, outputs=Path(at.output_prefix).name, elsewhere=outside)
    except FabricheckError as error:
        raise ReframeError(f"The mark of the session cannot be completed: {error}") from None


def _require_judgement(testcases: Iterable[Any]) -> None:
    for option in ("skip_sanity_check", "skip_performance_check"):
        if reframe_internals.option(option):
            raise ReframeError(
                f"--{option.replace('_', '-')} cannot be used: a check that is not judged would "
                "pass without proof."
            )
    variables = [text.partition("=")[0].split(".")[-1] for text in reframe_internals.option("vars")]
    loosened = "strict_check" in variables
    unjudged = {
        type(case.check).__name__
        for case in testcases
        if not case.check.strict_check and (loosened or not _is_plain(case.check))
    }
    if unjudged:
        raise ReframeError(
            f"strict_check cannot be turned off: {show.listed(sorted(unjudged))} would pass with "
            "values that miss their limits."
        )


def _require_overlays(testcases: Iterable[Any]) -> None:
    """Refuse an overlay that cannot be applied before anything is waited for or measured."""
    wanted = {
        (case.partition.extras.get("node"), case.check.overlay)
        for case in testcases
        if getattr(case.check, "overlay", "") and case.environ.extras.get("runtime") == "sim"
    }
    for node, overlay in sorted(wanted):
        try:
            load_node(node, overlay)
        except FabricheckError as error:
            raise ReframeError(str(error)) from None


def _record_software(testcases: Iterable[Any]) -> None:
    system = runtime.runtime().system.name
    used = [software.Used(system, case.environ.name, case.environ.extras) for case in testcases]
    try:
        sentences = software.write(Path(runtime.runtime().output_prefix), used)
    except (FabricheckError, OSError) as error:
        raise ReframeError(f"What the programs are built from was not recorded: {error}") from None
    for sentence in sentences:
        say(sentence)


def _name_silent(file: Path, ended: Iterable[Any]) -> None:
    """Name the checks of a dry run that failed before they listed their metrics."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    listed = {(line["check"], line["partition"]) for line in map(json.loads, lines)}
    with file.open("a", encoding="utf-8") as out:
        for case in ended:
            where = case.partition.fullname
            if (case.check.name, where) not in listed:
                line = {"check": case.check.name, "partition": where, "metrics": {}}
                out.write(json.dumps({**line, "environment": case.environ.name}) + "\n")


def _guard_store(original: Any, report: Any) -> Any:
    """Store a session in ReFrame's database; one that cannot be written fails no session.

    Neither sessions nor verdicts read it, so that a node is as well without it.
    """
    try:
        return original(report)
    except Exception as error:
        file = os.path.expandvars(runtime.runtime().get_option("storage/0/sqlite_db_file"))
        say(
            f"ReFrame's database {file} cannot be written ({error}), so this session is not in "
            "it; reports and verdicts do not need it. Move it away: the next session makes a new "
            "one."
        )
        return "none"


def _guard_pipeline(original: Any, file: Any, testcases: Any, *args: Any, **kwargs: Any) -> None:
    session = _Session()
    testcases = session.requested(testcases)
    session.require_choice(testcases)
    session.require_all(session.checks())
    gitlab.emit(original, file, testcases, *args, **kwargs)


class _Session:
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
            say(f"These checks run only if requested by -n or -t: {show.listed(names)}.")
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
            plain = [type(case.check).__name__ for case in self._generated if _is_plain(case.check)]
            partitions[where] = PartitionChecks(
                checks=checks,
                lost=lost,
                ran=ran,
                plain=sorted(checks.keys() & plain),
                deviations=deviations.when_started(partition),
                accepts=partition.extras.get("accepts", ()),
            )
        return SessionChecks(written=requested_nodes.now(), partitions=partitions)

    def with_outcomes(
        self,
        checks: SessionChecks,
        ended: Iterable[Any],
        skipped: Iterable[Any],
        passed: Iterable[Any],
    ) -> SessionChecks:
        """Return the checks with those that ran.

        One that ran before and skips now is lost.
        """
        partitions = {}
        for where, before in checks.partitions.items():
            ran = _classes(ended, where)
            skips = _classes(skipped, where) - ran
            now = () if self._is_part else sorted(skips & set(before.ran))
            lost = {name: "skipped now, run in an earlier session" for name in now}
            programs = _programs(ended, where)
            changes = {
                "deviations": [*before.deviations, *deviations.of_programs(programs)],
                "lost": {**before.lost, **lost},
                "ran": sorted(set(before.ran) - skips | ran),
                "without_value": dict(_without_value(passed, where)),
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
        if not self._is_part and all(_is_plain(case.check) for case in self._generated):
            raise ReframeError(
                f"{self._path} has no check of this suite: name reframe_checks by -c too, or the "
                "tests by -n."
            )

    def require_left(
        self, testcases: Iterable[Any], ended: Iterable[Any], skipped: Iterable[Any]
    ) -> None:
        """Raise an error when a selected check, or every check, did not finish.

        A check skips itself where the node has not what it measures.
        """
        ended = list(ended)
        if not ended:
            raise ReframeError(
                f"Nothing was run: all test cases were skipped or stopped; {self._why_nothing()}."
            )
        for partition in runtime.runtime().system.partitions:
            where = partition.fullname
            stopped = sorted(_classes(testcases, where) - _classes((*ended, *skipped), where))
            if stopped:
                raise ReframeError(
                    f"Partition {where}: the session ended before {show.listed(stopped)}."
                )

    def chosen(self) -> list[str]:
        """Return the options that select checks, as a user may type them."""
        given = {name: reframe_internals.option(name) or () for name in CHOOSING}
        return [part for name in given for value in given[name] for part in (CHOOSING[name], value)]

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
        chosen = show.listed(
            f"{name}={value}"
            for name in SELECTING
            if (value := reframe_internals.option(name)) not in NOT_GIVEN
        )
        return f"system {system} has {len(self._generated)}; the selection was {chosen or 'all'}"


def _needs(check: Any) -> str:
    """Return what a check needs of a system that does not have it."""
    return (
        f"{type(check).__name__} needs a partition with "
        f"{enumerated(check.valid_systems, last='or')} and an environment with "
        f"{enumerated(check.valid_prog_environs, last='or')}"
        f"{' that is not simulated' * _is_plain(check)}"
    )


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
        say(f"The checks of {where} are not compared with those of its last session: {error}")
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


def _record(checks: SessionChecks) -> None:
    try:
        write_checks(Path(runtime.runtime().output_prefix), checks)
    except (FabricheckError, OSError) as error:
        raise ReframeError(f"The checks of the session were not recorded: {error}") from None


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
