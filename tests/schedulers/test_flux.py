"""The row of Flux: what an instance prints (tests/outputs/flux), and what it is asked."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.schedulers import flux, table
from fabricheck.schedulers.flux import Job, parse_end, parse_states

RECORDED = Path(__file__).parents[1] / "outputs" / "flux"
REASON = "fabricheck: PERF-FAIL (write_links1_worst 12 of 45 GB/s)"


def recorded(name):
    return (RECORDED / name).read_text()


@pytest.fixture
def instance(tmp_path, monkeypatch):
    """A command `flux` that prints what was recorded of an instance, or what a test writes.

    Returns a function that changes the answers by how a call begins, None for one that fails, and
    returns the file of calls. The user owns the instance, whose nodes have as many cores as this
    machine.
    """
    answers = {
        "resource status": recorded("resource-status-draining.txt"),
        "resource R": recorded("resource-R.json"),
        "resource list": "4 8\n",
        "getattr jobid": "ƒ27rDawq\n",
        "getattr security.owner": f"{os.getuid()}\n",
        "jobs": recorded("jobs-running.txt"),
    }
    file, calls = tmp_path / "answers.json", tmp_path / "calls"
    command = tmp_path / "flux"
    command.write_text(
        f"""#!/usr/bin/env python3
import json, sys
asked = " ".join(sys.argv[1:])
open({str(calls)!r}, "a").write(asked + "\\n")
for begins, text in json.load(open({str(file)!r})).items():
    if asked.startswith(begins):
        if text is None:
            sys.exit("flux: broker socket was not found")
        sys.stdout.write(text)
        break
