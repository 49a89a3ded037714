"""What Slurm says of a job that has ended, and of the allocation around a session."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reframe.core.exceptions import JobBlockedError, ReframeError

from fabricheck.rfm import jobs
from fabricheck.schedulers import slurm

RECORD = (
    "JobId=12 JobName=rfm_x UserId=a(1) JobState={state} Reason=None Dependency=(null) "
    "ExitCode={code} RunTime=00:00:02 ReqNodeList=(null) ExcNodeList=(null) NodeList={nodes} "
    "OverSubscribe={shared} Command=/a/ExitCode=7 WorkDir=/a"
)


@pytest.fixture
def controller(tmp_path, monkeypatch):
    """Let scontrol say a sentence and end with a status."""

    def says(text, status=0):
        program = tmp_path / "scontrol"
        stream = 2 if status else 1
        program.write_text(f"#!/bin/sh\necho '{text}' >&{stream}\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return says


def record(state="COMPLETED", code="0:0", nodes="nid[001-002]", shared="NO"):
    return RECORD.format(state=state, code=code, nodes=nodes, shared=shared)


def ended_job():
    job = SimpleNamespace(jobid="12", _state=None, _exitcode=None, _nodespec=None, _exception=None)
    jobs.complete(job)
    return job


@pytest.mark.parametrize(
    ("state", "said", "code"),
    [
        ("COMPLETED", "0:0", 0),
        ("FAILED", "5:0", 5),
        ("FAILED", "0:11", 139),
        ("TIMEOUT", "0:15", 143),
    ],
)
def test_the_end_of_a_job_is_completed(controller, state, said, code):
    controller(record(state, said))
    job = ended_job()
    assert (job._state, job._exitcode, job._nodespec) == (state, code, "nid[001-002]")
    assert job._exception is None


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("slurm_load_jobs error: Invalid job id specified", 1, "Invalid job id specified"),
        ("", 1, "scontrol ended with 1"),
        ("nothing of it", 0, "JobId"),
        (record(code="many"), 0, "not enough values"),
    ],
)
def test_an_end_that_nobody_knows_fails_the_job(controller, text, status, reason):
    controller(text, status)
    job = ended_job()
    assert job._exitcode is None
    sentence = str(job._exception)
    assert "Slurm does not report how the job ended" in sentence
    assert reason in sentence


def test_a_machine_without_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "scontrol" in str(ended_job()._exception)


def test_an_allocation_of_its_own_is_taken(controller, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    controller(record("RUNNING"))
    jobs.require_allocation([partition("gpu", "a")])


@pytest.mark.parametrize(
    ("job", "said", "sentence"),
    [
        (None, record(), "is in none .SLURM_JOB_ID is not set.: start it by salloc or sbatch"),
        (
            "12",
            record(shared="OK"),
            "may share its node .OverSubscribe=OK., but partition jureca:gpu",
        ),
        ("12", "nothing", "Slurm does not know the allocation 12"),
    ],
)
def test_other_surroundings_are_refused(controller, monkeypatch, job, said, sentence):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    controller(said)
    with pytest.raises(ReframeError, match=sentence):
        jobs.require_allocation([partition("gpu", "a")])
    # Partitions that do not start programs by srun need none.
    jobs.require_allocation([])


def test_a_job_number_left_over_is_one_line_and_what_to_do(controller, monkeypatch, wording):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    controller("Invalid job id specified\nslurm_load_jobs error: see man scontrol", 1)
    with pytest.raises(ReframeError) as error:
        jobs.require_allocation([partition("gpu", "a")])
    wording(str(error.value))


def partition(name, node, queue="q", scheduler="local", launcher="srun"):
    return SimpleNamespace(
        fullname=f"jureca:{name}",
        extras={"node": node},
        access=["--nodes=1", f"--partition={queue}"],
        scheduler=SimpleNamespace(registered_name=scheduler),
        launcher_type=SimpleNamespace(registered_name=launcher),
    )


@pytest.mark.parametrize("scheduler", ["local", "slurm"])
def test_nodes_of_two_kinds_are_not_the_same_nodes(scheduler, wording):
    two = [partition(name, name, scheduler=scheduler) for name in ("mi250", "a100")]
    with pytest.raises(ReframeError) as error:
        jobs.require_nodes_of_one_kind(two)
    wording(str(error.value))


@pytest.mark.parametrize(
    "two",
    [
        [partition("mi250", "mi250")],
        [partition("day", "mi250"), partition("night", "mi250")],
        [partition(name, name, queue=name, scheduler="slurm") for name in ("mi250", "a100")],
        [partition("known", "mi250"), partition("not-known", None)],
        # Partitions of this machine that need no allocation, as local's.
        [partition(name, name, launcher="local") for name in ("host", "sim")],
    ],
    ids=["one", "alike", "two queues", "no model", "no steps"],
)
def test_nodes_of_one_kind_are_taken(two):
    jobs.require_nodes_of_one_kind(two)


def test_a_queue_that_shares_all_nodes_is_refused(controller, wording):
    queue = [partition("mi250", "mi250", scheduler="slurm")]
    controller("PartitionName=q AllowGroups=ALL OverSubscribe=FORCE:4 State=UP")
    with pytest.raises(ReframeError) as error:
        jobs.require_own_nodes(queue)
    wording(str(error.value))
    # Steps are of an allocation, which is looked at itself.
    jobs.require_own_nodes([partition("mi250", "mi250")])
    for shared in ("NO", "EXCLUSIVE", "YES:4"):  # the last shares only what asks for it
        controller(f"PartitionName=q OverSubscribe={shared} State=UP")
        jobs.require_own_nodes(queue)
    controller("slurm_load_partitions error: Invalid partition name specified", 1)
    jobs.require_own_nodes(queue)


class Waiting(SimpleNamespace):
    """A job of ReFrame, which is told from others by its number."""

    def __hash__(self):
        return hash(self.jobid)

    @property
    def exception(self):
        return self._exception


def job(number, node=None, *options, state="PENDING"):
    return Waiting(
        jobid=number,
        pin_nodes=[node] if node else [],
        state=state,
        sched_access=(),
        options=options,
        cli_options=(),
        _exception=None,
    )


def test_a_job_that_asks_for_a_node_is_blocked_by_the_state_of_the_node(controller, wording):
    """Slurm gives the same reason where the node is healthy and somebody else waits for it."""
    states = {
        "n1": "ALLOCATED",
        "n2": "DOWN+NOT_RESPONDING Reason=no power [slurm@now]",
        "n3": "IDLE+DRAIN",
        "n4": "ALLOCATED+NOT_RESPONDING",
        "n5": "IDLE+RESERVED",
        # As Slurm up to 20.11 marks a node that does not answer, and one that saves power.
        "n6": "DOWN*",
        "n7": "IDLE~",
    }
    controller("\n".join(f"NodeName={name} State={state}" for name, state in states.items()))
    waiting = [job(name, name) for name in (*states, "unknown")]
    held = [job("r", "n5", "--reservation=night"), job("running", "n2", state="RUNNING")]
    other = job("any")
    judged = []

    def cancel(scheduler, given, reasons):
        judged.append([one.jobid for one in given])
        for one in given:
            one._exception = JobBlockedError("ReFrame's words", one.jobid)

    jobs.cancel_if_blocked(cancel, None, [*waiting, *held, other], {"n1": ["ReqNodeNotAvail"]})
    # One that runs and one that asks for no node are ReFrame's to judge.
    assert judged == [["n2", "n3", "n5", "n6", "unknown", "running", "any"]]
    wording(one._exception for one in waiting if one._exception)


def test_without_a_word_of_the_controller_reframe_judges(controller):
    controller("slurm_load_node error: Unable to contact slurm controller", 1)
    judged = []
    jobs.cancel_if_blocked(lambda _, given, __: judged.extend(given), None, [job("1", "n1")])
    assert [one.jobid for one in judged] == ["1"]


@pytest.mark.parametrize(
    ("end", "state", "because"),
    [
        ("State=IDLE ThreadsPerCore=1", "IDLE", None),
        ("State=DOWN Reason=Not responding [slurm@2026-11-22T07:53:46]", "DOWN", "Not responding"),
        ("State=IDLE+DRAIN Reason=fan [3] [root@2026-11-22] Comment=x y", "IDLE+DRAIN", "fan [3]"),
        ("State=DOWN Reason=no power Comment=a", "DOWN", "no power"),
        ("OS=Linux 6 Comment=State=DOWN State=IDLE", "IDLE", None),
    ],
)
def test_the_state_of_a_node(end, state, because):
    requested = slurm.parse_node(f"NodeName=node2 Arch=x86_64 Gres=gpu:8 {end}")
    assert (requested.state, requested.because) == (state, because)


LINE = "NodeName={name} Gres=gpu:8 State={state} Weight=1"


def test_a_record_that_is_cut_is_none(monkeypatch):
    whole = record("RUNNING", nodes="nid[001-012]")
    monkeypatch.setattr(slurm, "_shown", lambda *_: f"{whole}\n")
    assert slurm.record("12")["NodeList"] == "nid[001-012]"
    with pytest.raises(LookupError, match="no record of the job, or several"):
        slurm.record("1")
    for end in (len(whole), whole.index("12] Over"), 3):
        monkeypatch.setattr(slurm, "_shown", lambda *_, cut=whole[:end]: cut)
        with pytest.raises(LookupError, match="the output of scontrol is cut off"):
            slurm.record("12")


def test_a_job_of_an_array_is_the_one_of_its_number(monkeypatch):
    shown = "".join(f"{record(state).replace('=12', f'={job}')}\n"
                    for job, state in ((13, "FAILED"), (12, "RUNNING")))  # fmt: skip
    monkeypatch.setattr(slurm, "_shown", lambda *_: shown)
    assert slurm.record("12")["JobState"] == "RUNNING"


def test_what_a_record_does_not_tell_is_said(controller):
    controller("JobId=12 JobState=COMPLETED")
    assert "scontrol reports no ExitCode" in str(ended_job()._exception)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (
            f"{LINE.format(name='n1', state='IDLE')} {LINE.format(name='n2', state='DOWN')}\n",
            "reports no NodeName, or reports it twice",
        ),
        (f"{LINE.format(name='n1', state='IDLE')}\n" * 2, "a node twice"),
        (LINE.format(name="n1", state="DO"), "is cut"),
        (f"{LINE.format(name='n3', state='IDLE')}\n", "that it was not asked for"),
        (f"{LINE.format(name='n1', state='7')}\n", "a damaged state of node n1"),
        ("NodeName=n1 Gres=gpu:8\n", "reports no State"),
        ("State=IDLE\n", "reports no NodeName"),
    ],
)
def test_nodes_are_whole_lines_of_their_own(monkeypatch, shown, reason):
    monkeypatch.setattr(slurm, "_shown", lambda *_: shown)
    with pytest.raises(LookupError, match=reason):
        slurm.query_nodes("n[1-2]")


def test_a_word_that_another_one_became_is_not_taken_for_it(controller):
    """A blank in ExcNodeList=(null) gives a second NodeList, before that of the job."""
    controller(record("COMPLETED").replace("ExcNodeList", "Exc NodeList"))
    assert "reports no NodeList, or reports it twice" in str(ended_job()._exception)


def test_bytes_that_are_no_text_are_no_crash(controller):
    controller("JobId=12 JobState=RUNNING \\377 OverSubscribe=NO")
    assert slurm.record("12")["OverSubscribe"] == "NO"
