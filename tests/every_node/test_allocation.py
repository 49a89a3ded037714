"""What the allocation around `fabricheck every-node` is, and where the command is refused."""

from __future__ import annotations

import pytest

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.schedulers import slurm as by_slurm
from fabricheck.schedulers.table import SLURM

INSIDE = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-4]"}

#: As Slurm 22.05 prints them: node3 is down, and node4 was taken out of the job when it failed.
JOB = (
    "JobId=7 JobName=a JobState=RUNNING StartTime=2026-11-22T07:51:13 EndTime={ends} "
    "ReqNodeList=(null) ExcNodeList=(null) NodeList=node[1-3] OverSubscribe={shared} Command=/a"
)
NODES = (
    "NodeName=node1 Arch=x86_64 State=ALLOCATED Weight=1\n"
    "NodeName=node2 Arch=x86_64 State=ALLOCATED+DRAIN Reason=a fan [root@2026-11-22T07:54:56]\n"
    "NodeName=node3 State=DOWN*+DRAIN Weight=1 Reason=Not responding [slurm@2026-11-22T07:54:56]\n"
    "NodeName=node4 State=IDLE Weight=1\n"
)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Let scontrol know a job and its nodes."""

    def says(shared="NO", ends="2026-11-22T07:56:13", status=0):
        text = JOB.format(shared=shared, ends=ends)
        (tmp_path / "scontrol").write_text(
            f"#!/bin/sh\nif [ {status} != 0 ]; then echo Invalid job id >&2; exit {status}; fi\n"
            f"case $2 in job) echo '{text}' ;;\n"
            f"*) printf '{NODES}' | grep \"^NodeName=$4 \" ;; esac\n"
        )
        (tmp_path / "scontrol").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return says


def test_nodes_are_those_the_job_began_with(slurm, wording):
    slurm()
    found = SLURM.allocation(INSIDE)
    assert (found.job, list(found.nodes)) == ("7", ["node1", "node2", "node3", "node4"])
    assert found.ends.isoformat() == "2026-11-22T07:56:13"
    unusable = {name: one.unusable for name, one in found.nodes.items() if one.unusable}
    # Slurm goes on with a job on a node that is drained, as node2 is.
    assert list(unusable) == ["node3", "node4"]
    wording(unusable.values())
    assert (found.nodes["node2"].state, found.nodes["node2"].because) == (
        "ALLOCATED+DRAIN",
        "a fan",
    )


def test_a_part_of_the_nodes(slurm):
    slurm(ends="Unknown")
    found = SLURM.allocation(INSIDE, "node[2,1]")
    assert list(found.nodes) == ["node1", "node2"]
    assert found.ends is None


@pytest.mark.parametrize(
    ("nodes", "environment", "said", "error", "sentence"),
    [
        (None, {}, {}, NotFoundError, "this shell is in none .SLURM_JOB_ID is not set.: start it"),
        ("node[3-9]", INSIDE, {}, UsageError, "The allocation 7 has no node.5-9.: it has node.1-4"),
        ("node[3-", INSIDE, {}, UsageError, "'node.3-' is not a list of nodes"),
        ("", INSIDE, {}, UsageError, "'' names no node"),
        (None, INSIDE, {"shared": "OK"}, UsageError, "may share its nodes .OverSubscribe=OK"),
        (None, INSIDE, {"status": 1}, NotFoundError, "allocation 7: Invalid job id. If this"),
        (
            None,
            INSIDE | {"SLURM_STEP_NUM_TASKS": "4"},
            {},
            UsageError,
            "srun started it 4 times: start it without srun",
        ),
    ],
)
def test_other_surroundings_are_a_sentence(slurm, nodes, environment, said, error, sentence):
    slurm(**said)
    with pytest.raises(error, match=sentence):
        SLURM.allocation(environment, nodes)


def test_a_machine_without_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFoundError, match=r"Slurm does not know the allocation 7: .*scontrol"):
        SLURM.allocation(INSIDE)


@pytest.mark.parametrize(
    ("set_", "unset", "code", "sentence"),
    [
        ({}, "RFM_CONFIG_FILES", 2, "RFM_CONFIG_FILES is not set"),
        (
            {"FABRICHECK_RESULTS": "here"},
            None,
            4,
            "FABRICHECK_RESULTS=here is not an absolute path",
        ),
        ({"REFRAME": "no"}, None, 3, "The command reframe is not on the PATH"),
    ],
)
def test_what_a_session_lacks_is_said_once(
    command, slurm, tmp_path, monkeypatch, set_, unset, code, sentence
):
    slurm()
    reframe = tmp_path / "reframe"
    if "REFRAME" not in set_:
        reframe.write_text("#!/bin/sh\n")
        reframe.chmod(0o755)
    for name, value in {**INSIDE, "RFM_CONFIG_FILES": "/a/settings.py", **set_}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS", raising=False)
    if unset:
        monkeypatch.delenv(unset)
    assert sentence in command("every-node", code=code).stderr
    assert not list(tmp_path.rglob("nodes.json"))


@pytest.mark.parametrize("ends", ["2026-11-22T07:5", "2026-11-22", "soon", "2026-13-22T07:56:13"])
def test_an_end_that_is_damaged_is_not_taken_for_none(slurm, ends):
    slurm(ends=ends)
    with pytest.raises(NotFoundError, match=f"allocation 7 ends: '{ends}' is not a time"):
        SLURM.allocation(INSIDE)


@pytest.mark.parametrize("ends", ["10:14:21", "soon", ""])
def test_with_minutes_no_end_is_needed(slurm, ends):
    slurm(ends=ends)
    assert SLURM.allocation(INSIDE, needs_end=False).ends is None


def test_what_users_let_slurm_print_is_not_asked_of_it(slurm, tmp_path, monkeypatch):
    """With SLURM_TIME_FORMAT=relative scontrol prints the time of the day alone."""
    slurm(ends="'\"$([ $SLURM_TIME_FORMAT = standard ] && echo 2026-11-22T)07:56:13\"'")
    for name, value in {"SLURM_TIME_FORMAT": "relative", "SQUEUE_FORMAT": "%N"}.items():
        monkeypatch.setenv(name, value)
    assert SLURM.allocation(INSIDE).ends.isoformat() == "2026-11-22T07:56:13"
    (tmp_path / "squeue").write_text(
        '#!/bin/sh\n[ -n "$SQUEUE_FORMAT" ] && echo node1 || echo "7.0|name|node1"\n'
    )
    (tmp_path / "squeue").chmod(0o755)
    assert list(by_slurm.steps("7")) == [by_slurm.Step("7.0", "name", "node1")]


@pytest.mark.parametrize("state", ["DOWN", "DOWN*", "DOWN$+DRAIN", "DOWN~", "DOWN+NOT_RESPONDING"])
def test_a_node_that_is_down_is_known_by_any_suffix(slurm, monkeypatch, state, wording):
    monkeypatch.setitem(globals(), "NODES", NODES.replace("DOWN*+DRAIN", state))
    slurm()
    wording(SLURM.allocation(INSIDE, "node3").nodes["node3"].unusable)


def test_nodes_of_another_job_are_refused(slurm):
    slurm()
    with pytest.raises(
        NotFoundError,
        match=r"Slurm reports node3 in allocation 7, which SLURM_JOB_NODELIST .* does not have",
    ):
        SLURM.allocation(INSIDE | {"SLURM_JOB_NODELIST": "node[1-2]"})


def test_steps_are_whole_lines_of_the_job(monkeypatch):
    said = (
        "7.1|fabricheck-every-node|node1\n7.2|a|b|node2\n17.3|a|node1\n7.batch|batch|node1\n"
        "7.4|a|node1\n7.4|b|node2\n7.5|fabricheck-every-node|node1"
    )
    monkeypatch.setattr(by_slurm, "_called", lambda *_: said)
    # The last line is cut: its node may be node12.
    assert [one.id for one in by_slurm.steps("7")] == ["7.1"]
