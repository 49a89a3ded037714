"""Hosts that ssh reaches, by `fabricheck every-node --hosts` and real servers of ssh.

node1 is healthy, node2 has a device whose memory is slow, node3 is lost while it measures, and on
node4 no server runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_slurm import make_cluster, slow_platform, until
from real_ssh import NEEDED, started

from fabricheck.results import requested_nodes

pytestmark = [NEEDED, pytest.mark.full, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

#: What is said of another session on a host.
WAITS = "Another session measures this node"

#: A program that is another one on each host, and notes that it runs.
PROGRAM = """#!/bin/sh
: > "{folder}/$FABRICHECK_NODE_NAME.started"
case $FABRICHECK_NODE_NAME in
  node2) FABRICHECK_SIMULATED_NODE={slow} ;;
  node3) exec sleep 3600 ;;
esac
while [ -e "{folder}/hold" ]; do sleep 0.1; done
exec {program} "$@"
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with started(tmp_path_factory.mktemp("ssh"), nodes=4, without=("node4",)) as running:
        yield running


def prepare(suite, hosts):
    """Let a suite measure these hosts; return the environment of a command."""
    make_cluster(suite, "stream")
    suite.variables["SSH_CONFIG"] = str(hosts.config)
    program = suite.programs / "stream"
    program.write_text(
        PROGRAM.format(
            folder=suite.folder,
            slow=slow_platform(suite.folder),
            program=ROOT / "build" / "sim" / "bin" / "stream",
        )
    )
    suite.variables["FABRICHECK_SIM_PROGRAMS"] = str(suite.programs)
    (suite.programs / "aftermath").symlink_to(ROOT / "build" / "sim" / "bin" / "aftermath")
    return suite.environment() | {"PATH": f"{BIN}:{os.environ['PATH']}"}


