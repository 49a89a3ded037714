"""The command lines of launchers, and one of them run for real."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher
from reframe.core.exceptions import PipelineError

from fabricheck.rfm import launchers
from fabricheck.rfm.on_partition import OnPartition

launchers.register()

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="node" routing="Full">
    <host id="device0" speed="1Gf"/>
    <host id="device1" speed="1Gf"/>
    <host id="device2" speed="1Gf"/>
    <link id="fabric" bandwidth="50GBps" latency="1us"/>
    <route src="device0" dst="device1"><link_ctn id="fabric"/></route>
    <route src="device0" dst="device2"><link_ctn id="fabric"/></route>
    <route src="device1" dst="device2"><link_ctn id="fabric"/></route>
  </zone>
</platform>
"""

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, ranks, length;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_processor_name(host, &length);
  printf("rank %d of %d on %s got %s\n", rank, ranks, host, argv[1]);
  MPI_Finalize();
  return 5;
}
"""


def smpirun(folder, ranks=2, **changes):
    """Return the launcher with a platform and hosts, and the job it is for."""
    launcher = getlauncher("smpirun")()
    launcher.platform = str(folder / "libnode.so")
    launcher.hosts = ["device1", "device0"]
    for name, value in changes.items():
        setattr(launcher, name, value)
    return launcher, SimpleNamespace(num_tasks=ranks, workdir=str(folder))


def test_smpirun_places_each_rank(tmp_path):
    launcher, job = smpirun(tmp_path)
    assert launcher.run_command(job) == (
        f"smpirun -np 2 -platform {tmp_path}/libnode.so -hostfile smpi-hosts "
        "--cfg=smpi/simulate-computation:no --cfg=network/model:CM02 "
        "--cfg=network/crosstraffic:no --log=root.thresh:error"
    )
    assert (tmp_path / "smpi-hosts").read_text() == "device1\ndevice0\n"


def test_ranks_of_several_nodes_have_hosts_on_each():
    check = OnPartition()
    check.current_partition = SimpleNamespace(extras={})
    check.current_environ = SimpleNamespace(extras={"programs": "bin"})
    check.job = SimpleNamespace(launcher=getlauncher("smpirun")())
    assert check.rank_launcher((1, 3)).hosts == ["device1", "device3"]
    assert check.rank_launcher((1, 3), nodes=2).hosts == [
        *("node0/device1", "node0/device3", "node1/device1", "node1/device3")
    ]


def test_the_options_of_a_check_come_last(tmp_path):
    launcher, job = smpirun(tmp_path, options=["-trace"])
    assert launcher.run_command(job).endswith(" --log=root.thresh:error -trace")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ranks": 3}, "smpirun starts 3 ranks, but has hosts for 2."),
        ({"hosts": []}, "smpirun starts 2 ranks, but has hosts for 0."),
        ({"ranks": 1}, "smpirun starts 1 ranks, but has hosts for 2."),
    ],
)
def test_smpirun_is_not_started_without_a_place_for_each_rank(tmp_path, changes, sentence):
    launcher, job = smpirun(tmp_path, **changes)
    with pytest.raises(PipelineError, match=sentence):
        launcher.run_command(job)


@pytest.mark.slow
def test_smpirun_starts_the_ranks_where_it_is_told(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "node.xml").write_text(PLATFORM)
    subprocess.run(["smpicc", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    launcher, job = smpirun(
        tmp_path,
        ranks=3,
        platform=str(tmp_path / "node.xml"),
        hosts=["device2", "device0", "device1"],
    )
    command = f"{launcher.run_command(job)} ./program --size=1KiB"
    run = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    said = [line for line in run.stdout.splitlines() if line.startswith("rank ")]
    assert sorted(said) == [
        "rank 0 of 3 on device2 got --size=1KiB",
        "rank 1 of 3 on device0 got --size=1KiB",
        "rank 2 of 3 on device1 got --size=1KiB",
    ]
    # The exit code of a rank is that of smpirun, though MPI_Abort's is not.
    assert run.returncode == 5


def test_mpiexec_starts_that_many_ranks_here():
    assert getlauncher("mpiexec")().run_command(SimpleNamespace(num_tasks=4)) == "mpiexec -n 4"


def test_a_launch_has_its_own_number_of_ranks_and_its_own_hosts(tmp_path):
    launcher, job = smpirun(tmp_path, ranks=8, hostfile="hosts-0-3")
    said = launchers.line(job, launcher, 2)
    assert said.startswith("smpirun -np 2 ")
    assert " -hostfile hosts-0-3 " in said
    assert (tmp_path / "hosts-0-3").read_text() == "device1\ndevice0\n"
    assert job.num_tasks == 8


def test_a_launch_on_one_node_of_a_job():
    queue = SimpleNamespace(registered_name="slurm")
    job = SimpleNamespace(num_tasks=8, num_cpus_per_task=None, scheduler=queue)
    srun = getlauncher("srun")()
    srun.options = ["--mpi=pmi2"]
    assert launchers.line(job, srun, 2) == "srun --nodes=1 --ntasks=2 --mpi=pmi2"
    assert launchers.line(job, getlauncher("mpiexec")(), 3) == "mpiexec -n 3"
    assert launchers.line(job, getlauncher("local")(), 1) == ""
