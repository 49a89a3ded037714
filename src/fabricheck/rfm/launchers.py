"""Launchers that ReFrame lacks."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.backends import register_launcher
from reframe.core.builtins import variable
from reframe.core.exceptions import PipelineError
from reframe.core.launchers import JobLauncher

from fabricheck.rfm import jobs
from fabricheck.schedulers import table

#: The file of the simulated hosts of the ranks, one per line, in the stage folder.
HOSTFILE = "smpi-hosts"

#: The platform of a simulated node for smpirun, among the programs of a simulated environment.
NODE_PLUGIN = "libfabricheck_node.so"

#: Only the node is simulated, not the computing time of ranks; flows share links as in the
#: simulated runtime (docs/evidence/simulated-node.md).
SETTINGS = {
    "smpi/simulate-computation": "no",
    "network/model": "CM02",
    "network/crosstraffic": "no",
}


#: The variables by which mpiexec and mpirun find the nodes of a job, to start ranks on all of them:
#: of Slurm, PBS, LSF and Grid Engine.
_NODES_OF_A_JOB = (
    "SLURM_JOBID",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "PBS_ENVIRONMENT",
    "PBS_NODEFILE",
    "LSB_DJOB_HOSTFILE",
    "LSB_HOSTS",
    "LSB_JOBID",
    "LSB_MCPU_HOSTS",
    "PE_HOSTFILE",
)


def keep_ranks_here(environment: Mapping[str, str]) -> list[str]:
    """Return the command for a job script whose ranks are to start on its own node alone.

    Empty outside an allocation. Inside one that has several nodes, mpiexec would start ranks on all
    of them, and on its first node where the session is on another one.
    """
    names = [name for name in _NODES_OF_A_JOB if name in environment]
    return [f"unset {' '.join(names)}"] if names else []


class SmpirunLauncher(JobLauncher):  # type: ignore[misc]
    """Runs the ranks of an MPI program on a simulated node, under SimGrid's SMPI.

    platform: the platform as a plug-in (.so) or an XML file. hosts: the simulated host of each
    rank, in the order of ranks. hostfile: the name of the file that lists them, in the folder of
    the job.

    After MPI_Abort smpirun ends with status 0, so only a complete document proves a good run.
    smpirun also splits a program's argument at white space, however it is quoted.
    """

    platform = variable(str, value="")
    hosts = variable(typ.List[str], value=[])
    hostfile = variable(str, value=HOSTFILE)

    def command(self, job: Any) -> list[str]:
        """Return the command, and write the host file to the job's folder.

        :raises PipelineError: when not every rank has its host.
        """
        if len(self.hosts) != job.num_tasks:
            raise PipelineError(
                f"smpirun starts {job.num_tasks} ranks, but has hosts for {len(self.hosts)}."
            )
        hosts = "".join(f"{host}\n" for host in self.hosts)
        (Path(job.workdir) / self.hostfile).write_text(hosts)
        return [
            *("smpirun", "-np", str(job.num_tasks)),
            *("-platform", shlex.quote(str(self.platform))),
            *("-hostfile", self.hostfile),
            *(shlex.quote(f"--cfg={name}:{value}") for name, value in SETTINGS.items()),
            "--log=root.thresh:error",
        ]


class FluxRunLauncher(JobLauncher):  # type: ignore[misc]
    """Runs ranks as a job of the instance of Flux around the session."""

    def command(self, job: Any) -> list[str]:
        """Return the command, without the options that the table of ways to reach nodes has."""
        return table.FLUX.step.split()


class PalsLauncher(JobLauncher):  # type: ignore[misc]
    """Runs ranks by mpiexec of PALS, whose options are neither MPICH's nor Open MPI's."""

    def command(self, job: Any) -> list[str]:
        """Return the command, without the options that the table of ways to reach nodes has."""
        return [table.PBS.step]


def line(job: Any, launcher: JobLauncher, tasks: int, nodes: int = 1) -> str:
    """Return the command by which a launcher starts ranks on the nodes of a job.

    Empty for a launcher without a command (``local``).

    :param tasks: on all nodes.
    """
    before = job.num_tasks
    job.num_tasks = tasks
    try:
        command = str(launcher.run_command(job))
    finally:
        job.num_tasks = before
    row = jobs.starting(launcher)
    if row is None:
        return command
    options = jobs.step_options(job, launcher, tasks, nodes)
    return " ".join([row.step, *options, command.removeprefix(row.step).strip()]).strip()


@functools.cache
def register() -> None:
    """Register the launchers with ReFrame by name; a second call changes nothing."""
    register_launcher("smpirun")(SmpirunLauncher)
    register_launcher("flux-run")(FluxRunLauncher)
    register_launcher("pals")(PalsLauncher)
