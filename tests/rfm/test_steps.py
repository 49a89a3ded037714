"""On which node of an allocation a step runs, and what a session that is a step passes on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from stand_ins import script

from fabricheck.rfm import jobs
from fabricheck.rfm.nodes import FabricCheck, MpiNodesCheck
from fabricheck.schedulers.table import SLURM

#: What a batch script is told by Slurm 22.05 (sbatch --nodes=4 --ntasks-per-node=8), and a task
#: that srun starts in it with one task on node3.
JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "node[1-4]",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_GPUS_PER_NODE": "8",
    "SLURM_SUBMIT_DIR": "/a",
}
TASKS = {"SLURM_NTASKS": "32", "SLURM_NPROCS": "32", "SLURM_NTASKS_PER_NODE": "8"}
STEP = {
    "PMI_FD": "11",
    "PMI_RANK": "0",
    "SLURM_CPU_BIND_TYPE": "none",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_MPI_TYPE": "pmi2",
    "SLURM_NNODES": "1",
    "SLURM_NPROCS": "1",
    "SLURM_NTASKS": "1",
    "SLURM_NTASKS_PER_NODE": "8",
    "SLURM_SRUN_COMM_PORT": "36721",
    "SLURM_STEPID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node3",
    "SLURM_STEP_TASKS_PER_NODE": "1",
    "SLURM_TASKS_PER_NODE": "1",
}


def options(scheduler="local", tasks=8, nodes=1):
    job = SimpleNamespace(scheduler=SimpleNamespace(registered_name=scheduler))
    return jobs.step_options(job, SimpleNamespace(registered_name="srun"), tasks, nodes)


@pytest.fixture(autouse=True)
def no_allocation(monkeypatch):
    for name in ("SLURM_JOB_NODELIST", "SLURMD_NODENAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("nodes", "own", "expected"),
    [
        ("node[1-4]", "node3", ["--nodelist=node3"]),
        # Under salloc this is a login node, and the first of the allocation is measured.
        ("node[1-4]", None, ["--nodelist=node1"]),
        ("node[2-4]", "login1", ["--nodelist=node2"]),
        ("node3", "node3", []),
        (None, None, []),
    ],
)
def test_a_step_stays_on_the_node_of_its_session(monkeypatch, nodes, own, expected):
    for name, value in (("SLURM_JOB_NODELIST", nodes), ("SLURMD_NODENAME", own)):
        if value:
            monkeypatch.setenv(name, value)
    assert options() == ["--nodes=1", "--ntasks=8", *expected]
    assert options(tasks=1) == ["--nodes=1", "--ntasks=1", *expected, "--cpu-bind=none"]
    # A job of its own gets another node than that of the session that asks for it.
    assert options("slurm") == ["--nodes=1", "--ntasks=8"]


def test_a_step_over_several_nodes_has_as_many_tasks_on_each(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-4]")
    first = ["--distribution=block", "--nodelist=node[1-2]"]
    assert options(tasks=8, nodes=2) == [
        "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", *first,
    ]  # fmt: skip
    # A task that is alone on its node has all cores of it.
    assert options(tasks=2, nodes=2) == [
        "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", *first, "--cpu-bind=none",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "nodes"), [(FabricCheck, 4), (MpiNodesCheck, 2)])
def test_a_check_of_the_fabric_has_all_nodes_of_the_allocation_and_others_two(
    monkeypatch, kind, nodes
):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-4]")
    partition = SimpleNamespace(
        fullname="site:gpu",
        scheduler=SimpleNamespace(registered_name="local"),
        launcher_type=SimpleNamespace(registered_name="srun"),
    )
    check = SimpleNamespace(
        current_partition=partition,
        name=kind.__name__,
        nodes=kind.nodes,
        is_dry_run=lambda: False,
        skip_if=lambda wrong, why: None,
    )
    assert kind.node_count.fget(check) == nodes


def test_a_session_that_is_a_step_passes_on_what_is_of_the_job():
    environment = JOB | STEP | {"SLURMD_NODENAME": "node3", "PATH": "/bin", "PMIX_RANK": "0"}
    SLURM.forget_own_step(environment)
    assert environment == JOB | {"SLURMD_NODENAME": "node3", "PATH": "/bin"}


def test_a_session_in_a_batch_script_passes_on_all():
    environment = JOB | TASKS
    SLURM.forget_own_step(environment)
    assert environment == JOB | TASKS


def test_a_session_lets_slurm_print_in_its_own_formats(suite):
    """Its jobs and steps inherit that: with labels no output of theirs could be read."""
    program, other = suite.programs / "stream", suite.programs / "stream-itself"
    program.rename(other)
    script(program, f'env > "{suite.folder}/environment"; exec "{other}" "$@"')
    suite.variables |= {"SLURM_LABELIO": "1", "SLURM_TIME_FORMAT": "relative", "SLURM_OTHER": "x"}
    assert suite("-r", "-n", "stream_local").status == 0
    inherited = (suite.folder / "environment").read_text().splitlines()
    found = [one for one in inherited if one.startswith("SLURM_")]
    assert sorted(found) == ["SLURM_OTHER=x", "SLURM_TIME_FORMAT=standard"]
