"""Checks of several nodes (E17): their nodes, their ranks, and what messages leave a node by.

One rank is beside each NIC of a node. A rate is judged only where every rank's messages left by the
nearest NIC of its device, past the kernel where the fabric requires it, and by its provider:
another network is a setting, and data are right on it too.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable

from fabricheck.core import nodelists
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import enumerated, first_of
from fabricheck.core.text import count
from fabricheck.core.vocabulary import Distance, Unit
from fabricheck.node import Nic, NodeModel, placement
from fabricheck.node.fabric import Fabric, Place, distance, load_fabric
from fabricheck.node.placement import Placement
from fabricheck.results.document import load
from fabricheck.results.metric_records import Reduction
from fabricheck.results.model import Rank, ResultDocument, Series
from fabricheck.rfm import jobs, reframe_internals
from fabricheck.rfm.base import RESULT
from fabricheck.rfm.metrics import (
    WORST_AND_MEDIAN,
    Figure,
    Metric,
    MetricError,
    Population,
    series_of,
    where_measured,
)
from fabricheck.rfm.pairs import one_each
from fabricheck.rfm.ranks import CONVENTION, MpiCheck, NearRanksCheck

#: The file with the places of nodes in the stage folder, for a fabric that lists them.
PLACES = "places.txt"

#: In a pipeline, too, checks of the network run one at a time.
ONE_AT_A_TIME = {"gitlab": {"resource_group": "fabricheck-network-$FABRICHECK_RUNNER_TAG"}}

#: By provider of a fabric the variable, with its value, by which MPI gives each rank the NIC of the
#: NUMA domain that it is bound to. By default Cray MPICH hands out NICs in the order of ranks. Its
#: policy GPU does not fit: ranks choose their devices later, and host buffers have none.
NIC_POLICY = {"cxi": {"MPICH_OFI_NIC_POLICY": "NUMA"}}

#: The part of a rank's bytes that must leave its node by the nearest NIC.
BY_NEAREST = 0.9

#: Single messages that are timed for the time that 99 % of them do not exceed.
SINGLE_MESSAGES = 1000


#: The number of ranks whose messages left their node by something else than required.
UNPROVEN = Metric("unproven", over=(), unit="count")


class SeveralNodes(rfm.RegressionTestPlugin):  # type: ignore[misc]
    """The part of a check that gives it several nodes.

    nodes: their number, set by ``-S nodes=N``; 0 means all nodes of the allocation, and two in a
    job of its own.
    """

    nodes = variable(int, value=2)

    #: Not in a session of all checks: they need nodes that the session may not have.
    only_if_requested = True

    @property
    def node_count(self) -> int:
        """The number of nodes; skips the check where the allocation has fewer."""
        where = f"Partition {self.current_partition.fullname}"
        row = jobs.stepping(self.current_partition)
        there = 0 if row is None else len(row.allocated(os.environ))
        if row is None or (self.is_dry_run() and not there):
            return max(int(self.nodes), 2)
        wanted = int(self.nodes) or max(there, 2)
        self.skip_if(
            there < wanted,
            f"{where}: {self.name} measures {count(wanted, 'node')}, and the allocation has "
            f"{there}.",
        )
        return wanted

    @property
    def fabric(self) -> Fabric:
        """The fabric that the partition names; its file was read with the site."""
        return load_fabric(str(self.extra("fabric")))

    @property
    def places(self) -> str:
        """Where places of NICs come from, as an option of the programs; a list is written."""
        places = self.fabric.places
        lines = [
            f"{node} {switch.group} {switch.name}\n"
            for switch in places.switches
            for node in nodelists.unfolded(switch.nodes)
        ]
        if not lines:
            return places.rule
        (Path(self.stagedir) / PLACES).write_text("".join(lines))
        return PLACES

    @property
    def beside_nics(self) -> Placement | None:
        """The ranks of a node, one beside each NIC; ``None`` without a model of the NICs."""
        node = self.node
        if node is None or not node.nics:
            return None
        return placement.right(node, node.nic_devices, "beside_nics")

    @property
    def node_devices(self) -> Sequence[int]:
        """The device of each rank of a node; one rank without a model of the NICs."""
        placed = self.beside_nics
        return placed.devices if placed else (0,)

    @run_after("setup")  # type: ignore[untyped-decorator]
    def _require_whole_launch(self) -> None:
        self.skip_if(
            reframe_internals.node_of(self) is not None,
            f"{self.name} measures several nodes, and --distribute gives each check one.",
        )

    @run_after("run")  # type: ignore[untyped-decorator]
    def _name_nodes(self) -> None:
        """Let the report name the nodes of a step; ReFrame names the machine that it runs on."""
        row = jobs.stepping(self.current_partition)
        if row is not None:
            reframe_internals.set_nodes(self.job, row.measured_nodes(os.environ, self.node_count))


@dataclass(frozen=True)
class BetweenNodes(Metric):
    """One figure of all ordered pairs of ranks beside the same NIC of different nodes.

    distance: of those of a distance only; every pair must then have one. p99: whether it is of the
    times that 99 % of single messages do not exceed, instead of medians.
    """

    distance: Distance | None = field(default=None, kw_only=True)
    p99: bool = field(default=False, kw_only=True)

    @property
    def of_medians(self) -> bool:
        """Whether it is of the medians of its series."""
        return not self.p99

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure.

        :raises MetricError: as `Metric.figure` does, and when the distance of a pair, or of all
            pairs, is not the required one.
        """
        chosen = series_of(document, self, population, self.unit)
        if self.distance is not None:
            for series in chosen:
                if series.get("distance") is None:
                    raise MetricError(
                        f"Metric {self}: the distance of {where_measured(document, (series,))} is "
                        "unknown, because the place of a NIC in the fabric cannot be read."
                    )
            chosen = tuple(series for series in chosen if series.get("distance") == self.distance)
            if not chosen:
                raise MetricError(f"Metric {self}: no pair of ranks has that distance.")
        return self._of_p99(document, chosen) if self.p99 else self.of_series(chosen)

    def _of_p99(self, document: ResultDocument, chosen: tuple[Series, ...]) -> Figure:
        times = [series.get("p99") for series in chosen]
        if None in times:
            where = where_measured(document, (chosen[times.index(None)],))
            raise MetricError(f"Metric {self}: single messages of {where} were not timed.")
        longest = max(time for time in times if time is not None)
        decisive = tuple(series for series in chosen if series.get("p99") == longest)
        return Figure(self, longest, chosen, decisive)


