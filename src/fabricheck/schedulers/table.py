"""The table of ways to reach nodes, and which row a process or a partition is of."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.show import enumerated
from fabricheck.schedulers.flux import Flux
from fabricheck.schedulers.pbs import Pbs
from fabricheck.schedulers.row import Allocation, Binding, Scheduler
from fabricheck.schedulers.slurm import Slurm
from fabricheck.schedulers.ssh import Ssh

SLURM, FLUX, PBS, SSH = Slurm(), Flux(), Pbs(), Ssh()

TABLE: tuple[Scheduler, ...] = (SLURM, FLUX, PBS, SSH)

#: The variables that schedulers without a row set inside an allocation: LSF and Grid Engine.
_OTHER_ALLOCATIONS = ("LSB_JOBID", "SGE_TASK_ID")

#: How launchers that belong to an MPI bind ranks, whatever reaches the nodes: MPICH, Open MPI 5.
_BINDING_OF_MPI = {
    "mpiexec": Binding("-bind-to user:{}"),
    "mpirun-openmpi": Binding("--map-by pe-list={}:ordered:hwtcpus"),
}

#: The commands of these, and of a simulated node.
_COMMANDS_OF_MPI = {
    "mpirun": ("mpirun",),
    "mpirun-openmpi": ("mpirun",),
    "mpiexec": ("mpiexec",),
    "smpirun": ("smpirun",),
}


def submitting(backend: str) -> Scheduler | None:
    """Return the row whose checks are jobs of one of ReFrame's schedulers; None without one."""
    for row in TABLE:
        if backend in row.backends:
            return row
    return None


def stepping(backend: str, launcher: str) -> Scheduler | None:
    """Return the row whose checks are steps of the allocation around the session; None without.

    :param backend: ReFrame's scheduler of a partition.
    :param launcher: that of the partition.
    """
    if backend != "local":
        return None
    return starting(launcher)


def starting(launcher: str) -> Scheduler | None:
    """Return the row whose launcher this is; None for one that knows of no allocation."""
    for row in TABLE:
        if launcher == row.launcher:
            return row
    return None


def named(name: str) -> Scheduler:
    """Return the row of a name.

    :raises InvalidInputError: when there is none.
    """
    for row in TABLE:
        if row.name == name:
            return row
    known = enumerated(row.name for row in TABLE)
    raise InvalidInputError(f"There is no way to reach nodes by {name!r}; there are {known}.")


def around(environment: Mapping[str, str]) -> Scheduler | None:
    """Return the row of the allocation around a process; None in none."""
    for row in TABLE:
        if row.variable is not None and environment.get(row.variable):
            return row
    return None


def allocation_around(
    environment: Mapping[str, str], chosen: str | None = None, *, needs_end: bool = True
) -> Allocation:
    """Return the allocation around a process.

    :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
    :param needs_end: whether an end that is not reported is an error; else it is None.
    :raises FabricheckError: outside an allocation, and as the row does.
    """
    row = around(environment) or SLURM
    return row.allocation(environment, chosen, needs_end=needs_end)


def allocation_variables() -> list[str]:
    """Return the variables that schedulers set inside an allocation."""
    of_rows = [row.variable for row in TABLE if row.variable is not None]
    return [*of_rows, *_OTHER_ALLOCATIONS]


def allocation(environment: Mapping[str, str]) -> str | None:
    """Return the variable by which a process is in an allocation, as ``SLURM_JOB_ID=7``.

    None in none.
    """
    for variable in allocation_variables():
        if environment.get(variable):
            return f"{variable}={environment[variable]}"
    return None


def node_name(environment: Mapping[str, str]) -> str | None:
    """Return the scheduler's name of a process's node; None without one.

    Machines that simulate several nodes have one host name for all.
    """
    for row in (SSH, *TABLE):
        if row.node_variable is not None and environment.get(row.node_variable):
            return environment[row.node_variable]
    return None


def requested_node(script: str) -> str | None:
    """Return the one node that a job script requests; None for any, or for several."""
    for row in TABLE:
        line = None if row.requested is None else row.requested.search(script)
        if line is not None:
            return line["node"]
    return None


def has_queue(backend: str) -> bool:
    """Whether a job of one of ReFrame's schedulers may wait before it starts."""
    row = submitting(backend)
    return backend != "local" and (row is None or row.has_queue)


def binding() -> dict[str, Binding]:
    """Return by launcher the option that binds rank i to the i-th of some cores, and no other."""
    options: dict[str, Binding] = {}
    for row in TABLE:
        options |= row.binding
    return {**options, **_BINDING_OF_MPI}


def commands(name: str) -> tuple[str, ...]:
    """Return the commands of one of ReFrame's schedulers or launchers; none for an unknown one."""
    for row in TABLE:
        if name in row.commands:
            return row.commands[name]
    return _COMMANDS_OF_MPI.get(name, ())


def granted() -> list[str]:
    """Return the variables with the number of GPUs that a job has on a node, the exact first."""
    return [variable for row in TABLE for variable in row.granted]


def masks(masks_of_ranks: Sequence[str]) -> dict[str, str]:
    """Return by launcher the option that binds rank i to the i-th of some masks of cores."""
    return {
        row.launcher: row.mask_binding.to(masks_of_ranks)
        for row in TABLE
        if row.launcher is not None and row.mask_binding is not None
    }


def refusal(backend: str, access: Sequence[str]) -> str | None:
    """Return why a partition of one of ReFrame's schedulers cannot be measured; None if it can.

    :param access: the partition's options of a job.
    """
    for row in TABLE:
        sentence = row.why_refused(backend, access)
        if sentence is not None:
            return sentence
    return None


def make_formats_standard(environment: MutableMapping[str, str]) -> None:
    """Let the commands of schedulers print in their standard formats."""
    for row in TABLE:
        row.make_formats_standard(environment)


def with_standard_formats(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a copy of an environment, by default this process's, in which formats are standard."""
    copy = dict(os.environ if environment is None else environment)
    make_formats_standard(copy)
    return copy