def begin(suite, environment, nodes, *options):
    """Start the command over some hosts."""
    with (suite.folder / "said.txt").open("w") as said:
        return subprocess.Popen(
            ["fabricheck", "every-node", "--hosts", nodes, "--", "-c", "reframe_checks/stream",
             "--system=cluster:hosts", "-n", "^stream_local$", *options],
            env=environment, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip


def verdicts(suite):
    """Return the rows of the only verdict, by node."""
    (file,) = suite.results.glob("verdicts/*/verdict.json")
    return {row["node"]: row for row in json.loads(file.read_text())["nodes"]}


@pytest.fixture(scope="module")
def ended(hosts, shared_suite):
    environment = prepare(shared_suite, hosts)
    run = begin(shared_suite, environment, "node[1-4]")
    until((shared_suite.folder / "node3.started").exists, "the program runs on node3")
    hosts.lose("node3")
    status = run.wait(300)
    return shared_suite, status, (shared_suite.folder / "said.txt").read_text()


def test_every_host_has_its_verdict(ended):
    suite, status, text = ended
    rows = verdicts(suite)
    assert {node: row["status"] for node, row in rows.items()} == {
        "node1": "INCOMPLETE",  # a check by its name accepts no node
        "node2": "PERF-FAIL",
        "node3": "INCOMPLETE",
        "node4": "INCOMPLETE",
    }, text
    assert status == 12
    assert any("device 3 of node " in reason["sentence"] for reason in rows["node2"]["reasons"])


def test_a_host_that_cannot_be_reached_or_is_lost_is_named(ended):
    suite, _, _ = ended
    rows = verdicts(suite)
    assert "Connection refused" in rows["node4"]["reasons"][0]["sentence"]
    assert "on node node3 was ended from outside: its node failed" in json.dumps(rows["node3"])
    (file,) = suite.results.glob("output/*/nodes.json")
    states = {name: node.state for name, node in requested_nodes.read(file).nodes.items()}
    assert states == {"node1": "UP", "node2": "UP", "node3": "UP", "node4": "UNREACHABLE"}


def test_what_a_check_wrote_comes_back_and_nothing_stays(ended, hosts):
    suite, _, _ = ended
    documents = list(suite.results.glob("*/*/cluster/hosts/sim/stream_local*/result.json"))
    hosts_of = {json.loads(file.read_text())["host"]["scheduler_node"] for file in documents}
    assert hosts_of == {"node1", "node2"}
    for file in documents:
        assert "stream, runtime sim" in (file.parent / "rfm_job.err").read_text()
    # That of the host that was lost is there, and no other.
    (left,) = hosts.folders.iterdir()
    assert "FABRICHECK_NODE_NAME=node3 " in (left / "rfm_job.sh").read_text()


def test_a_check_waits_for_the_lock_of_its_host(hosts, suite):
    environment = prepare(suite, hosts) | {"FABRICHECK_SESSION": "waits"}
    with hosts.lock("node1").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = begin(suite, environment, "node1")
        until(lambda: WAITS in "".join(errors_of("node1", suite)), "the check waits")
        assert not (suite.folder / "node1.started").exists()
    until((suite.folder / "node1.started").exists, "the program runs on node1")
    assert run.wait(100) == 13
    (errors,) = suite.results.glob("output/*/cluster/hosts/sim/*/rfm_job.err")
    assert WAITS in errors.read_text()


def killed(hosts, suite, name):
    """Start a session that holds on two hosts, and kill the command; return its environment."""
    environment = prepare(suite, hosts) | {"FABRICHECK_SESSION": name}
    (suite.folder / "hold").touch()
    run = begin(suite, environment, "node[1-2]")
    for node in ("node1", "node2"):
        until((suite.folder / f"{node}.started").exists, f"the program runs on {node}")
    run.kill()
    run.wait()
    return environment


def judged(suite, environment, name):
    """Judge a session when all its processes have ended; return the rows by node."""
    until(lambda: not sessions(suite), "all processes have ended")
    subprocess.run(
        ["fabricheck", "verdict", name], env=environment, cwd=ROOT, capture_output=True, check=False
    )
    return verdicts(suite)


def test_a_killed_command_loses_nothing(hosts, suite):
    environment = killed(hosts, suite, "lost-command")
    (suite.folder / "hold").unlink()
    rows = judged(suite, environment, "lost-command")
    assert {node: row["status"] for node, row in rows.items()} == {
        "node1": "INCOMPLETE",
        "node2": "PERF-FAIL",
    }


def test_what_ran_when_its_session_was_killed_comes_back(hosts, suite):
    environment = killed(hosts, suite, "lost-session")
    for process in sessions(suite):
        os.kill(process, signal.SIGKILL)
    (suite.folder / "hold").unlink()
    pattern = "stage/*/cluster/hosts/sim/stream_local*/result.json"
    until(lambda: len(list(suite.results.glob(pattern))) == 2, "the results have come back")
    rows = judged(suite, environment, "lost-session")
    assert list(rows) == ["node1", "node2"]
    assert {row["status"] for row in rows.values()} == {"INCOMPLETE"}
    for row in rows.values():
        assert "session" in {reason["rule"] for reason in row["reasons"]}, row["reasons"]


def processes():
    """Yield each process of this machine, its command and its environment."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            yield folder.name, (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()


def sessions(suite):
    """Return the processes of ReFrame whose results folder is that of a suite."""
    wanted = f"FABRICHECK_RESULTS={suite.results}\0".encode()
    return [
        int(process)
        for process, command, environment in processes()
        if b"bin/reframe" in command and wanted in environment
    ]


def errors_of(node, suite):
    """Yield what checks of a suite have written to their errors on a host."""
    for process, command, environment in processes():
        if b"fabricheck.rfm.on_host" not in command:
            continue
        if f"FABRICHECK_NODE_NAME={node}\0".encode() in environment:
            # It may just begin, or end.
            with contextlib.suppress(OSError):
                yield (Path("/proc", process, "cwd") / "rfm_job.err").read_text()


def test_without_distribute_a_session_is_refused(suite, hosts):
    prepare(suite, hosts)
    run = suite.shell("--system=cluster:hosts", "-r", "-n", "^stream_local$")
    assert run.status != 0
    assert "add --distribute=all, or use fabricheck every-node --hosts LIST" in run
    assert not (suite.folder / "node1.started").exists()
