"""All uses of ReFrame beyond its public interface: one function each, which states its needs.

Public is what ReFrame's manual documents: tests with their hooks, settings, environment variables
and the modules of PUBLIC. Each function refuses a ReFrame that lacks what the function needs, with
one sentence (ConfigError). docs/reframe.md lists the changes in ReFrame that would make each
unnecessary.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import reframe
from reframe.core import runtime
from reframe.core.exceptions import ConfigError

#: The modules that ReFrame's manual documents; other files import only these.
PUBLIC = (
    "reframe",
    "reframe.core.backends",
    "reframe.core.builtins",
    "reframe.core.exceptions",
    "reframe.core.launchers",
    "reframe.core.runtime",
    "reframe.utility.sanity",
    "reframe.utility.typecheck",
)

#: Local variables of ReFrame's front end that describe the session, for `front_end`.
FRONT_END = ("options", "loader", "checks_found", "report")

#: Its functions that list checks without running any.
LISTS = ("list_checks", "list_tags", "describe_checks")

#: The parameter of a check that ``--distribute`` made: its node, in a list.
NODE = ".nid"

#: Marks functions that are wrapped already.
_MARK = "_fabricheck"


def _refuse(lacking: str, purpose: str) -> NoReturn:
    raise ConfigError(
        f"ReFrame {reframe.VERSION} has no {lacking}, which fabricheck needs to {purpose}: use the "
        "version that pyproject.toml names."
    )


def _needed(module: str, names: str, purpose: str) -> Any:
    """Return what a module of ReFrame has under a dotted name, or refuse this ReFrame."""
    try:
        return functools.reduce(getattr, names.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        _refuse(f"{module}.{names}", purpose)


def _attribute(owner: Any, name: str, purpose: str) -> Any:
    """Return an attribute of an object of ReFrame, or refuse this ReFrame."""
    if not hasattr(owner, name):
        _refuse(f"{type(owner).__name__}.{name}", purpose)
    return getattr(owner, name)


def _set(owner: Any, purpose: str, **values: Any) -> None:
    """Set existing attributes of an object of ReFrame, or refuse this ReFrame."""
    for name, value in values.items():
        _attribute(owner, name, purpose)
        setattr(owner, name, value)


def _wrap(module: str, names: str, purpose: str, around: Callable[..., Any]) -> None:
    """Wrap a function of ReFrame, once; the wrapper gets it as its first argument."""
    original = _needed(module, names, purpose)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    setattr(wrapped, _MARK, True)
    *owners, name = names.split(".")
    setattr(functools.reduce(getattr, owners, importlib.import_module(module)), name, wrapped)


# Settings: called by config/settings.py.


def default_handlers() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return copies of ReFrame's own handlers of the log and of performance logs.

    Settings replace handlers as a whole, but only the place of their files changes.
    """
    purpose = "write its logs to the results folder"
    [logging] = _needed("reframe.core.settings", "site_configuration", purpose)["logging"]
    return copy.deepcopy(logging["handlers"]), copy.deepcopy(logging["handlers_perflog"])


def refuse_doubtful_settings() -> None:
    """Turn ReFrame's warnings about the settings into errors.

    RFM_WARN_AS_ERROR, which does that afterwards, is read after them.
    """
    _set(_logger(), "refuse settings of which ReFrame warns", warn_as_error=True)


def leave_out_ignored_warnings() -> None:
    """Suppress the warning of a deprecated variable early, because it is ignored anyway.

    With each message about a check, ReFrame reads all of its variables, including a deprecated one,
    and searches the source of every caller to warn it. A dry run of 33 checks took 20 s with this
    search, and takes 4 s without.
    """
    purpose = "spend no time on warnings that are ignored"
    ignored = _needed("reframe.core.warnings", "ReframeDeprecationWarning", purpose)

    def unless_ignored(original: Any, *args: object, **kwargs: object) -> None:
        # ReFrame's suppress_deprecations puts this before all other filters.
        if not (warnings.filters and warnings.filters[0][0:3:2] == ("ignore", ignored)):
            original(*args, **kwargs)

    for module in ("reframe.core.fields", "reframe.core.variables"):
        _wrap(module, "user_deprecation_warning", purpose, unless_ignored)


# A session. `around` is called instead of a function of ReFrame, which is its first argument.


