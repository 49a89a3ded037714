"""What fabricheck needs of ReFrame beside its public interface; each test names what it relies on.

On a ReFrame that lacks it the test fails with the sentence that a session would end with.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import reframe
from reframe.core import config, logging, runtime
from reframe.core.backends import getlauncher, getscheduler
from reframe.core.exceptions import ConfigError
from reframe.core.schedulers import Job
from reframe.frontend import cli

from fabricheck.core.vocabulary import EXIT_NODE_OPEN
from fabricheck.rfm import guard, hosts, reframe_internals
from fabricheck.schedulers import ssh

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def context(tmp_path, monkeypatch):
    """What ReFrame's objects need to be made: the system that it has without settings."""
    monkeypatch.chdir(tmp_path)
    built_in = config.load_config("<builtin>")
    built_in.select_subconfig("generic")
    logging.configure_logging(built_in)
    with mock.patch.object(runtime, "_runtime_context", None):
        runtime.init_runtime(built_in)
        yield runtime.runtime()


def owner_of(path):
    """Return what has the last name of ``module:name.name``, and that name."""
    module, names = path.split(":")
    *owners, name = names.split(".")
    return functools.reduce(getattr, owners, importlib.import_module(module)), name


def ignore(*_):
    """Stand for what is called by a seam, or around one."""


NEEDED = {
    "reframe.core.logging:getperflogger": reframe_internals.suppress_reports,
    "reframe.frontend.argparse:_Namespace.update_config": guard.install,
    "reframe.frontend.cli:generate_testcases": guard.install,
    "reframe.frontend.cli:getallnodes": guard.install,
    "reframe.core.logging:configure_logging": guard.install,
    "reframe.frontend.executors:Runner.runall": guard.install,
    "reframe.frontend.ci:emit_pipeline": guard.install,
    "reframe.frontend.reporting:RunReport.store": guard.install,
    "reframe.frontend.executors.policies:AsynchronousExecutionPolicy._advance_ready_run": (
        guard.install
    ),
    # The method itself it inherits, too.
    "reframe.core.schedulers.slurm:SqueueJobScheduler": guard.install,
    "reframe.core.schedulers.slurm:SlurmJobScheduler._cancel_if_blocked": guard.install,
    "reframe.core.schedulers.slurm:slurm_state_pending": (
        lambda: reframe_internals.is_pending(SimpleNamespace(state="PENDING"))
    ),
    "reframe.core.schedulers.ssh:SSHJobScheduler": guard.install,
    "reframe.core.schedulers.ssh:SSHJobScheduler._do_submit": guard.install,
    "reframe.core.schedulers.ssh:SSHJobScheduler._pull_artefacts": guard.install,
    "reframe.core.schedulers.ssh:SSHJobScheduler._poll_job": guard.install,
    "reframe.utility.osext:run_command_async2": lambda: guard.install(),
    "reframe.frontend.filters:have_any_name": lambda: reframe_internals.named("x", []),
}


@pytest.mark.parametrize("path", NEEDED)
def test_a_reframe_that_lacks_something_is_refused_in_one_sentence(
    context, monkeypatch, path, wording
):
    owner, name = owner_of(path)
    monkeypatch.delattr(owner, name)
    with pytest.raises(ConfigError) as refused:
        NEEDED[path]()
    wording(str(refused.value).replace(reframe.VERSION, "VERSION"))


@pytest.mark.parametrize("path", NEEDED)
def test_this_reframe_has_it(path):
    owner, name = owner_of(path)
    assert hasattr(owner, name), f"ReFrame {reframe.VERSION} has no {path}"


LACKING = {
    "add_sticky_option": lambda one: reframe_internals.suppress_reports(),
    "allnodes": lambda one: reframe_internals.nodes_of(SimpleNamespace(scheduler=one)),
    "_state": lambda one: reframe_internals.set_ended(one, "COMPLETED", 0, "n1"),
    "_exception": lambda one: reframe_internals.set_failed(one, ValueError()),
    "_nodelist": lambda one: reframe_internals.set_nodes(one, ["n1", "n2"]),
    "tasks": lambda one: reframe_internals.ended_tasks(SimpleNamespace(stats=one)),
    "names": lambda one: reframe_internals.option("names"),
}