def unproven(
    ranks: Sequence[Rank], fabric: Fabric, node: NodeModel | None, devices: Sequence[int]
) -> Iterator[str]:
    """Yield a sentence for each rank whose NIC, transport or provider is not the required one.

    Where no NIC that a node used has its name in the model, the NICs are named otherwise there, and
    ranks beside different NICs must use different ones.

    :param node: the node model; without NICs in it, any NIC is accepted.
    :param devices: the device of each rank of a node, as the node numbers them.
    """
    before: dict[str, int] = defaultdict(int)
    known = set() if node is None else {nic.name for nic in node.nics}
    used = _used_nics(ranks)
    #: Of nodes whose NICs have other names than in the model, by node and NIC.
    first: dict[tuple[str, str], tuple[int, Nic]] = {}
    for rank in ranks:
        host = rank["host"]
        number = before[host]
        before[host] += 1
        near = node.nearest_nic(devices[number]) if node is not None and node.nics else None
        device = f" on device {devices[number]}" if near is not None else ""
        who = f"rank {rank['rank']}{device} of node {host}"
        is_renamed = known.isdisjoint(used[host])
        why = _left_by(rank, fabric, None if near is None or is_renamed else near.name)
        network = rank.get("network")
        if why is None and near is not None and is_renamed and network and network["nics"]:
            busiest = network["nics"][0]["name"]
            other, beside = first.setdefault((host, busiest), (rank["rank"], near))
            if beside != near:
                why = (
                    f"left it by {busiest}, as those of rank {other} did, which is nearest to "
                    "another NIC: bind ranks near their devices, and let MPI choose the nearest NIC"
                )
        if why:
            yield f"Messages of {who} {why}."


def _used_nics(ranks: Sequence[Rank]) -> Mapping[str, set[str]]:
    """Return the names of the NICs by which messages left each node."""
    names: dict[str, set[str]] = defaultdict(set)
    for rank in ranks:
        network = rank.get("network")
        if network:
            names[rank["host"]].update(nic["name"] for nic in network["nics"])
    return names


def _left_by(rank: Rank, fabric: Fabric, near: str | None) -> str | None:
    """Return what is wrong with the way of a rank's messages, as the rest of a sentence."""
    used = rank.get("network")
    required = f"{fabric.provider} of fabric {fabric.name}"
    if used is None:
        return "were not sent to another node before the measurement, so nothing proves their way"
    named = enumerated(nic["name"] for nic in used["nics"])
    by = f" ({named})" if named else ""
    if used["transport"] == "within-node":
        return (
            "did not leave it, as the counters of its NICs stood still: MPI takes it for one node"
        )
    if used["transport"] is None:
        return "left it unseen: no counter of its NICs can be read, so nothing proves their way"
    if used["transport"] != fabric.transport:
        kernel = used["transport"] == "kernel"
        how = "by the kernel's network stack" if kernel else "past the kernel"
        return f"left it {how}{by} instead of by the provider {required}: choose that for MPI"
    if used["provider"] != fabric.provider:
        provider = used["provider"]
        driver = f"by the provider {provider}" if provider else "by a provider that cannot be told"
        return f"left it {driver}{by} instead of {required}: choose that for MPI"
    busiest = used["nics"][0]
    if near is not None and (busiest["name"] != near or busiest["part"] < BY_NEAREST):
        shares = [f"{nic['name']} ({100 * nic['part']:.0f} %)" for nic in used["nics"]]
        by_nics = named if len(shares) == 1 else enumerated(shares)
        return (
            f"left it by {by_nics} instead of {near}, the NIC nearest to that device: bind ranks "
            "near their devices, and let MPI choose the nearest NIC"
        )
    return None