def around_run(around: Callable[..., Any]) -> None:
    """Call ``around(run, runner, testcases)`` where a session runs its final test cases.

    A case has ``check``, ``partition``, ``environ`` and ``deps``.
    """
    _wrap("reframe.frontend.executors", "Runner.runall", "guard a session", around)


def around_pipeline(around: Callable[..., Any]) -> None:
    """Call ``around(emit, file, testcases, options)`` where ``--ci-generate`` writes.

    ReFrame writes a job of GitLab for each check, whose script is one ReFrame command.
    """
    _wrap("reframe.frontend.ci", "emit_pipeline", "complete a pipeline for GitLab", around)


def around_lists(around: Callable[..., Any]) -> None:
    """Call ``around(list, testcases, ...)`` where a session only lists checks."""
    for name in LISTS:
        _wrap("reframe.frontend.cli", name, "refuse a list of nothing", around)


def around_junit(around: Callable[..., Any]) -> None:
    """Call ``around(make, report)`` when ``--report-junit`` makes its XML."""
    names = "RunReport.generate_xml_report"
    _wrap("reframe.frontend.reporting", names, "name check files in JUnit reports", around)


def around_check_file(around: Callable[..., Any]) -> None:
    """Call ``around(load, loader, file)`` for each check file; ReFrame prints some tracebacks."""
    names = "RegressionCheckLoader.load_from_file"
    _wrap("reframe.frontend.loader", names, "name a check file that is not Python", around)


def around_nodes(around: Callable[..., Any]) -> None:
    """Call ``around(find, state, job_options)`` where ``--distribute`` asks for nodes."""
    _wrap("reframe.frontend.cli", "getallnodes", "record the nodes of --distribute", around)


def end_without_warning() -> None:
    """Let ReFrame report the end of a session as an error; a warning would print a traceback."""
    purpose = "end an interrupted session in one sentence"
    _wrap("reframe.core.exceptions", "is_warning", purpose, lambda original, *error: False)


def front_end() -> Any:
    """Return the front end's data of the session: FRONT_END, and ``node_map``.

    ``node_map`` has the nodes of ``--distribute``, and is None without it. All are local variables
    of the front end's function ``main``, which passes them to no other function.
    """
    frame = inspect.currentframe()
    while frame is not None and not (
        frame.f_globals.get("__name__") == "reframe.frontend.cli"
        and set(FRONT_END) <= frame.f_locals.keys()
    ):
        frame = frame.f_back
    if frame is None:
        _refuse(f"front end with {', '.join(FRONT_END)}", "read the options of a session")
    return types.SimpleNamespace(**{"node_map": None, **frame.f_locals})


def option(options: Any, name: str) -> Any:
    """Return an option of the command line, by its name in the front end."""
    return _attribute(options, name, "read the options of a session")


def leave_no_result() -> None:
    """Prevent a dry run from leaving a report and performance logs in which every check passed."""
    purpose = "keep dry runs out of the results"
    config = _attribute(runtime.runtime(), "site_config", purpose)
    _attribute(config, "add_sticky_option", purpose)("general/generate_file_reports", False)
    _needed("reframe.core.logging", "getperflogger", purpose)(None).logger.handlers.clear()


def test_cases(checks: Any) -> list[Any]:
    """Return all test cases of checks, as the front end makes them before any selection."""
    purpose = "know which checks could be selected"
    return list(_needed("reframe.frontend.executors", "generate_testcases", purpose)(checks))


def named(pattern: str, testcases: Sequence[Any]) -> list[Any]:
    """Return the test cases that ``-n`` selects by a pattern."""
    chosen = _needed("reframe.frontend.filters", "have_any_name", "refuse an unknown name")
    return list(filter(chosen([pattern]), testcases))


def ended_and_skipped(runner: Any) -> tuple[list[Any], list[Any]]:
    """Return the test cases that ended in a session, passed or failed, and those that skipped.

    A test whose dependency failed is skipped, but then the session has failed already. Cases
    stopped at the end of --duration are aborted, which ReFrame does not count as a failure.
    """
    tasks = _attribute(runner.stats, "tasks", "notice checks that were skipped")(None)
    there = [task for task in tasks if not task.aborted]
    skipped = [task.testcase for task in there if task.skipped and not task.failed_deps]
    return [one.testcase for one in there if one.testcase not in skipped], skipped


