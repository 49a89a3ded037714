"""Which nodes are requested in a session of every node, and how many jobs it has in the queue."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reframe.core.exceptions import ConfigError, ReframeError

from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.rfm import distributed

#: Two nodes of three are reached, and one of them is idle.
STATES = {"n1": "IDLE", "n2": "DOWN Reason=Not responding [slurm@now]", "n3": "IDLE"}


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Let a session have some partitions, whose first one reaches some nodes."""

    def has(*names, reached=("n2", "n1"), scheduler="squeue", launcher="srun"):
        described = [
            SimpleNamespace(name=name, descr=f"NodeName={name} State={state}")
            for name, state in STATES.items()
        ]
        partitions = [
            SimpleNamespace(
                fullname=name,
                access=["--partition=q"],
                scheduler=SimpleNamespace(registered_name=scheduler, allnodes=lambda: described),
                launcher_type=SimpleNamespace(registered_name=launcher),
                _max_jobs=4,
            )
            for name in names
        ]
        context = SimpleNamespace(
            system=SimpleNamespace(partitions=partitions), output_prefix=str(tmp_path / "output")
        )
        monkeypatch.setattr(distributed.runtime, "runtime", lambda: context)

        def find(state, options):
            idle = [name for name in reached if STATES[name] == "IDLE"]
            return {name: list(reached) if state == "all" else idle for name in names}

        return partitions[0], find

    return has


def test_nodes_that_the_state_leaves_out_are_requested(session):
    _, find = session("a:x")
    found = distributed.nodes(find, "idle", None)
    assert found == {"a:x": ["n1"]}
    down = RequestedNode(state="DOWN", because="Not responding")
    assert found.requested == {"a:x": {"n1": RequestedNode(state="IDLE"), "n2": down}}


def test_a_node_that_slurm_does_not_describe_whole_is_a_sentence(session, monkeypatch):
    monkeypatch.setitem(STATES, "n2", "?")
    _, find = session("a:x")
    with pytest.raises(
        ReframeError, match="nodes of a:x: scontrol prints a damaged state of node n2"
    ):
        distributed.nodes(find, "idle", None)


@pytest.mark.parametrize(
    ("names", "other", "sentence"),
    [
        (
            ("a:x", "a:y"),
            {},
            "--distribute measures the nodes of one partition, but there are a:x, a:y: choose "
            "one, as by --system=a:x.",
        ),
        (
            ("a:x",),
            {"scheduler": "local"},
            "--distribute submits jobs to all nodes of a:x, but this session is inside an "
            "allocation: run it on a login node, or measure the nodes of the allocation with "
            "fabricheck every-node.",
        ),
        (
            ("a:x",),
            {"reached": ()},
            "--distribute found no node of a:x: Slurm has none that --partition=q -C big reaches.",
        ),
        (
            ("a:x",),
            {"reached": ("n2",)},
            "--distribute=idle leaves no node of a:x: n2 DOWN (Not responding).",
        ),
    ],
)
def test_no_nodes_are_a_sentence(session, names, other, sentence):
    _, find = session(*names, **other)
    with pytest.raises(ReframeError) as error:
        distributed.nodes(find, "idle", ["-C big"])
    assert str(error.value) == sentence


@pytest.mark.parametrize(("said", "jobs"), [(None, 2), ("1", 1), ("7", 2)])
def test_each_node_has_one_job_at_a_time(session, monkeypatch, tmp_path, said, jobs):
    monkeypatch.delenv("FABRICHECK_MAX_JOBS", raising=False)
    if said:
        monkeypatch.setenv("FABRICHECK_MAX_JOBS", said)
    partition, find = session("a:x")
    distributed.begin(distributed.nodes(find, "all", None), ["-t", "smoke"], "all")
    assert partition._max_jobs == jobs
    written = requested_nodes.read(tmp_path / "output" / requested_nodes.NAME)
    assert (written.partition, written.chosen) == ("a:x", ("-t", "smoke"))
    assert list(written.nodes) == ["n1", "n2"]


def test_a_limit_that_is_no_number_and_a_folder_that_is_a_file(session, monkeypatch, tmp_path):
    partition, find = session("a:x")
    node_map = distributed.nodes(find, "all", None)
    monkeypatch.setenv("FABRICHECK_MAX_JOBS", "many")
    with pytest.raises(ConfigError, match="FABRICHECK_MAX_JOBS=many is not a whole number"):
        distributed.begin(node_map, [], "all")
    assert partition._max_jobs == 4
    monkeypatch.delenv("FABRICHECK_MAX_JOBS")
    (tmp_path / "output").write_text("")
    with pytest.raises(ReframeError, match="The requested nodes cannot be recorded: "):
        distributed.begin(node_map, [], "all")
