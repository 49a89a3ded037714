"""The partition and environment of a check: its devices and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.exceptions import PipelineError

from fabricheck.core.errors import FabricheckError
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE
from fabricheck.node import load as load_node
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.rfm import exceptions, launchers, slurm
from fabricheck.rfm.run_match import Requested

#: The platform of a simulated node in the stage folder, named by FABRICHECK_SIMULATED_NODE.
PLATFORM = "node.json"


class OnPartition(rfm.RegressionTestPlugin):  # type: ignore[misc]
    """The part that the checks which build the programs share with those that measure."""

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
        """Let no job of Slurm be requeued."""
        if slurm.submits(self.current_partition):
            self.job.options = [*self.job.options, slurm.ONCE]

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
        # Only a simulated run needs these.
        from fabricheck.node.platform import platform_json
        from fabricheck.node.system import system_json

        try:
            node = load_node(self.extra("node"), overlay)
            if len(node.devices) != self.device_count:
                raise PipelineError(
                    f"Partition {self.current_partition.fullname} states {self.device_count} "
                    f"devices, but a simulated {node.name} has all of its {len(node.devices)}."
                )
            platform = platform_json(node) if nodes == 1 else system_json(node, nodes)
        except FabricheckError as error:
            raise PipelineError(str(error)) from None
        (Path(self.stagedir) / PLATFORM).write_text(platform)
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
        if not self.is_dry_run() and not exceptions.ended_well(self.job):
            raise exceptions.of_end(self.job, *self.last_to_end())
        super().check_sanity()