@pytest.mark.parametrize("name", LACKING)
def test_an_object_that_lacks_something_is_refused_in_one_sentence(context, monkeypatch, name):
    one = SimpleNamespace()
    monkeypatch.setattr(runtime, "runtime", lambda: SimpleNamespace(site_config=one))
    monkeypatch.setattr(reframe_internals.session, "options", one)
    with pytest.raises(ConfigError, match=f"has no SimpleNamespace.{name}, which fabricheck needs"):
        LACKING[name](one)


def test_each_is_installed_once():
    guard.install()
    wrapped = [owner_of(path) for path, seam in NEEDED.items() if seam is guard.install]
    before = [getattr(owner, name) for owner, name in wrapped]
    guard.install()
    assert [getattr(owner, name) for owner, name in wrapped] == before
    assert all(hasattr(one, "__wrapped__") for one in before if not isinstance(one, type))


MAIN = next(
    node
    for node in ast.walk(ast.parse(inspect.getsource(cli)))
    if isinstance(node, ast.FunctionDef) and node.name == "main"
)


@pytest.mark.parametrize(
    "call",
    ["generate_testcases", "getallnodes", "ci.emit_pipeline", "runner.runall",
     "options.update_config"],
)  # fmt: skip
def test_the_front_end_calls_it_by_its_name(call):
    called = {ast.unparse(one.func) for one in ast.walk(MAIN) if isinstance(one, ast.Call)}
    assert call in called, f"main of reframe.frontend.cli does not call {call}"


def test_the_settings_are_read_before_the_options_are_complete():
    """The guard is installed by the settings, and the options are updated after them."""
    calls = {ast.unparse(one.func): one.lineno for one in ast.walk(MAIN)
             if isinstance(one, ast.Call)}  # fmt: skip
    last = max(one.lineno for one in ast.walk(MAIN) if isinstance(one, ast.Call)
               and ast.unparse(one.func) == "options.update_config")  # fmt: skip
    assert calls["config.load_config"] < last < calls["generate_testcases"]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("reframe.frontend.executors:TestCase", ["check", "partition", "environ", "deps"]),
        (
            "reframe.frontend.executors:RegressionTask",
            ["check", "testcase", "result", "succeeded", "failed_stage", "exc_info", "aborted",
             "skipped", "failed_deps"],
        ),
        ("reframe.core.schedulers.slurm:_SlurmNode", ["name", "descr"]),
    ],
)  # fmt: skip
def test_what_is_handed_to_us_has_what_we_read(path, names):
    owner, name = owner_of(path)
    known = dir(getattr(owner, name))
    assert [one for one in names if one not in known] == []


def test_a_dry_run_leaves_no_result(context):
    reframe_internals.suppress_reports()
    assert context.get_option("general/0/generate_file_reports") is False
    assert logging.getperflogger(None).logger.handlers == []


def policy(name):
    return getattr(importlib.import_module("reframe.frontend.executors.policies"), name)()


QUEUED = SimpleNamespace(fullname="a:x", scheduler=SimpleNamespace(registered_name="slurm"))


def task(node=None, tags=()):
    check = SimpleNamespace(local=False, current_partition=QUEUED, tags=set(tags))
    if node:
        setattr(check, reframe_internals.NODE, [node])
    return SimpleNamespace(check=check)


def test_a_job_is_held_back_while_another_has_its_node(context, monkeypatch):
    started = []
    kind, name = owner_of(
        "reframe.frontend.executors.policies:AsynchronousExecutionPolicy._advance_ready_run"
    )
    monkeypatch.setattr(kind, name, lambda self, one: started.append(one) or 1)
    guard.install()
    parallel = policy("AsynchronousExecutionPolicy")
    parallel._partition_tasks["a:x"] = [task("n1"), task(tags=["E17", "network"])]
    network = task(tags=["network"])
    for one, goes in ((task("n1"), 0), (task("n2"), 1), (task(), 1), (network, 0)):
        assert getattr(parallel, name)(one) == goes
        assert (one in started) == bool(goes)
    parallel._partition_tasks["a:x"] = [task("n1")]
    assert getattr(parallel, name)(network) == 1


def test_the_parameter_of_a_distributed_check_is_its_node():
    source = inspect.getsource(owner_of("reframe.frontend.testgenerators:distribute_tests")[0])
    assert f"'{reframe_internals.NODE}': builtins.parameter(" in source


@pytest.fixture
def job(context):
    return Job.create(getscheduler("squeue")(), getlauncher("local")(), name="x")


