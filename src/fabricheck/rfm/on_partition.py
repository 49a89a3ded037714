"""The partition and environment of a check, its devices and programs, and how its jobs end.

ReFrame keeps the class name of an exception in its report (`fail_info`), from which
`results.session` reads why the check failed; a node's verdict distinguishes them. ReFrame treats
all subclasses of `SanityError` alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.exceptions import PipelineError, SanityError

from fabricheck.core.errors import FabricheckError
from fabricheck.core.processes import signal_of
from fabricheck.core.show import listed
from fabricheck.core.text import printable
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, EXIT_MEANING
from fabricheck.node import load as load_node
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.results.run_report import EXCEPTIONS, Failure
from fabricheck.rfm import jobs, launchers, reframe_internals
from fabricheck.rfm.acceptance import Requested

#: States of a job that was ended from outside, whatever its exit code (in Slurm's terms), and what
#: failed then; None where it may be the node.
ENDED_FROM_OUTSIDE: Mapping[str, tuple[Failure | None, str]] = {
    "BOOT_FAIL": (None, "was not started, because its node did not boot"),
    "CANCELLED": ("ended-by-scheduler", "was ended from outside: its job was cancelled"),
    "DEADLINE": ("ended-by-scheduler", "was ended from outside: its job reached its deadline"),
    "NODE_FAIL": (None, "was ended from outside: its node failed"),
    "OUT_OF_MEMORY": (None, "was ended from outside: its job had no memory left"),
    "PREEMPTED": ("ended-by-scheduler", "was ended from outside: its job was preempted"),
    "NODE_TAKEN": (
        "ended-by-scheduler",
        "was not started: another session measured the node for too long",
    ),
    "TIMEOUT": ("time-over", "was ended from outside: its job reached its time limit"),
}


_CLASSES: dict[Failure, type[SanityError]] = {
    failure: type(name, (SanityError,), {}) for failure, name in EXCEPTIONS.items()
}


def failed(failure: Failure | None, sentence: str) -> SanityError:
    """Return the exception of a check that failed; None where no rule is its own.

    ReFrame prints the sentence, which may have texts of a document or of a tool.
    """
    sentence = printable(sentence)
    return SanityError(sentence) if failure is None else _CLASSES[failure](sentence)


def ended_well(job: Any) -> bool:
    """Whether a job ended by itself with code 0; a job that Slurm ended has code 0 too."""
    return job.exitcode == 0 and job.state not in ENDED_FROM_OUTSIDE


def of_end(job: Any, program: str, document: ResultDocument | None) -> SanityError:
    """Return the error for a failed job.

    :param program: the program that ended last.
    :param document: the document that it left.
    """
    failure, _ = ENDED_FROM_OUTSIDE.get(job.state, (None, ""))
    return failed(failure, exit_sentence(job, program, document))


def exit_sentence(job: Any, program: str, document: ResultDocument | None) -> str:
    """Describe the end of a job, with the document's own message if it has one."""
    nodes, awaited = job.nodelist or (), job.pin_nodes
    if job.state == "CANCELLED" and awaited and not nodes:
        return (
            f"{program} was never started: its job waited for {_nodes(awaited)} and was cancelled."
        )
    if job.state in ENDED_FROM_OUTSIDE:
        on = f"on {_nodes(nodes)} " if nodes else ""
        meaning = f"{on}{ENDED_FROM_OUTSIDE[job.state][1]}"
    elif job.exitcode is None:
        meaning = "was ended from outside, without an exit code"
    elif (number := signal_of(job.exitcode)) is not None:
        meaning = f"was ended by signal {number} (exit code {job.exitcode})"
    else:
        known = EXIT_MEANING.get(job.exitcode, "not one of its own exit codes")
        meaning = f"ended with exit code {job.exitcode} ({known})"
    message = document["outcome"]["message"] if document else None
    return f"{program} {meaning}: {message}" if message else f"{program} {meaning}."


def _nodes(names: list[str]) -> str:
    return f"node{'s' if len(names) > 1 else ''} {listed(names)}"


#: The platform of a simulated node in the stage folder, named by FABRICHECK_SIMULATED_NODE.
PLATFORM = "node.json"

#: The platforms that were made, by the digests of model and overlay, and how many nodes they have:
#: all checks of a session have the same.
_PLATFORMS: dict[tuple[str, str | None, int], str] = {}


