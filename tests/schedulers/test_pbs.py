"""The row of PBS, by composed outputs (tests/outputs/pbs) and documents: nothing was tried."""

import os
from pathlib import Path

import pytest

from fabricheck.core.errors import UsageError
from fabricheck.schedulers import table
from fabricheck.schedulers.pbs import WHOLE_HOSTS, hosts, parse_job, parse_sharing

COMPOSED = Path(__file__).parents[1] / "outputs" / "pbs"
NODES = ["x1001c1s1b0n0", "x1001c1s1b1n0"]


def composed(name):
    return (COMPOSED / name).read_text()


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The environment of a job, with commands that print composed outputs."""

    def with_outputs(of_job, of_nodes):
        for name, output in (("qstat", of_job), ("pbsnodes", of_nodes)):
            command = tmp_path / name
            command.write_text(f"#!/bin/sh\ncat {COMPOSED / output}\n")
            command.chmod(0o755)
        return dict(os.environ)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for variable in ("SLURM_JOB_ID", "FLUX_URI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PBS_JOBID", "1234.pbs01")
    monkeypatch.setenv("PBS_NODEFILE", str(COMPOSED / "nodefile"))
    return with_outputs


def test_a_host_stands_in_the_file_of_nodes_once_for_each_rank():
    assert hosts(composed("nodefile")) == NODES


def test_a_job_and_the_sharing_of_nodes_are_read():
    assert parse_job(composed("job.json"), "1234.pbs01")["job_state"] == "R"
    assert set(parse_sharing(composed("nodes.json")).values()) == {
        "force_exclhost",
        "default_exclhost",
    }


@pytest.mark.parametrize("text", ["", "{}", '{"Jobs": {"1.pbs01": {}}}', '{"nodes": {"a": {}}}'])
def test_what_is_missing_is_an_error(text):
    with pytest.raises(LookupError):
        parse_job(text, "1234.pbs01")
    with pytest.raises(LookupError):
        parse_sharing(text)


@pytest.mark.parametrize(
    ("of_job", "of_nodes", "alone"),
    [
        ("job.json", "nodes-shared.json", True),
        ("job-shared.json", "nodes.json", True),
        ("job-shared.json", "nodes-shared.json", False),
    ],
    ids=["it asked for hosts", "nodes are given whole", "neither"],
)
def test_a_job_has_its_nodes_alone(job, of_job, of_nodes, alone):
    why = table.PBS.why_not_alone(job(of_job, of_nodes), "hunter:gpu")
    assert (why is None) is alone
    assert alone or WHOLE_HOSTS in why


def test_a_session_outside_a_job_and_one_in_an_unknown_job_are_refused(job, monkeypatch):
    environment = job("job.json", "nodes.json")
    assert "unset PBS_JOBID" in table.PBS.why_not_alone(
        {**environment, "PBS_JOBID": "9.pbs01"}, "hunter:gpu"
    )
    assert "PBS_JOBID is not set" in table.PBS.why_not_alone({}, "hunter:gpu")


@pytest.mark.parametrize("backend", ["pbs", "pbspro", "torque"])
def test_jobs_that_share_their_nodes_are_refused(backend):
    assert WHOLE_HOSTS in table.refusal(backend, ["-q single"])
    assert table.refusal(backend, ["-l place=excl"]) is None


def test_a_partition_is_jobs_on_a_login_node_and_steps_in_a_job():
    submitted = table.PBS.partition("test", ["node_type=mi300a"], {})
    assert (submitted["scheduler"], submitted["launcher"]) == ("pbspro", "pals")
    assert submitted["access"] == ["-q test", WHOLE_HOSTS, "node_type=mi300a"]
    assert table.PBS.queue(submitted["access"]) == "test"
    assert table.PBS.partition("", [], {"PBS_JOBID": "1"})["scheduler"] == "local"


def test_the_options_of_pals(job):
    assert table.PBS.step_options({}, 1) == ["-n 1", "--ppn 1", "--cpu-bind none"]
    assert table.PBS.step_options({}, 8, 2) == ["-n 8", "--ppn 4"]
    one_of_two = table.PBS.step_options(job("job.json", "nodes.json"), 4)
    assert one_of_two == ["-n 4", "--ppn 4", f"--hosts {NODES[0]}"]
    bound = table.binding()["pals"].to([0, 24, 48, 72])
    assert bound == "--cpu-bind list:0:24:48:72"


def test_a_comment_of_a_drained_node_has_at_most_80_characters():
    command = table.PBS.drain("x1001c1s2b0n0", "fabricheck: " + 100 * "x")
    assert command[:3] == ["pbsnodes", "-o", "-C"] and command[4] == "x1001c1s2b0n0"
    assert len(command[3]) == 80


def test_every_node_is_refused(job):
    job("job.json", "nodes.json")
    with pytest.raises(UsageError, match="by PBS"):
        table.allocation_around(os.environ)