def say(sentence: str) -> None:
    """Write a sentence to ReFrame's log and output, for use outside a check."""
    _logger().info(sentence)


def _logger() -> Any:
    return _needed("reframe.core.logging", "getlogger", "write to the log of a session")()


# The order of checks, and their jobs.


def run_serially(runner: Any) -> bool:
    """Make a runner start checks one after the other; return False if it already does.

    ReFrame has only an option for this (``--exec-policy=serial``), and no setting.
    """
    purpose = "measure one thing at a time"
    kind = _needed("reframe.frontend.executors.policies", "SerialExecutionPolicy", purpose)
    parallel = runner.policy
    if isinstance(parallel, kind):
        return False
    serial = kind()
    own = ("task_listeners", "local_scheduler")
    for name in [name for name in vars(serial) if name not in own and hasattr(parallel, name)]:
        setattr(serial, name, getattr(parallel, name))
    # The runner sets these two; a policy does not set them itself.
    serial.max_failures = parallel.max_failures
    _set(runner, purpose, _policy=serial)
    return True


def hold_back(waits: Callable[[Any, Sequence[Any]], bool]) -> None:
    """Start no job for which ``waits(check, running)`` is true.

    ``running`` are the running checks of its partition. ReFrame limits the jobs of a partition, but
    not those of a node.
    """

    def start(original: Any, policy: Any, task: Any) -> int:
        name = _needed("reframe.frontend.executors.policies", "_get_partition_name", purpose)(task)
        running = _attribute(policy, "_partition_tasks", purpose)[name]
        if waits(task.check, [one.check for one in running]):
            return 0
        return int(original(policy, task))

    purpose = "start one job a node"
    names = "AsynchronousExecutionPolicy._advance_ready_run"
    _wrap("reframe.frontend.executors.policies", names, purpose, start)


def node_of(check: Any) -> str | None:
    """Return the node that ``--distribute`` made a check for; None for any other check."""
    (node,) = getattr(check, NODE, (None,))
    return node


def limit_jobs(partition: Any, number: int) -> None:
    """Limit the number of concurrent jobs of a partition; ReFrame reads it before it knows the
    nodes.
    """
    _set(partition, "start one job a node", _max_jobs=number)


def nodes_of(partition: Any) -> dict[str, str]:
    """Return Slurm's description of each node of a partition's scheduler, by name."""
    purpose = "record the nodes of --distribute"
    nodes = _attribute(partition.scheduler, "allnodes", purpose)()
    return {one.name: _attribute(one, "descr", purpose) for one in nodes}


def after_squeue(then: Callable[[Any], None]) -> None:
    """Call ``then(job)`` for each job that ``squeue`` considers completed, without an exit code."""

    def poll(original: Any, scheduler: Any, *jobs: Any) -> None:
        original(scheduler, *jobs)
        for job in jobs:
            if job is not None and job.exitcode is None and scheduler.finished(job):
                then(job)

    purpose = "know how a job without accounting ended"
    _wrap("reframe.core.schedulers.slurm", "SqueueJobScheduler.poll", purpose, poll)


def around_blocked(around: Callable[..., Any]) -> None:
    """Call ``around(cancel, scheduler, jobs)`` where blocked jobs are cancelled."""
    purpose = "cancel no job that only waits for another"
    names = "SlurmJobScheduler._cancel_if_blocked"
    _wrap("reframe.core.schedulers.slurm", names, purpose, around)


def set_nodes(job: Any, nodes: Sequence[str]) -> None:
    """Set the nodes of a job of the local scheduler, which names only its own machine."""
    _set(job, "name the nodes of a step", _nodelist=list(nodes))


def is_pending(job: Any) -> bool:
    """Return whether a job of Slurm is pending, by ReFrame's list of states."""
    purpose = "cancel no job that only waits for another"
    pending = _needed("reframe.core.schedulers.slurm", "slurm_state_pending", purpose)
    return bool(pending(job.state))


def set_ended(job: Any, state: str, exit_code: int, nodes: str) -> None:
    """Set the end of a Slurm job, which ReFrame reads only from Slurm's accounting."""
    purpose = "know how a job without accounting ended"
    _set(job, purpose, _state=state, _exitcode=exit_code, _nodespec=nodes)


def set_failed(job: Any, error: Exception) -> None:
    """Let a job fail with an error of this suite."""
    _set(job, "say why a job failed", _exception=error)