class OnPartition(rfm.RegressionTestPlugin):  # type: ignore[misc]
    """The part that the checks which build the programs share with those that measure."""

    #: ReFrame's, with its type.
    prerun_cmds: list[str]

    @property
    def runtime(self) -> str:
        """The runtime of the environment."""
        return str(self.current_environ.extras["runtime"])

    @property
    def simulated(self) -> bool:
        """Whether the environment runs on a simulated node."""
        return self.runtime == "sim"

    @property
    def programs_folder(self) -> Path:
        """The folder of this suite's programs in the environment."""
        return Path(self.current_environ.extras["programs"])

    @property
    def device_count(self) -> int:
        """The number of devices of all kinds in the partition."""
        return sum(device.num_devices for device in self.current_partition.devices)

    def extra(self, name: str) -> Any:
        """Return one of the partition's extras.

        :raises PipelineError: when the site file does not state it.
        """
        try:
            return self.current_partition.extras[name]
        except KeyError:
            raise PipelineError(
                f"Partition {self.current_partition.fullname} has no {name} in its extras."
            ) from None

    def submit_once(self) -> None:
        """Let no job be requeued, nor run beside one of another session."""
        row = jobs.submitting(self.current_partition)
        if row is not None:
            self.job.options = [*self.job.options, *row.once]
            node = reframe_internals.node_of(self)
            first = row.of_script(node, self.job.stdout, self.job.stderr)
            self.prerun_cmds = [*first, *self.prerun_cmds]

    @property
    def node_count(self) -> int:
        """The number of nodes of the check, each with the partition's devices."""
        return 1

    def rank_launcher(self, devices: Sequence[int], nodes: int = 1) -> Any:
        """Return the launcher of ranks; on a simulated node each rank is on the host of its device.

        A partition whose single-process programs need no launcher names one for ranks.

        :param devices: the device of each rank of a node.
        :param nodes: how many nodes have such ranks, those of the first node first.
        """
        named = self.current_partition.extras.get("mpi_launcher")
        launcher = getlauncher(named)() if named else self.job.launcher
        if isinstance(launcher, launchers.SmpirunLauncher):
            launcher.platform = str(self.programs_folder / launchers.NODE_PLUGIN)
            launcher.hosts = [
                f"{node}device{device}"
                for node in ([""] if nodes == 1 else [f"node{n}/" for n in range(nodes)])
                for device in devices
            ]
        return launcher

    def _write_platform(self, overlay: str | None = None, nodes: int = 1) -> None:
        """Write the platform of the simulated node to the path that the programs read.

        :param nodes: how many nodes a simulated system has.
        :raises PipelineError: when the node does not exist, or the partition has other devices.
        """
        # Only a simulated run needs this.
        from fabricheck.node.system import platform_json

        try:
            node = load_node(self.extra("node"), overlay)
            if len(node.devices) != self.device_count:
                raise PipelineError(
                    f"Partition {self.current_partition.fullname} states {self.device_count} "
                    f"devices, but a simulated {node.name} has all of its {len(node.devices)}."
                )
            overlaid = node.overlay.sha256 if node.overlay is not None else None
            files = (node.sha256, overlaid, nodes)
            if files not in _PLATFORMS:
                _PLATFORMS[files] = platform_json(node, nodes)
        except FabricheckError as error:
            raise PipelineError(str(error)) from None
        (Path(self.stagedir) / PLATFORM).write_text(_PLATFORMS[files])
        self.env_vars[ENV_SIMULATED_NODE] = PLATFORM

    def request_of(self, program: str, arguments: Sequence[str]) -> Requested:
        """Return the required content of a program's document."""
        devices = self.current_partition.devices
        platform = Path(self.stagedir) / PLATFORM
        return Requested(
            program=program,
            runtime=self.runtime,
            arguments=arguments,
            architectures=self.node_count
            * [device.arch for device in devices for _ in range(device.num_devices)],
            since=self.job.submit_time,
            node=json.loads(platform.read_text())["node"] if self.simulated else None,
        )

    def result_of(self, file: str) -> ResultDocument | None:
        """Return a document in the stage folder; None without a valid one."""
        try:
            return load(Path(self.stagedir) / file)
        except FabricheckError:
            return None

    def last_to_end(self) -> tuple[str, ResultDocument | None]:
        """Return the program that ended last, whose end is that of the job, and its document."""
        raise NotImplementedError

    def check_sanity(self) -> None:
        """Judge the end of the job before ReFrame does, which would report the exit code only."""
        if not self.is_dry_run() and not ended_well(self.job):
            raise of_end(self.job, *self.last_to_end())
        super().check_sanity()
