"""The base of checks whose program has several ranks: their number and binding."""

from __future__ import annotations

from collections.abc import Sequence

from reframe.core.builtins import run_after
from reframe.core.exceptions import PipelineError

from fabricheck.node.placement import Placement
from fabricheck.rfm import launchers
from fabricheck.rfm.base import MeasuringCheck

#: The launcher option that binds rank i to the i-th of these cores, and to no other.
BINDING = {
    "srun": "--cpu-bind=map_cpu:{}",
    "mpiexec": "-bind-to user:{}",  # MPICH
    "mpirun-openmpi": "--map-by pe-list={}:ordered:hwtcpus",  # Open MPI 5
}


class RanksCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Runs a program of several ranks, by default one on each device.

    placement: the name of a placement of the node model (docs/reference/node-model.md); if
        empty, the launcher chooses.
    """

    placement = ""
    valid_systems = ["+devices +several_devices +ranks"]

    @property
    def placed(self) -> Placement | None:
        """The placement on this partition's node; ``None`` for the launcher's choice.

        Skips the check on a node without such a placement.

        :raises PipelineError: when the partition has no node model.
        """
        if not self.placement:
            return None
        where = f"Partition {self.current_partition.fullname}"
        if self.node is None:
            raise PipelineError(
                f"{where} has no node model, so it has no placement {self.placement}."
            )
        known = self.node.placements()
        # If every core is near every device, no far placement can be measured.
        self.skip_if(
            self.placement not in known,
            f"{where}: its node {self.node.name} has no placement {self.placement}; it has "
            f"{', '.join(known)}.",
        )
        return known[self.placement]

    @property
    def rank_devices(self) -> Sequence[int]:
        """The device of each rank of a node."""
        placed = self.placed
        return placed.devices if placed else range(self.device_count)

    @run_after("setup")  # type: ignore[untyped-decorator]
    def _start_ranks(self) -> None:
        self.num_tasks = len(self.rank_devices) * self.node_count
        self.job.launcher = self.rank_launcher(self.rank_devices, self.node_count)

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of the class, and the ranks' map if there is a placement."""
        placed = self.placed
        if placed is None:
            return self.arguments
        # Both are of all ranks, and alike on each node.
        devices, cores = (
            ",".join(map(str, self.node_count * each)) for each in (placed.devices, placed.cores)
        )
        return (*self.arguments, "--map", devices, "--bind", cores)

    def _keep_to_its_nodes(self) -> None:
        super()._keep_to_its_nodes()
        launcher = self.job.launcher
        if self.placed is not None and not isinstance(launcher, launchers.SmpirunLauncher):
            launcher.options = [*launcher.options, self._binding(self.placed)]

    def _binding(self, placed: Placement) -> str:
        name = self.job.launcher.registered_name
        try:
            return BINDING[name].format(placed.map_cpu)
        except KeyError:
            raise PipelineError(
                f"The launcher {name} of partition {self.current_partition.fullname} has no "
                f"known option to bind ranks to cores; supported are {', '.join(BINDING)}."
            ) from None


class NearRanksCheck(RanksCheck, special=True):  # type: ignore[call-arg]
    """Each rank near its device if the launcher binds; else the launcher's choice.

    By default launchers use the first cores, which may be far from any device. On a host of two
    H200, one of two ranks was slower on cores 0 and 1 than on cores 0 and 16.
    """

    @property
    def placed(self) -> Placement | None:
        """The near placement if the partition has the feature `placements`."""
        features = self.current_partition.features
        self.placement = "right" if "placements" in features else ""
        return super().placed
