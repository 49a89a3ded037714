"""All uses of ReFrame beyond its public interface: what each needs, and why a session needs it.

Public is what ReFrame's manual documents: tests with their hooks, settings, environment variables
and the modules of PUBLIC. Each function here keeps a wrong result from passing silently, or says
what else is lost without it. It refuses a ReFrame that lacks what it needs, with one sentence
(ConfigError). docs/evidence/reframe.md has the change in ReFrame that would end each.
"""

from __future__ import annotations

import functools
import importlib
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
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

#: The parameter of a check that ``--distribute`` made: its node, in a list.
NODE = ".nid"

#: Marks functions that are wrapped already.
_MARK = "_fabricheck"

#: The session that is being started: its options, the checks of its files, their test cases before
#: any selection, the nodes of ``--distribute`` (None without it), and its mark in the results.
session = SimpleNamespace(options=None, checks=None, testcases=None, node_map=None, mark=None)


def _refuse(lacking: str, purpose: str) -> NoReturn:
    raise ConfigError(
        f"ReFrame {reframe.VERSION} has no {lacking}, which fabricheck needs to {purpose}: use the "
        "version that pyproject.toml names."
    )


def _needed(module: str, names: str, purpose: str) -> Any:
    """Return what a module of ReFrame has under a dotted name, or refuse this ReFrame."""
    try:
        needed: Any = importlib.import_module(module)
        for name in names.split("."):
            needed = getattr(needed, name)
    except (ImportError, AttributeError):
        _refuse(f"{module}.{names}", purpose)
    return needed


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
    """Wrap a function of ReFrame, once; the wrapper gets it as its first argument.

    :param names: a function of the module, or a class of it and its method.
    """
    original = _needed(module, names, purpose)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    setattr(wrapped, _MARK, True)
    *owners, name = names.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    setattr(owner, name, wrapped)


# What a user reads: without these a setting that ReFrame does not understand is ignored, and Ctrl-C
# prints a traceback.


def refuse_doubtful_settings() -> None:
    """Turn ReFrame's warnings about the settings into errors.

    RFM_WARN_AS_ERROR, which does that afterwards, is read after them.
    """
    purpose = "refuse settings of which ReFrame warns"
    _set(_needed("reframe.core.logging", "getlogger", purpose)(), purpose, warn_as_error=True)


def end_without_warning() -> None:
    """Let ReFrame report the end of a session as an error; a warning would print a traceback."""
    purpose = "end an interrupted session in one sentence"
    _wrap("reframe.core.exceptions", "is_warning", purpose, lambda original, *error: False)


def skip_ignored_warnings() -> None:
    """Suppress the warning of a deprecated variable early, because it is ignored anyway.

    Where ReFrame reads all variables of a check, one of them deprecated, it searches the source of
    every caller to warn it: a quarter of the time in which a session lists its checks.
    """
    purpose = "spend no time on warnings that are ignored"
    ignored = _needed("reframe.core.warnings", "ReframeDeprecationWarning", purpose)

    def unless_ignored(original: Any, *args: object, **kwargs: object) -> None:
        if warnings.filters:
            # ReFrame's suppress_deprecations puts its filter before all others.
            action, _, category, *_ = warnings.filters[0]
            if action == "ignore" and category is ignored:
                return
        original(*args, **kwargs)

    for module in ("reframe.core.fields", "reframe.core.variables"):
        _wrap(module, "user_deprecation_warning", purpose, unless_ignored)


def remove_early_log() -> None:
    """Remove the log that ReFrame begins before it has read its settings.

    Each start would leave a file `rfm-*.log` among the temporary files of its machine. Where the
    settings fail, ReFrame names that log, and it stays.
    """
    purpose = "leave no file among the temporary ones"
    adapter = _needed("reframe.core.logging", "getlogger", purpose)

    def configured(original: Any, *args: object, **kwargs: object) -> None:
        logger = _attribute(adapter(), "logger", purpose)
        handlers = [] if logger is None else logger.handlers
        files = [Path(each.baseFilename) for each in handlers if hasattr(each, "baseFilename")]
        original(*args, **kwargs)
        for file in files:
            if file.match("rfm-*.log") and file.parent == Path(tempfile.gettempdir()):
                file.unlink(missing_ok=True)

    _wrap("reframe.core.logging", "configure_logging", purpose, configured)


# A session: without these one that ran nothing, or less than it should, passes.


