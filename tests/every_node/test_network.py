"""The session of the network of a job: what it runs, how it ends, and what is recorded of it."""

from __future__ import annotations

import os
import sys
import time

import pytest

from fabricheck.core.errors import UsageError
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, now
from fabricheck.rfm import host
from fabricheck.run.every_node import driver
from fabricheck.schedulers.row import Allocation
from fabricheck.schedulers.table import SLURM
from fabricheck.site import partitions, sites

HERE = Allocation(SLURM, "7", {}, None)

#: A partition without a fabric.
PARTITION = {
    "name": "cpu",
    "environs": ["host"],
    "devices": [{"type": "cpu", "arch": "x86", "num_devices": 1}],
    "extras": {"physical_bounds": {"GB/s": {"value": 1.0, "origin": "derived", "how": "a test"}}},
}


def job(folder, **said):
    """Return the requested nodes of a job, each with why it was stopped or None, in its folder."""
    nodes = {name: RequestedNode(results=name, how_ended=one) for name, one in said.items()}
    requested = RequestedNodes(partition=None, started=now(), job="7", nodes=nodes)
    requested_nodes.write(folder / requested_nodes.NAME, requested)
    return requested


def recorded(folder):
    return requested_nodes.read(folder / requested_nodes.NAME).network


def test_the_choice_of_checks_is_replaced_and_nothing_else():
    given = ["-c", "checks", "--system=lumi", "-t", "smoke", "-x", "osu", "-S", "nodes=4"]
    assert driver.network_arguments(given) == [
        *("-c", "checks", "--system=lumi", "-S", "nodes=4", "-t", "^network$"),
    ]


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        (["--system=lumi"], True),
        (["--system=lumi:gpu", "-t", "node"], True),
        (["--system=local:host"], False),
        (["--system", "local:host"], False),
        (["--system", "lumi:gpu"], True),
        (["--system=nowhere"], False),
    ],
)
def test_a_site_with_a_fabric_has_its_network_measured(given, joined):
    assert driver.is_joined(given) == joined


@pytest.fixture
def sites_of_the_test():
    """Let the sites be read anew, before and afterwards."""
    partitions.read_site.cache_clear()
    yield
    partitions.read_site.cache_clear()


@pytest.mark.usefixtures("sites_of_the_test")
def test_the_site_is_that_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "system_name", lambda: "nid002756")
    assert driver.is_joined([])
    # Of two sites it is neither: its sessions were refused, and said so.
    for name in ("north", "south"):
        system = {"name": name, "hostnames": ["nid"], "partitions": [PARTITION]}
        (tmp_path / f"{name}.py").write_text(f"site_configuration = {{'systems': [{system}]}}")
    monkeypatch.setenv(sites.VARIABLE, str(tmp_path))
    partitions.read_site.cache_clear()
    assert not driver.is_joined([])
    assert driver.is_joined(["--system=dardel"])


def test_a_run_on_a_node_without_a_site_is_refused_before_its_sessions(monkeypatch):
    monkeypatch.delenv("RFM_SYSTEM", raising=False)
    monkeypatch.delenv(sites.VARIABLE, raising=False)
    monkeypatch.setattr(host, "system_name", lambda: "x0001")
    monkeypatch.setattr(host, "full_system_name", lambda: "x0001.example.org")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "x[0001-0002]")
    monkeypatch.setenv("SLURMD_NODENAME", "x0001")
    with pytest.raises(UsageError, match=r"matches 'x0001' or 'x0001\.example\.org': choose"):
        driver.require_site(["-t", "smoke"])
    driver.require_site(["--system=local:sim-mi250x"])
    # Under salloc the nodes may have other names than this machine.
    monkeypatch.setenv("SLURMD_NODENAME", "login1")
    driver.require_site(["-t", "smoke"])
    monkeypatch.setenv("SLURMD_NODENAME", "x0001")
    monkeypatch.setattr(host, "system_name", lambda: "nid005001")
    driver.require_site(["-t", "smoke"])


def test_one_node_has_no_network(tmp_path, wording):
    said = []
    requested = job(tmp_path, node1=None, node2="node2 ended without a run report.")
    assert driver.measure_network(HERE, tmp_path, requested, ["false"], None, said.append) is None
    wording(said)
    assert recorded(tmp_path) is None


def test_its_steps_are_of_the_nodes_that_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-3]")
    monkeypatch.setenv("SLURM_NTASKS", "3")
    requested = job(tmp_path, node1=None, node2="node2 ended.", node3=None)
    told = 'echo "$SLURM_JOB_NODELIST $SLURM_NTASKS $FABRICHECK_RESULTS"'
    report = "mkdir $FABRICHECK_RESULTS/reports; : > $FABRICHECK_RESULTS/reports/run-0.json"
    command = ["sh", "-c", f"{told}; {report}; exit 3"]
    assert driver.measure_network(HERE, tmp_path, requested, command, None, print) is None
    folder = tmp_path / "network"
    assert (folder / "session.log").read_text() == f"node[1,3]  {folder}\n"
    found = recorded(tmp_path)
    assert (found.results, found.status, found.how_ended) == ("network", 3, None)


def test_a_session_over_its_time_is_stopped_and_recorded(tmp_path):
    requested = job(tmp_path, node1=None, node2=None)
    began = time.monotonic()
    said = []
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert driver.measure_network(HERE, tmp_path, requested, command, 0.2, said.append) is None
    assert time.monotonic() - began < 30
    found = recorded(tmp_path)
    sentence = "The session of the network was stopped because its time had passed."
    assert (found.status, found.how_ended) == (None, sentence)
    assert said[-1] == sentence


def test_a_signal_ends_it_and_is_returned(tmp_path, wording):
    requested = job(tmp_path, node1=None, node2=None)
    command = ["sh", "-c", f"kill -TERM {os.getpid()}; exec sleep 60"]
    assert driver.measure_network(HERE, tmp_path, requested, command, None, print) == 15
    wording(recorded(tmp_path).how_ended)
