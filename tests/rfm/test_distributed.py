"""Which nodes are requested in a session of every node, and how many jobs it has in the queue."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reframe.core.exceptions import ReframeError

from fabricheck.core.errors import InvalidInputError
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
                max_jobs=4,
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
    measured, requested = distributed.distributed_nodes(find, "idle", None)
    assert measured == {"a:x": ["n1"]}
    down = RequestedNode(state="DOWN", because="Not responding")
    assert requested == {"a:x": {"n1": RequestedNode(state="IDLE"), "n2": down}}


def test_a_node_that_slurm_does_not_describe_whole_is_a_sentence(session, monkeypatch):
    monkeypatch.setitem(STATES, "n2", "?")
    _, find = session("a:x")
    with pytest.raises(
        ReframeError, match="nodes of a:x: scontrol prints a damaged state of node n2"
    ):
        distributed.distributed_nodes(find, "idle", None)


@pytest.mark.parametrize(
    ("names", "other"),
    [
        (("a:x", "a:y"), {}),
        (("a:x",), {"scheduler": "local"}),
        (("a:x",), {"reached": ()}),
        (("a:x",), {"reached": ("n2",)}),
    ],
    ids=["two partitions", "inside an allocation", "none", "none that is idle"],
)
def test_no_nodes_are_a_sentence(session, names, other, wording):
    _, find = session(*names, **other)
    with pytest.raises(ReframeError) as error:
        distributed.distributed_nodes(find, "idle", ["-C big"])
    wording(str(error.value))


def test_the_requested_nodes_are_recorded(session, tmp_path, capsys, wording):
    _, find = session("a:x")
    distributed.begin_distributed(
        distributed.distributed_nodes(find, "all", None), ["-t", "smoke"], "all"
    )
    wording(capsys.readouterr()[0])
    written = requested_nodes.read(tmp_path / "output" / requested_nodes.NAME)
    assert (written.partition, written.chosen) == ("a:x", ("-t", "smoke"))
    assert list(written.nodes) == ["n1", "n2"]


@pytest.mark.parametrize(("said", "jobs"), [(None, 100), ("1", 1), ("7", 7)])
def test_a_session_of_all_nodes_may_have_a_job_for_each(monkeypatch, said, jobs):
    monkeypatch.delenv("FABRICHECK_MAX_JOBS", raising=False)
    if said:
        monkeypatch.setenv("FABRICHECK_MAX_JOBS", said)
    for option, expected in (("--distribute", jobs), ("--distribute=all", jobs), ("-r", 4)):
        kinds = ({"scheduler": "squeue", "max_jobs": 4}, {"scheduler": "local", "max_jobs": 1})
        distributed.allow_jobs([{"partitions": kinds}], ["reframe", option, "-r"])
        assert [one["max_jobs"] for one in kinds] == [expected, 1]


@pytest.mark.parametrize("said", ["many", "0"])
def test_jobs_at_a_time_are_a_number_from_one_on(monkeypatch, said):
    monkeypatch.setenv("FABRICHECK_MAX_JOBS", said)
    with pytest.raises(InvalidInputError, match=f"FABRICHECK_MAX_JOBS={said} "):
        distributed.allow_jobs([], ["--distribute"])


def test_a_folder_that_is_a_file_is_a_sentence(session, tmp_path):
    _, find = session("a:x")
    (tmp_path / "output").write_text("")
    with pytest.raises(ReframeError, match="The requested nodes cannot be recorded: "):
        distributed.begin_distributed(distributed.distributed_nodes(find, "all", None), [], "all")