def test_a_job_is_told_how_it_ended(job, tmp_path, monkeypatch):
    # ReFrame asks Slurm for the names in a list.
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho $3 is asked for\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reframe_internals.set_ended(job, "FAILED", 5, "nid[001-002]")
    assert (job.state, job.exitcode) == ("FAILED", 5)
    assert job.nodelist == ["nid[001-002] is asked for"]


def test_a_job_fails_with_an_error_of_ours(job):
    error = ValueError("why")
    reframe_internals.set_failed(job, error)
    assert job.exception is error


def test_a_job_that_squeue_lost_is_asked_for(job, monkeypatch):
    kind, name = owner_of("reframe.core.schedulers.slurm:SqueueJobScheduler.poll")
    monkeypatch.setattr(kind, name, ignore)
    monkeypatch.setattr(kind, "finished", lambda self, one: one is not None)
    asked = []
    reframe_internals.after_squeue(asked.append)
    job.scheduler.poll(job, None)
    assert asked == [job]


@pytest.mark.parametrize(
    ("code", "state"),
    [(0, None), (1, None), (ssh.NO_CONNECTION, "NODE_FAIL"), (EXIT_NODE_OPEN, "NODE_TAKEN")],
)
def test_how_a_job_on_a_host_ended_is_known_by_its_exit_code(context, code, state):
    job = Job.create(getscheduler("ssh")(hosts=["node1"]), getlauncher("local")(), name="x")
    reframe_internals.set_state(job, None, code)
    hosts.complete(job)
    assert job.state == state


@pytest.mark.parametrize("has_ended", [True, False])
def test_what_a_job_on_a_host_wrote_stays_when_it_ends(context, monkeypatch, tmp_path, has_ended):
    kind, name = owner_of("reframe.core.schedulers.ssh:SSHJobScheduler._poll_job")
    out = tmp_path / "x.out"

    def poll(scheduler, job):
        out.write_text("what the command printed")
        return has_ended

    for method in ("submit", "_do_submit", "_pull_artefacts"):
        monkeypatch.setattr(kind, method, getattr(kind, method))
    monkeypatch.setattr(kind, name, poll)
    ended = []
    reframe_internals.around_hosts(ignore, ignore, ended.append)
    out.write_text("what the job wrote")
    job = SimpleNamespace(localdir=str(tmp_path), stdout=out.name, stderr="x.err")
    kind._poll_job(mock.Mock(), job)
    assert ended == ([job] if has_ended else [])
    assert out.read_text() == f"what the {'job wrote' if has_ended else 'command printed'}"


@pytest.mark.parametrize(("state", "pending"), [("PENDING", True), ("RUNNING", False)])
def test_a_job_that_waits_is_known(state, pending):
    assert reframe_internals.is_pending(SimpleNamespace(state=state)) is pending


def test_checks_that_were_skipped_or_stopped_did_not_end(context):
    stats = owner_of("reframe.frontend.executors:TestStats")[0].TestStats()
    for name, ended in {
        "passed": {},
        "skipped": {"skipped": True},
        "after a failure": {"skipped": True, "failed_deps": True},
        "stopped": {"aborted": True},
    }.items():
        state = {"skipped": False, "failed_deps": False, "aborted": False} | ended
        stats.add_task(SimpleNamespace(testcase=name, **state))
    tasks = reframe_internals.ended_tasks(SimpleNamespace(stats=stats))
    assert [one.testcase for one in tasks] == ["passed", "skipped", "after a failure"]


def test_the_page_on_reframe_has_an_entry_for_each_function():
    page = (ROOT / "docs" / "evidence" / "reframe.md").read_text()
    entries = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(entries))
    assert sorted(named) == sorted(
        name
        for name, one in vars(reframe_internals).items()
        if inspect.isfunction(one)
        and one.__module__ == reframe_internals.__name__
        and name[0] != "_"
    )


def test_no_other_file_uses_what_reframe_does_not_document():
    files = [
        *(ROOT / "src/fabricheck").rglob("*.py"),
        *(ROOT / "config").rglob("*.py"),
        *(ROOT / "reframe_checks").rglob("*.py"),
    ]
    found = {
        (str(file.relative_to(ROOT)), name)
        for file in files
        if file != Path(reframe_internals.__file__)
        for name in re.findall(r"\breframe\.[\w.]+", _code(file))
        if not name.startswith(reframe_internals.PUBLIC[1:])
    }
    assert found == set()


def _code(file):
    """Return the imports of a file, each as the full name of what it brings."""
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{one.name}" for one in node.names]
    return "\n".join(names)
