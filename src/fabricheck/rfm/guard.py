"""The session guard: a session that ran nothing, or less than it should, fails.

ReFrame ends with status 0 when no test case is left to run, and has no hook around a session. The
functions here are called through `reframe_internals`.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reframe.core import runtime
from reframe.core.exceptions import ReframeError, RunSessionTimeout

from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, end_session
from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.node import load as load_node
from fabricheck.results import marking, marks
from fabricheck.results.session_checks import (
    SessionChecks,
    write_checks,
)
from fabricheck.rfm import (
    distributed,
    gitlab,
    hosts,
    jobs,
    node_lock,
    reframe_internals,
)
from fabricheck.rfm.started_session import Ended, StartedSession, is_plain
from fabricheck.schedulers import table
from fabricheck.site import software

#: Prints a sentence between ReFrame's own.
say = show.line

#: The tag of checks that measure what joins the nodes of a machine.
NETWORK = "network"


def install(mark: Path | None = None) -> None:
    """Install the guard around ReFrame's sessions; a second call changes only the mark.

    :param mark: that of the session; None where nothing is measured.
    :raises ConfigError: when this ReFrame lacks a function that the guard needs.
    """
    reframe_internals.session.mark = mark
    reframe_internals.refuse_doubtful_settings()
    reframe_internals.end_without_warning()
    reframe_internals.skip_ignored_warnings()
    reframe_internals.remove_early_log()
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
    session = StartedSession()
    testcases = session.requested(testcases)
    session.require_choice(testcases)
    _require_overlays(testcases)
    dry_run = reframe_internals.option("dry_run")
    if dry_run:
        reframe_internals.suppress_reports()
        checks = session.checks()
        session.require_all(checks)
        alone: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    else:
        _complete_mark()
        _require_judgement(testcases)
        _record_software(testcases)
        checks = session.checks()
        _record(checks)
        alone = _own_nodes(session, testcases)
    testcases.sort(key=_turn)
    result = None
    with alone:
        try:
            result = original(runner, testcases, *args, **kwargs)
        except RunSessionTimeout as end:
            # The regular end of a session with --duration. The front end warns of it; as warnings
            # are errors, the session would fail.
            say(f"Session ended: {end}.")
    ended = Ended.of_runner(runner)
    metrics_file = os.environ.get(ENV_METRICS)
    if metrics_file:
        _name_silent(Path(metrics_file), ended.ran)
    if not dry_run:
        checks = session.with_outcomes(checks, ended)
        _record(checks)
        # ReFrame still prints its summary, the failures and where its report is.
        atexit.unregister(_say_next)
        atexit.register(_say_next)
    session.require_left(testcases, ended)
    session.require_all(checks)
    return result


def _turn(case: Any) -> tuple[bool, int, str]:
    """Return when a check runs: first the binding of ranks, since it affects all that is measured,
    and last what repeats the first measurements; the others by their files.

    Those of simulated nodes run behind all others: beside each other they would take the place of
    what measures this machine alone. ReFrame has the files in the order of the file system,
    which is another one elsewhere.
    """
    if getattr(case.check, "runs_first", False):
        part = 0
    elif getattr(case.check, "repeats", ""):
        part = 2
    else:
        part = 1
    simulated = _is_simulated(case.check, case.environ)
    return simulated, part, inspect.getfile(type(case.check))


def _say_next() -> None:
    print(f"now: fabricheck verdict {os.environ.get(marking.ENV_SESSION, '')}".rstrip())


@contextlib.contextmanager
def _own_nodes(session: StartedSession, testcases: Iterable[Any]) -> Iterator[None]:
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

    All local partitions measure one node. Checks of a simulated one measure nothing of it, and wait
    for each other only where one repeats another. Checks of the network wait for each other,
    because they share its links.
    """
    if _is_local(check.current_partition):
        beside = [other for other in running if _is_local(other.current_partition)]
        if _is_simulated(check, check.current_environ) and not getattr(check, "repeats", ""):
            beside = [other for other in beside if not _is_simulated(other, other.current_environ)]
        return bool(beside)
    here = [other for other in running if other.current_partition is check.current_partition]
    of_network = NETWORK in check.tags and any(NETWORK in other.tags for other in here)
    # A job for a node that another check uses would wait, and take the place of one for another.
    node = reframe_internals.node_of(check)
    return of_network or (
        node is not None and any(reframe_internals.node_of(other) == node for other in here)
    )


def _measures(case: Any) -> bool:
    """Whether a case measures its partition: a plain test on a simulated one measures this host."""
    return not (is_plain(case.check) and case.environ.extras.get("runtime") == "sim")


def _is_simulated(check: Any, environ: Any) -> bool:
    """Whether a check measures nothing here; a plain test measures this host wherever it runs."""
    return bool(environ.extras.get("runtime") == "sim") and not is_plain(check)


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
        if not case.check.strict_check and (loosened or not is_plain(case.check))
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
    session = StartedSession()
    testcases = session.requested(testcases)
    session.require_choice(testcases)
    session.require_all(session.checks())
    gitlab.emit(original, file, testcases, *args, **kwargs)


def _record(checks: SessionChecks) -> None:
    try:
        write_checks(Path(runtime.runtime().output_prefix), checks)
    except (FabricheckError, OSError) as error:
        raise ReframeError(f"The checks of the session were not recorded: {error}") from None