def watch_session(fits: Callable[[Any], bool]) -> None:
    """Keep options, checks and test cases of a session, before any selection, in `session`.

    :param fits: whether a case is one; others are left out.
    """
    purpose = "know what a session was asked for"

    def options(update: Any, options: Any, *settings: Any) -> Any:
        session.options = options
        session.checks = session.testcases = session.node_map = None
        return update(options, *settings)

    def testcases(generate: Any, checks: Any, **more: Any) -> Any:
        session.checks = checks
        session.testcases = [case for case in generate(checks, **more) if fits(case)]
        return session.testcases

    _wrap("reframe.frontend.argparse", "_Namespace.update_config", purpose, options)
    _wrap("reframe.frontend.cli", "generate_testcases", purpose, testcases)


def option(name: str) -> Any:
    """Return an option of the command line, by its name in the front end."""
    return _attribute(session.options, name, "read the options of a session")


def around_run(around: Callable[..., Any]) -> None:
    """Call ``around(run, runner, testcases)`` where a session runs its final test cases.

    A case has ``check``, ``partition``, ``environ`` and ``deps``.
    """
    _wrap("reframe.frontend.executors", "Runner.runall", "guard a session", around)


def around_store(around: Callable[..., Any]) -> None:
    """Call ``around(store, report)`` where a session is stored in ReFrame's database.

    Without it a damaged database fails every session, whatever its checks found.
    """
    purpose = "fail no session by a damaged database"
    _wrap("reframe.frontend.reporting", "RunReport.store", purpose, around)


def around_pipeline(around: Callable[..., Any]) -> None:
    """Call ``around(emit, file, testcases, options)`` where ``--ci-generate`` writes.

    ReFrame writes a job of GitLab for each check, whose script is one ReFrame command.
    """
    _wrap("reframe.frontend.ci", "emit_pipeline", "complete a pipeline for GitLab", around)


def around_nodes(around: Callable[..., Any]) -> None:
    """Call ``around(find, state, job_options)`` where ``--distribute`` asks for nodes.

    The first of what it returns is for ReFrame, and all of it in `session`. Without it a node that
    is down is not missing from the result.
    """

    def nodes(find: Any, *args: Any, **kwargs: Any) -> Any:
        session.node_map = around(find, *args, **kwargs)
        return session.node_map[0]

    _wrap("reframe.frontend.cli", "getallnodes", "record the nodes of --distribute", nodes)


def nodes_of(partition: Any) -> dict[str, str]:
    """Return Slurm's description of each node of a partition's scheduler, by name."""
    purpose = "record the nodes of --distribute"
    nodes = _attribute(partition.scheduler, "allnodes", purpose)()
    return {node.name: _attribute(node, "descr", purpose) for node in nodes}


def suppress_reports() -> None:
    """Prevent a dry run from leaving a report and performance logs in which every check passed."""
    purpose = "keep dry runs out of the results"
    config = _attribute(runtime.runtime(), "site_config", purpose)
    _attribute(config, "add_sticky_option", purpose)("general/generate_file_reports", False)
    _needed("reframe.core.logging", "getperflogger", purpose)(None).logger.handlers.clear()


def named(pattern: str, checks: Iterable[Any]) -> list[Any]:
    """Return the checks that ``-n`` selects by a pattern."""
    chosen = _needed("reframe.frontend.filters", "have_any_name", "refuse an unknown name")
    return [check for check in checks if chosen([pattern])(SimpleNamespace(check=check))]


def ended_tasks(runner: Any) -> list[Any]:
    """Return the tasks of a session that passed, failed or skipped.

    Cases stopped at the end of --duration are aborted, which ReFrame does not count as a failure.
    """
    tasks = _attribute(runner.stats, "tasks", "notice checks that were skipped")(None)
    return [task for task in tasks if not task.aborted]


# Jobs.


def hold_back(waits: Callable[[Any, Sequence[Any]], bool]) -> None:
    """Start no job for which ``waits(check, running)`` is true.

    ``running`` are the running checks of all partitions. ReFrame limits the jobs of a partition,
    but not those of a node: two checks that measure it at once would slow each other.
    """

    def start(original: Any, policy: Any, task: Any) -> int:
        tasks = _attribute(policy, "_partition_tasks", purpose)
        running = [task.check for group in tasks.values() for task in group]
        return 0 if waits(task.check, running) else int(original(policy, task))

    purpose = "start one job a node"
    names = "AsynchronousExecutionPolicy._advance_ready_run"
    _wrap("reframe.frontend.executors.policies", names, purpose, start)


def node_of(check: Any) -> str | None:
    """Return the node that ``--distribute`` made a check for; None for any other check."""
    (node,) = getattr(check, NODE, (None,))
    return node


