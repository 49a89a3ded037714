"""Checks of programs with several ranks: how many, how bound, and the checks of ``mpi``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from pathlib import Path

from reframe.core.builtins import run_after
from reframe.core.exceptions import PipelineError, SanityError

from fabricheck.core.show import listed
from fabricheck.core.vocabulary import COLLECTIVES, ELEMENT_BYTES, EXIT_CODE, REDUCTIONS, Unit
from fabricheck.node import placement
from fabricheck.node.placement import Placement
from fabricheck.results.metric_records import Reduction
from fabricheck.results.model import ResultDocument
from fabricheck.rfm import launchers, relative
from fabricheck.rfm.base import RESULT, MeasuringCheck
from fabricheck.rfm.metrics import WORST_AND_MEDIAN, Figure, Metric, MetricError, Population
from fabricheck.rfm.pairs import one_each, ordered_pairs
from fabricheck.schedulers import table


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
        known = placement.placements(self.node)
        # If every core is near every device, no far placement can be measured.
        self.skip_if(
            self.placement not in known,
            f"{where}: its node {self.node.name} has no placement {self.placement}; it has "
            f"{listed(known)}.",
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
        binding = table.binding()
        if name not in binding:
            raise PipelineError(
                f"The launcher {name} of partition {self.current_partition.fullname} has no "
                f"known option to bind ranks to cores; supported are {listed(binding)}."
            )
        return binding[name].to(placed.cores)


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


#: Fields common to all messages; another convention changes values by a factor of two.
CONVENTION = {"engine": "mpi", "bytes_counted": "once"}

#: Bytes of a message of collectives, the program's default.
COLLECTIVE_BYTES = 1 << 20


def cases(operations: Sequence[str], counts: Sequence[int]) -> Sequence[tuple[str, str, int]]:
    """Return the cases of operations to verify: name, type and bytes of each message."""
    verified = []
    for operation in operations:
        for datatype, size in ELEMENT_BYTES.items():
            if datatype == "byte" and operation in REDUCTIONS:
                continue
            verified += [(operation, datatype, count * size) for count in counts]
    return verified


class Unverified(Metric):
    """The number of operations, types and sizes that were not verified on all ranks."""

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Count the missing cases.

        :param population: ``cases`` as returned by `cases`, and ``ranks``, all of the launch.
        :raises MetricError: when nothing was verified.
        """
        verified = {
            (series["operation"], series.get("datatype"), series["bytes"])
            for series in document["series"]
            if series["experiment"] == "E12"
            and series.get("ranks") == list(population["ranks"])
            and series["verification"]["bytes_checked"]
        }
        if not verified:
            node = document["host"]["hostname"]
            raise MetricError(f"Metric {self}: nothing was verified on all ranks of node {node}.")
        lacking = [case for case in population["cases"] if case not in verified]
        return Figure(self, float(len(lacking)), (), ())


class MpiCheck(NearRanksCheck, special=True):  # type: ignore[call-arg]
    """Runs ``mpi`` on device buffers where MPI accepts them, else on host buffers."""

    program = "mpi"

    @property
    def buffers(self) -> str:
        """The memory of the messages: ``device`` or ``host``."""
        return "device" if "gpu_aware_mpi" in self.current_environ.features else "host"

    def devices_of(self, ranks: int) -> Sequence[int]:
        """Return the devices of the first ranks; none for host buffers."""
        return self.rank_devices[:ranks] if self.buffers == "device" else ()

    @property
    def without(self) -> tuple[str, ...]:
        """The collectives that this MPI is known not to support on these buffers."""
        return tuple(self.current_environ.extras.get("mpi_without", ()))

    @property
    def collectives(self) -> Sequence[str]:
        """The collectives to run."""
        return [name for name in COLLECTIVES if name not in self.without]

    def program_arguments(self) -> Sequence[str]:
        """Return the buffers, the noise limit, and the collectives that MPI does not support."""
        limit = ("--noise-limit", str(self.extra("noise_limit")))
        left_out = ("--without", ",".join(self.without)) if self.without else ()
        of_program = super().program_arguments()
        return ("--buffers", self.buffers, *of_program, *left_out, *limit)

    def check_sanity(self) -> None:
        """Report operations that MPI did not finish before reporting how the launch ended.

        :raises SanityError: as the base does.
        """
        try:
            super().check_sanity()
        except SanityError as error:
            # An MPI without the setting to accept these buffers must get the setting, not be
            # skipped.
            missing = self._not_reached() if self.job.exitcode != EXIT_CODE["setting"] else ()
            raise type(error)("\n".join([str(error), *missing])) from None

    def _not_reached(self) -> Iterator[str]:
        skipped: list[dict[str, str]] = []
        for name in (RESULT, f"{RESULT}.partial"):  # a crash may leave either
            with contextlib.suppress(OSError, ValueError):
                document = json.loads((Path(self.stagedir) / name).read_text())
                skipped = skipped or document.get("skipped") or []
        names = [skip["operation"] for skip in skipped if skip["operation"] not in self.without]
        if names:
            yield (
                f"MPI did not finish {listed(names)} on {self.buffers} buffers. If it does "
                "not support them, state them as mpi_without in the extras of environment "
                f"{self.current_environ.name}: the rest is then tested."
            )