"""
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("FLUX_URI", f"local://{tmp_path}/local-0")
    monkeypatch.setattr(flux, "cores_here", lambda: 2)

    def answering(**changed):
        file.write_text(json.dumps({**answers, **changed}))
        return calls

    answering()
    return answering


def test_states_of_nodes_with_their_reasons():
    nodes = parse_states(recorded("resource-status-draining.txt"))
    assert {name: (node.state, node.because) for name, node in nodes.items()} == {
        "node1": ("avail", None),
        "node2": ("draining", "fabricheck: HW-FAIL (2 of 4 devices)"),
        "node3": ("drained", REASON),
        "node4": ("drained*", "fabricheck: lost"),
    }


def test_only_an_available_node_can_be_used():
    nodes = parse_states(recorded("resource-status-format.txt"))
    assert [name for name, node in nodes.items() if node.unusable is None] == ["node1", "node2"]
    assert REASON in nodes["node3"].unusable
    assert "broker is lost" in nodes["node4"].unusable


@pytest.mark.parametrize(
    "text",
    ["avail\n", "avail ✔ node1 \ndrained ✔ node[1-2] why\n", "STATE UP NODELIST\n"],
    ids=["cut off", "a node twice", "a header"],
)
def test_damaged_states_are_an_error(text):
    with pytest.raises(LookupError):
        parse_states(text)


def test_an_instance_without_an_end_and_one_with_it():
    text = recorded("resource-R.json")
    assert parse_end(text) is None
    ends = text.replace('"expiration": 0.0', '"expiration": 1795918830.5')
    assert parse_end(ends) == datetime.fromtimestamp(1795918830.5)
    assert parse_end(ends.replace(": ", ":")) == datetime.fromtimestamp(1795918830.5)


@pytest.mark.parametrize("end", ["null", "[]", "NaN", "1e300"])
def test_an_end_that_is_no_time_is_named(end):
    text = recorded("resource-R.json")
    for damaged in (text[:60], text.replace('"expiration": 0.0', f'"expiration": {end}'), "[]"):
        with pytest.raises(LookupError, match="prints no expiration: "):
            parse_end(damaged)


def test_jobs_that_run_with_their_nodes(instance):
    instance()
    assert flux.jobs() == [
        Job("f9DwrvDhh", "a|b", ["node1", "node3"]),
        Job("f9DQaHNmd", flux.SESSION, ["node2"]),
    ]


def test_a_line_that_is_cut_off_is_no_job(instance):
    instance(jobs=recorded("jobs-running.txt").rstrip("\n")[:-1])
    assert [job.id for job in flux.jobs()] == ["f9DwrvDhh"]


def test_the_allocation_is_the_instance(instance):
    instance()
    allocation = table.allocation_around(os.environ)
    assert allocation.scheduler is table.FLUX
    assert (allocation.job, allocation.ends, allocation.is_whole) == ("f27rDawq", None, True)
    assert list(allocation.nodes) == ["node1", "node2", "node3", "node4"]


def test_selected_nodes_of_the_instance(instance):
    instance()
    allocation = table.allocation_around(os.environ, "node[2,4]")
    assert list(allocation.nodes) == ["node2", "node4"] and not allocation.is_whole
    with pytest.raises(UsageError, match="node9"):
        table.allocation_around(os.environ, "node9")


def test_an_instance_that_is_no_job_has_a_word_for_its_number(instance):
    instance(**{"getattr jobid": None})
    assert table.allocation_around(os.environ).job == "instance"


def test_an_instance_that_does_not_answer(instance):
    instance(**{"resource status": None})
    with pytest.raises(NotFoundError, match="broker socket was not found"):
        table.allocation_around(os.environ)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"getattr security.owner": "4711\n"}, "other users"),
        ({"resource list": "4 7\n"}, "1 of the 2 cores"),
        ({"resource list": "\n"}, "does not answer"),
    ],
    ids=["an instance of all users", "a part of a node", "no answer"],
)
def test_nodes_that_others_may_use_are_refused(instance, changed, said):
    instance(**changed)
    assert said in table.FLUX.why_not_alone(os.environ, "tuolumne:gpu")
    with pytest.raises(UsageError, match=said):
        table.allocation_around(os.environ)


def test_a_session_outside_an_instance_is_refused(instance, monkeypatch):
    instance()
    assert table.FLUX.why_not_alone(os.environ, "tuolumne:gpu") is None
    monkeypatch.delenv("FLUX_URI")
    assert "FLUX_URI is not set" in table.FLUX.why_not_alone(os.environ, "tuolumne:gpu")
    with pytest.raises(NotFoundError, match="FLUX_URI is not set"):
        table.FLUX.allocation(os.environ)


def test_a_session_is_an_allocation_of_its_node_and_has_the_nodes_name():
    command = table.FLUX.session("node3", ["reframe", "-r", "-n", "stream"])
    asked, _, started = " ".join(command).partition(" env ")
    assert asked.startswith("flux alloc ") and "--exclusive" in asked
    assert "--requires=host:node3" in asked and "-o gpu-affinity=off" in asked
    assert started == "FABRICHECK_NODE_NAME=node3 reframe -r -n stream"


def test_one_process_of_a_node_has_all_cores_and_devices():
    options = table.FLUX.step_options({}, 1)
    assert options == [
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        "-o mpibind=off -o gpu-affinity=off",
        "-o cpu-affinity=off",
    ]


def test_ranks_are_on_the_measured_nodes(instance):
    instance(**{"resource list": "node[1-4]\n"})
    options = table.FLUX.step_options(dict(os.environ), 8, 2)
    assert options[:2] == ["--nodes=2", "--ntasks=8"]
    assert "--requires='host:node[1-2]'" in options and "-o cpu-affinity=off" not in options
    of_two = {**os.environ, **table.FLUX.of_nodes(["node2", "node4"])}
    assert not any("--requires" in option for option in table.FLUX.step_options(of_two, 8, 2))


def test_ranks_are_bound_to_one_core_each():
    binding = table.binding()["flux-run"]
    assert binding.to([0, 24, 48, 72]) == "-o 'cpu-affinity=map:0;24;48;72'"


def test_sessions_are_asked_to_end_and_what_they_leave_is_cancelled(instance):
    calls = instance()
    table.FLUX.end_sessions("f27rDawq", {"node2"})
    table.FLUX.end_steps("f27rDawq", {"node1", "node2", "node3"}, spared={"f9DQaHNmd"})
    table.FLUX.end_steps_of_several("f27rDawq")
    assert [call for call in calls.read_text().splitlines() if not call.startswith("jobs")] == [
        "job kill --signal=TERM f9DQaHNmd",
        "cancel f9DwrvDhh",
        "cancel f9DwrvDhh",
    ]


def test_a_job_of_other_nodes_is_not_ended(instance):
    calls = instance()
    table.FLUX.end_steps("f27rDawq", {"node1", "node2"}, spared=())
    assert calls.read_text().splitlines()[-1] == "cancel f9DQaHNmd"


def test_the_command_that_drains_a_node():
    assert table.FLUX.drain("node3", REASON) == ["flux", "resource", "drain", "node3", REASON]


def test_cores_of_this_machine_are_counted_once_for_their_threads(tmp_path):
    for cpu, threads in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{threads}\n")
    assert flux.cores_here(tmp_path) == 2
    assert flux.cores_here(tmp_path / "none") == 0


def test_an_instance_that_did_not_answer_once_is_asked_again(instance, monkeypatch):
    monkeypatch.setenv("FLUX_URI", "local:///instance/of/this/test")
    instance(**{"resource list": None})
    environment = dict(os.environ)
    assert list(table.FLUX.allocated(environment)) == []
    with pytest.raises(NotFoundError, match="could measure another node"):
        table.FLUX.step_options(environment, 1)
    instance(**{"resource list": "node[1-4]\n"})
    assert list(table.FLUX.allocated(environment)) == ["node1", "node2", "node3", "node4"]
    assert any("--requires" in option for option in table.FLUX.step_options(environment, 1))
