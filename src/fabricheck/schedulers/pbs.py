"""PBS: its jobs, its nodes, and ranks started by PALS, HPE's launcher.

Nothing of it was tried. What is relied on is in OpenPBS's manual pages (github.com/openpbs/openpbs,
commit cd7ab5ed): qsub(1B), qstat(1B), pbsnodes(8B), pbs_node_attributes(7B); and in public job
scripts of machines with PALS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.schedulers.row import Allocation, Binding, Scheduler, ask

#: Seconds after which the server is no longer waited for.
_PATIENCE_S = 120.0

#: What gives a job whole hosts: by vnode (excl) it may share a host that consists of several.
WHOLE_HOSTS = "-l place=scatter:exclhost"

#: The values of a vnode's attribute `sharing` with which a job has it alone, unless it asks for
#: sharing.
_ALONE = ("force_exclhost", "force_excl", "default_exclhost", "default_excl")

#: The longest comment of a node, in characters (pbsnodes(8B)).
_LONGEST_COMMENT = 80

#: The option of a job that is not started again after the loss of its node.
ONCE = "-r n"


def parse_job(text: str, job: str) -> Mapping[str, Any]:
    """Return the attributes of a job, as `qstat -f -F json` prints them.

    :raises LookupError: when there is no such job in it.
    """
    try:
        attributes: Mapping[str, Any] = json.loads(text)["Jobs"][job]
    except (ValueError, KeyError, TypeError):
        raise LookupError(f"qstat prints no record of job {job}") from None
    return attributes


def parse_sharing(text: str) -> dict[str, str]:
    """Return the attribute `sharing` of each node, as `pbsnodes -F json` prints them.

    :raises LookupError: when a node has none.
    """
    try:
        nodes: Mapping[str, Mapping[str, str]] = json.loads(text)["nodes"]
        return {name: node["sharing"] for name, node in nodes.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LookupError("pbsnodes prints no attribute sharing of a node") from None


def hosts(nodefile: str) -> list[str]:
    """Return the hosts in the file of a job's nodes, which has a line for each rank."""
    return list(dict.fromkeys(nodefile.split()))


class Pbs(Scheduler):
    """PBS with PALS: from documents and public job scripts; nothing was tried."""

    name = "pbs"
    title = "PBS"
    variable = "PBS_JOBID"
    backends = ("pbspro", "pbs")
    launcher = "pals"
    step = "mpiexec"
    starter = "mpiexec"
    once = (ONCE,)
    all_cores = "--cpu-bind none"
    rank_variable = "PALS_RANKID"
    account_options = ("-A",)
    job_options = {"FABRICHECK_ACCOUNT": "-A {}"}
    counts_cores = True
    commands = {
        "pbspro": ("qsub", "qstat", "qdel"),
        "pbs": ("qsub", "qstat", "qdel"),
        "pals": ("mpiexec",),
    }
    binding = {"pals": Binding("--cpu-bind list:{}", ":")}

    def partition(
        self,
        queue: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "",
    ) -> dict[str, Any]:
        """Return scheduler, launcher and access of a partition of a site file.

        On a login node each check is a job of its own. Inside a job each check is a step.

        :param queue: of the jobs; empty where the server chooses it.
        :param options: a word without ``-``, such as ``node_type=mi300a``, joins ``select``.
        """
        access = [*([f"-q {queue}"] if queue else []), WHOLE_HOSTS, *options]
        if environment.get("PBS_JOBID"):
            return {"scheduler": "local", "launcher": "pals", "max_jobs": 1, "access": access}
        return {
            "scheduler": backend or "pbspro",
            "launcher": "pals",
            "max_jobs": 4,
            "access": access,
        }

    def allocated(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Return the nodes of the job around this process, in order; none without one."""
        file = environment.get("PBS_NODEFILE")
        try:
            return hosts(Path(file).read_text()) if file else []
        except OSError:
            return []

    def allocation(
        self, environment: Mapping[str, str], chosen: str | None = None, *, needs_end: bool = True
    ) -> Allocation:
        """Refuse: no PBS was at hand to try how a session starts and ends on each node.

        :raises UsageError: always.
        """
        raise UsageError(
            "every-node starts no sessions by PBS: submit one on each node as a job of its own, "
            "and judge their results together, as in fabricheck verdict DIR1 DIR2."
        )

    def ends(self, environment: Mapping[str, str]) -> datetime | None:
        """Return None: no PBS was at hand to try how it tells the end of a job."""
        return None

    def step_options(
        self, environment: Mapping[str, str], tasks: int, number: int = 1
    ) -> list[str]:
        """Return the launcher's options for a number of tasks on the nodes of a check.

        :param environment: of the session if its checks are steps of the job around it; empty for a
            job of its own.
        :param tasks: on all nodes, the same number on each.
        :param number: of the nodes.
        """
        options = [f"-n {tasks}", f"--ppn {tasks // number}"]
        if len(self.allocated(environment)) > number:
            options.append(f"--hosts {','.join(self.measured_nodes(environment, number))}")
        if tasks == number:
            # By default it binds one process to one core, too.
            options.append(self.all_cores)
        return options

    def why_not_alone(self, environment: Mapping[str, str], partitions: str) -> str | None:
        """Return why a session has not the nodes of its job for itself; None if it has."""
        job = environment.get("PBS_JOBID")
        if not job:
            return (
                f"Partition {partitions} runs the whole suite inside one job, but this session is "
                f"in none (PBS_JOBID is not set): start it by qsub, with {WHOLE_HOSTS}."
            )
        try:
            record = parse_job(ask(["qstat", "-f", "-F", "json", job], _PATIENCE_S), job)
            place = str(record.get("Resource_List", {}).get("place", ""))
            if "exclhost" in place:
                return None
            names = self.allocated(environment)
            sharing = parse_sharing(ask(["pbsnodes", "-F", "json", *names], _PATIENCE_S))
        except (LookupError, NotFoundError) as error:
            return (
                f"PBS does not know job {job}: {error}. If this session is in none, the variable "
                "is left over: unset PBS_JOBID."
            )
        if sharing and all(value in _ALONE for value in sharing.values()) and "shared" not in place:
            return None
        return (
            f"Job {job} may share its node (place={place or 'free'}), but partition {partitions} "
            f"measures it: add {WHOLE_HOSTS} to qsub."
        )

    def why_refused(self, backend: str, access: Sequence[str]) -> str | None:
        """Return why a partition of ReFrame's schedulers of PBS cannot be measured."""
        # ReFrame requests nodes by number, and PBS then places other jobs on them.
        if backend in ("pbs", "pbspro", "torque") and not any("excl" in word for word in access):
            return f"shares its nodes with other jobs: access needs {WHOLE_HOSTS}"
        return None

    def queue(self, access: Sequence[str]) -> str | None:
        """Return the queue in the options of a job; None without one."""
        queues = [option[3:].strip() for option in access if option.startswith("-q ")]
        return queues[-1] if queues else None

    def drain(self, node: str, reason: str) -> list[str]:
        """Return the command that drains a node, as the arguments of a process."""
        return ["pbsnodes", "-o", "-C", reason[:_LONGEST_COMMENT], node]
