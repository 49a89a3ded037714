"""Launching of programs: the commands of scheduler and launcher, and the account."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site.clusters import JOB_OPTIONS
from fabricheck.site.partitions import Target

#: The commands of ReFrame's schedulers and launchers; unnamed ones need none.
COMMANDS = {
    "slurm": ("sbatch", "squeue", "sacct", "scancel"),
    "squeue": ("sbatch", "squeue", "scancel"),
    "srun": ("srun",),
    "mpirun": ("mpirun",),
    "mpirun-openmpi": ("mpirun",),
    "mpiexec": ("mpiexec",),
    "smpirun": ("smpirun",),
}

ACCOUNT = "FABRICHECK_ACCOUNT"

#: Slurm's own variables for an account.
_OWN = ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SALLOC_ACCOUNT")


def check(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield which commands are on the PATH, and whether jobs have an account."""
    partition = target.partition
    extra = partition["extras"].get("mpi_launcher")
    used = (partition["scheduler"], partition["launcher"], *([extra] if extra else []))
    for who in dict.fromkeys(used):
        for command in COMMANDS.get(who, ()):
            if machine.which(command):
                yield ok(f"The command {command} is on the PATH.")
            else:
                yield missing(
                    f"The command {command} is not on the PATH, but {target.name} starts "
                    f"programs by {who}: load its module, or use a node of the site."
                )
    if partition["scheduler"] in ("slurm", "squeue"):
        yield _account(target, machine)


def _account(target: Target, machine: Machine) -> Finding:
    option = JOB_OPTIONS[ACCOUNT].split("=")[0]
    access = [str(one) for one in target.partition.get("access", [])]
    stated = [one for one in access if one.startswith((f"{option}=", "-A"))]
    found = [name for name in (ACCOUNT, *_OWN) if machine.environ.get(name, "").strip()]
    if stated or found:
        return ok(f"Jobs have an account ({', '.join(stated or found)}).")
    return missing(f"The jobs of {target.name} have no account: export {ACCOUNT}=PROJECT.")