class MpiPairsCheck(MpiCheck, special=True):  # type: ignore[call-arg]
    """All ordered pairs, alone and in simultaneous rounds of disjoint pairs.

    operations: the measured operations, with the unit of each.
    """

    operations: Mapping[str, Unit] = {"bandwidth": "GB/s", "latency": "us"}

    def program_arguments(self) -> Sequence[str]:
        """Return the pairs and the message size of the partition."""
        only = ("--collectives", "none", "--types", "none")
        measured = ("--operations", ",".join(self.operations))
        sizes = ("--sizes", str(self.extra("mpi_bytes")))
        return (*super().program_arguments(), *measured, *only, *sizes)

    def groups(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return ordered pairs of ranks by the link class of their devices; one group without
        classes.
        """
        if self.node is None or self.buffers == "host":
            return {"": list(permutations(range(len(self.rank_devices)), 2))}
        return ordered_pairs(self.node)

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the worst and the median of each group, alone and with simultaneous pairs.

        For simultaneous pairs also the worst relative to the same pair alone.
        """
        metrics = [
            self._metric(operation, role, name, pairs, reduce)
            for operation in self.operations
            for role in self._roles(operation)
            for name, pairs in self.groups().items()
            for reduce in WORST_AND_MEDIAN
        ]
        return [*metrics, *self._beside_alone()]

    def _beside_alone(self) -> Iterator[Metric]:
        for operation in self.operations:
            if self.node is None or "share" not in self._roles(operation):
                continue
            for name, pairs in self.groups().items():
                at_once, alone = (
                    self._metric(operation, role, name, pairs, "worst")
                    for role in ("share", "single")
                )
                yield relative.of_single(at_once, alone, node=self.node)

    def _roles(self, operation: str) -> Sequence[str]:
        """Return the roles: latencies only alone; simultaneous pairs need four ranks."""
        together = operation != "latency" and len(self.rank_devices) > 3
        return ("single", "share") if together else ("single",)

    def _metric(
        self,
        operation: str,
        role: str,
        group: str,
        pairs: Sequence[tuple[int, int]],
        reduce: Reduction,
    ) -> Metric:
        words = [operation, "together" if role == "share" else "", group, reduce]
        where = {"experiment": "E9", "operation": operation, "role": role, **CONVENTION}
        return Metric(
            "_".join(filter(None, words)),
            where,
            ("ranks",),
            reduce,
            self.operations[operation],
            one_each(pairs),
            independent=role == "single",
            alike=role == "single" and bool(group),
        )


class MpiOwnDeviceCheck(MpiCheck, special=True):  # type: ignore[call-arg]
    """Two ranks on each device, near it, which send to each other while the other ranks wait."""

    valid_systems = ["+devices +several_devices +peers +ranks +placements"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    # OSU's window: with fewer messages the acknowledgement of each shows (docs/evidence/h200.md).
    arguments = ("--together", "none", "--collectives", "none", "--types", "none", "--window", "64")

    @property
    def placed(self) -> Placement:
        """Two ranks near each device; skips if a device has only one core to itself."""
        node = self.required_node
        few = placement.cores_per_device(node) < 2
        self.skip_if(few, f"On {node.name} a device has one core to itself; two ranks need two.")
        devices = tuple(device.index for device in node.devices for _ in range(2))
        return placement.right(node, devices, "two_on_each")

    def program_arguments(self) -> Sequence[str]:
        """Return the pairs of ranks of each device, and the message size of the partition."""
        ranks = range(0, len(self.rank_devices), 2)
        pairs = ",".join(f"{rank}-{rank + 1}" for rank in ranks)
        what = ("--pairs", pairs, "--operations", "bandwidth")
        return (*super().program_arguments(), *what, "--sizes", str(self.extra("mpi_bytes")))

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the worst and the median of the devices."""
        where = {"experiment": "E9", "operation": "bandwidth", "role": "single", **CONVENTION}
        among = one_each((device,) for device in range(self.device_count))
        return [
            Metric(f"bandwidth_{how}", where, ("device_set",), how, among=among, independent=True)
            for how in WORST_AND_MEDIAN
        ]


class MpiCollectivesCheck(MpiCheck, special=True):  # type: ignore[call-arg]
    """The collectives on the first 2 ranks to all; one metric for each and number of ranks."""

    arguments = ("--pairs", "none", "--together", "none", "--types", "none")

    def sizes_measured(self) -> str:
        """Return the size of messages, which no option states, as `Check.sizes_measured` does."""
        return str(COLLECTIVE_BYTES)

    def expected_metrics(self) -> Sequence[Metric]:
        """Return one metric for each collective and number of ranks."""
        return [
            Metric(
                f"{name}_{count}",
                {"experiment": "E10", "operation": name, "ranks": list(range(count)), **CONVENTION},
                (),
                unit="us",
                rule=self.collective_rule(name, self.devices_of(count), COLLECTIVE_BYTES),
            )
            for name in self.collectives
            for count in range(2, len(self.rank_devices) + 1)
        ]


class BestFirstCheck(MpiCollectivesCheck, special=True):  # type: ignore[call-arg]
    """Ranks on devices in an order whose first 2, 3 ... are the best by the node model."""

    valid_systems = ["+devices +several_devices +peers +ranks +placements"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]

    @property
    def placed(self) -> Placement:
        """Place each rank near its device; skips where no order has the best first, or the usual
        one does.
        """
        node = self.required_node
        order = best_first(node.growing_subsets)
        self.skip_if(
            order in ((), tuple(range(len(order)))),
            f"On {node.name} the best sets are not nested, or consist of the first devices.",
        )
        return placement.right(node, order, "best_first")


def best_first(sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the device order whose first k devices are each of the sets; empty if there is none.

    :param sets: of 2, 3 ... all devices.
    """
    order = list(sets[0]) if sets else []
    for before, after in pairwise(sets):
        added = [device for device in after if device not in before]
        if len(added) != 1:
            return ()
        order += added
    return tuple(order)