def set_nodes(job: Any, nodes: Sequence[str]) -> None:
    """Set the nodes of a job of the local scheduler, which names only its own machine.

    Without it a step's result is that of the machine that the session runs on.
    """
    _set(job, "name the nodes of a step", _nodelist=list(nodes))


def after_squeue(then: Callable[[Any], None]) -> None:
    """Call ``then(job)`` for each job that ``squeue`` considers completed, without an exit code.

    Without it a job that failed, or was cancelled, may pass.
    """

    def poll(original: Any, scheduler: Any, *jobs: Any) -> None:
        original(scheduler, *jobs)
        for job in jobs:
            if job is not None and job.exitcode is None and scheduler.finished(job):
                then(job)

    purpose = "know how a job without accounting ended"
    _wrap("reframe.core.schedulers.slurm", "SqueueJobScheduler.poll", purpose, poll)


def set_ended(job: Any, state: str, exit_code: int, nodes: str) -> None:
    """Set the end of a Slurm job, which ReFrame reads only from Slurm's accounting."""
    purpose = "know how a job without accounting ended"
    _set(job, purpose, _state=state, _exitcode=exit_code, _nodespec=nodes)


def set_failed(job: Any, error: Exception) -> None:
    """Let a job fail with an error of this suite."""
    _set(job, "say why a job failed", _exception=error)


def around_blocked(around: Callable[..., Any]) -> None:
    """Call ``around(cancel, scheduler, jobs)`` where blocked jobs are cancelled.

    Nothing passes silently without it; but ReFrame cancels each job whose node another job waits
    for, so that a second session would cost the first its jobs.
    """
    purpose = "cancel no job that only waits for another"
    names = "SlurmJobScheduler._cancel_if_blocked"
    _wrap("reframe.core.schedulers.slurm", names, purpose, around)


def around_hosts(
    submit: Callable[..., None], command: Callable[[Any], str], ended: Callable[[Any], None]
) -> None:
    """Change how the scheduler ssh starts a job, and how it ends.

    ReFrame brings back what a job wrote only where it ended with 0, and only while the session
    lives; a host that does not answer costs each check the time of a connection.

    :param submit: called as ``submit(submit_of_reframe, scheduler, job)``.
    :param command: the command for a shell that runs a job on its host, and brings back its files.
    :param ended: called with each job that has ended.
    """
    purpose = "keep what a check wrote on a host that is reached by ssh"
    module, scheduler_class = "reframe.core.schedulers.ssh", "SSHJobScheduler"
    future = _needed("reframe.utility.osext", "run_command_async2", purpose)

    def run(original: Any, scheduler: Any, job: Any) -> None:
        # A group of its own: it goes on without the session, and ends as a whole.
        _attribute(job, "steps", purpose)["exec"] = future(
            command(job), shell=True, start_new_session=True
        )

    def brought(original: Any, scheduler: Any, job: Any) -> None:
        _attribute(job, "steps", purpose)["pull"] = future("true")

    def poll(original: Any, scheduler: Any, job: Any) -> None:
        # ReFrame writes what the command printed over what the job did.
        files = [Path(job.localdir, name) for name in (job.stdout, job.stderr)]
        texts = {file: file.read_bytes() for file in files if file.is_file()}
        if original(scheduler, job):
            for file, text in texts.items():
                file.write_bytes(text)
            ended(job)

    _wrap(module, f"{scheduler_class}.submit", purpose, submit)
    _wrap(module, f"{scheduler_class}._do_submit", purpose, run)
    _wrap(module, f"{scheduler_class}._pull_artefacts", purpose, brought)
    _wrap(module, f"{scheduler_class}._poll_job", purpose, poll)


def options_of_host(job: Any) -> Sequence[str]:
    """Return the options of ssh of a job that is on a host."""
    options: Sequence[str] = _attribute(job, "ssh_options", "reach the host of a job")
    return options


def host_of(job: Any) -> tuple[str, str, str]:
    """Return the host of a job of ssh, its folder there and its folder here."""
    purpose = "run a job on its host"
    host = _attribute(job, "host", purpose)
    return host, _attribute(job, "remotedir", purpose), _attribute(job, "localdir", purpose)


def set_state(job: Any, state: str, exit_code: int | None) -> None:
    """Set the end of a job of ssh."""
    _set(job, "know how a job on a host ended", _state=state, _exitcode=exit_code)


def is_pending(job: Any) -> bool:
    """Return whether a job of Slurm is pending, by ReFrame's list of states."""
    purpose = "cancel no job that only waits for another"
    pending = _needed("reframe.core.schedulers.slurm", "slurm_state_pending", purpose)
    return bool(pending(job.state))