class MpiBesideNics(rfm.RegressionTestPlugin):  # type: ignore[misc]
    """The part of a check of several nodes whose ranks send by MPI, one beside each NIC."""

    @property
    def nic_policy(self) -> dict[str, str]:
        """The variable by which MPI gives a rank the nearest NIC, with its value."""
        return NIC_POLICY.get(self.fabric.provider, {}) if self.beside_nics else {}

    @run_after("setup")  # type: ignore[untyped-decorator]
    def _choose_nearest_nics(self) -> None:
        self.env_vars.update(self.nic_policy)

    def unproven_of(self, document: ResultDocument) -> list[str]:
        """Return a sentence for each rank whose messages left by something else than required."""
        ranks = document.get("ranks") or ()
        return list(unproven(ranks, self.fabric, self.node, self.node_devices))

    def wrong_settings(self, document: ResultDocument) -> Sequence[str]:
        """Return the sentences of `unproven_of`, before them one on another policy of NICs."""
        return [*self._other_policy(document), *first_of(self.unproven_of(document))]

    def _other_policy(self, document: ResultDocument) -> Iterator[str]:
        for name, value in self.nic_policy.items():
            set_to = document["environment"].get(name, "not set")
            if set_to != value:
                yield (
                    f"{name} is {set_to} on node {document['host']['hostname']}, but {self.name} "
                    f"sets it to {value}: no wrapper or launcher may change it."
                )


class RanksBesideNics(MpiBesideNics, SeveralNodes):
    """The part of a check whose program this suite starts, one rank beside each NIC."""

    #: Distances that no two of the measured NICs have.
    absent: tuple[Distance, ...] = ()

    placed = SeveralNodes.beside_nics
    rank_devices = SeveralNodes.node_devices

    def distances_in(self, document: ResultDocument) -> Collection[Distance | None]:
        """Return the distances of the NICs that were measured."""
        raise NotImplementedError

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return a metric's value; `UNPROVEN` counts the sentences of `wrong_settings`."""
        if metric == UNPROVEN:
            return Figure(metric, float(len(self.unproven_of(document))), (), ())
        figure: Figure = super().figure(document, metric)
        return figure

    @run_before("sanity")  # type: ignore[untyped-decorator]
    def _leave_out_distances(self) -> None:
        """Leave out the metrics of distances that no two NICs of these nodes have."""
        with contextlib.suppress(FabricheckError):  # the base judges and reports this
            measured = {*self.distances_in(load(Path(self.stagedir) / RESULT))} - {None}
            if not measured:
                return
            self.absent = tuple(
                distance for distance in self.fabric.distances if distance not in measured
            )
            for name in self.perf_variables.keys() - {
                metric.name for metric in self.judged_metrics()
            }:
                del self.perf_variables[name]


class MpiNodesCheck(RanksBesideNics, MpiCheck, special=True):  # type: ignore[call-arg]
    """Messages between the ranks beside the same NIC of every two nodes, by program ``mpi``.

    Each NIC apart, then all NICs of two nodes together, one way and both ways, and latencies.
    """

    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    arguments = (
        *("--pairs", "counterparts", "--together", "nodes"),
        *("--operations", "latency,bandwidth,bandwidth-both"),
        *("--single-messages", str(SINGLE_MESSAGES), "--collectives", "none", "--types", "none"),
    )

    def program_arguments(self) -> Sequence[str]:
        """Return the message size of the partition, and where places of NICs come from."""
        sizes = ("--sizes", str(self.extra("mpi_bytes")))
        return (*super().program_arguments(), *sizes, "--places", self.places)

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the metrics of each distance, those of all NICs together, and `UNPROVEN`."""
        metrics: list[Metric] = []
        for each in self.fabric.distances or (None,):
            if each not in self.absent:
                metrics += self._apart(each)
        return [*metrics, *self._together(), UNPROVEN]

    def _apart(self, distance: Distance | None) -> Iterator[Metric]:
        for operation in ("bandwidth", "bandwidth-both", "latency"):
            for reduce in WORST_AND_MEDIAN:
                yield self._metric(operation, distance, reduce)
        yield self._metric("latency", distance, "worst", p99=True)

    def _metric(
        self, operation: str, distance: Distance | None, reduce: Reduction, *, p99: bool = False
    ) -> Metric:
        where = {"experiment": "E17", "operation": operation, "role": "single", **CONVENTION}
        words = [operation, "p99" if p99 else "", distance or "", reduce]
        unit: Unit = "us" if operation == "latency" else "GB/s"
        name = "_".join(filter(None, words)).replace("-", "_")
        among = one_each(self._counterparts(operation))
        return BetweenNodes(
            name, where, ("ranks",), reduce, unit, among, distance=distance, p99=p99
        )

    def _counterparts(self, operation: str) -> Sequence[tuple[int, int]]:
        """Return the pairs of ranks of every two nodes; both ways at once are one operation."""
        each, nodes = len(self.rank_devices), range(self.node_count)
        both = operation == "bandwidth-both"
        return [
            (source * each + rank, target * each + rank)
            for source, target in (combinations(nodes, 2) if both else permutations(nodes, 2))
            for rank in range(each)
        ]

    def _together(self) -> Iterator[Metric]:
        each = len(self.rank_devices)
        if each < 2:
            return
        for operation in ("bandwidth", "bandwidth-both"):
            pairs = self._counterparts(operation)
            sets = [pairs[first : first + each] for first in range(0, len(pairs), each)]
            among = one_each([rank for pair in members for rank in pair] for members in sets)
            where = {"experiment": "E17", "operation": operation, "role": "sum", **CONVENTION}
            name = f"{operation.replace('-', '_')}_all_nics_worst"
            yield Metric(name, where, ("ranks",), "worst", among=among)

    def distances_in(self, document: ResultDocument) -> Collection[Distance | None]:
        """Return the distances of the pairs of ranks."""
        return {
            series.get("distance") for series in document["series"] if series["role"] == "single"
        }


@dataclass(frozen=True)
class NicMedian(Metric):
    """The median rate of the NICs of a distance, each apart, in the rounds of ``fabric``."""

    distance: Distance | None = field(default=None, kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure from the rounds of phase 1.

        :raises MetricError: when there is no rate of that distance.
        """
        rates = rates_by_distance(document)
        chosen = [rates.get(self.distance, [])] if self.distance else rates.values()
        all_rates = [rate for each in chosen for rate in each]
        if not all_rates:
            raise MetricError(f"Metric {self}: there is no rate between NICs of that distance.")
        return Figure(self, statistics.median(all_rates), (), ())


def rates_by_distance(document: ResultDocument) -> dict[Distance | None, list[float]]:
    """Return the rates of NICs apart in phase 1, in GB/s, by the distance of the two NICs."""
    by_distance: dict[Distance | None, list[float]] = {}
    rounds = document.get("rounds")
    if rounds is None:
        return by_distance
    places = [
        [None if nic["place"] is None else Place(**nic["place"]) for nic in node["nics"]]
        for node in rounds["nodes"]
    ]
    for measured_round in rounds["rounds"]:
        if measured_round["phase"] != 1:
            continue
        for (source, target), *ways in zip(
            measured_round["pairs"], measured_round["out"], measured_round["back"], strict=True
        ):
            for rates in ways:
                for number, rate in enumerate(rates):
                    if rate is not None:
                        apart = distance(places[source][number], places[target][number])
                        by_distance.setdefault(apart, []).append(rate)
    return by_distance


class FabricCheck(RanksBesideNics, NearRanksCheck, special=True):  # type: ignore[call-arg]
    """All NICs of all nodes of the allocation, in rounds of pairs of nodes, by ``fabric``."""

    program = "fabric"
    nodes = 0
    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    seconds = 900

    def program_arguments(self) -> Sequence[str]:
        """Return the buffers, and where places of NICs come from."""
        on_devices = "gpu_aware_mpi" in self.current_environ.features
        buffers = ("--buffers", "device" if on_devices else "host")
        return (*super().program_arguments(), *buffers, "--places", self.places)

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the median rate of NICs at each distance, and `UNPROVEN`."""
        distances = [
            distance for distance in self.fabric.distances or (None,) if distance not in self.absent
        ]
        words = [("nic", distance or "", "median") for distance in distances]
        names = ["_".join(filter(None, each)).replace("-", "_") for each in words]
        return [
            *(
                NicMedian(name, distance=distance)
                for name, distance in zip(names, distances, strict=True)
            ),
            UNPROVEN,
        ]

    def distances_in(self, document: ResultDocument) -> Collection[Distance | None]:
        """Return the distances of the rates of phase 1."""
        return rates_by_distance(document).keys()
