"""Checks that compare with what a node should be: the number of findings is their metric.

They are those of its topology (E13), of its NICs (E16), of which one also runs a vendor's loopback
on each NIC, and of the binding of ranks (E15). Binding is checked, not timed. The check
``affinity`` shows every rank all devices, as all other checks do, and binds it by ``--map``. The
check of a site's own binding lets the launcher choose, with the options that the site recommends to
its users: each rank sees one device and has the cores near it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reframe.core import runtime
from reframe.core.builtins import run_before
from reframe.core.exceptions import PipelineError

from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import first_of, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NOT_FOUND
from fabricheck.node.cores import format_cores
from fabricheck.node.placement import cores_per_device, domain_of_core, in_order_of_cores
from fabricheck.results.document import load
from fabricheck.results.model import Rank, ResultDocument, describe_ranks
from fabricheck.rfm import jobs
from fabricheck.rfm.base import FABRICHECK, RESULT, MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, MetricError
from fabricheck.rfm.ranks import NearRanksCheck, RanksCheck
from fabricheck.tools.topology import inventory

if TYPE_CHECKING:
    from fabricheck.node import NodeModel
    from fabricheck.node.placement import Placement
    from fabricheck.rfm.acceptance import Requested


class Findings:
    """The part of a check that counts and describes findings."""

    stagedir: Any

    def findings(self, document: ResultDocument) -> Iterable[str]:
        """Return a sentence for each finding.

        :raises LookupError: with the reason, when the document lacks the data to examine.
        """
        raise NotImplementedError

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return the number of findings.

        :raises MetricError: when there is nothing to examine.
        """
        try:
            return Figure(metric, float(len(list(self.findings(document)))), (), ())
        except LookupError as error:
            raise MetricError(f"Metric {metric}: {error.args[0]}") from None

    def _failures(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        return first_of(list(self.findings(document)))


class _ByCommand(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Compares a node with its node model by ``fabricheck GROUP record``."""

    command_group: str

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        model = str(self.extra("node"))
        part = ("--devices", str(self.device_count)) if self.required_node.part_of else ()
        return (self.command_group, "record", model, *part, "--runtime", self.runtime)

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself."""
        return FABRICHECK

    def requested(self) -> Requested:
        """Return the request with any devices: what is found is compared with the model."""
        return replace(super().requested(), architectures=None)


class _Differences(Findings):
    """Counts the differences between a node and its model."""

    required_node: Any
    metrics: Sequence[Metric] = (Metric("differences", over=(), unit="count"),)

    def findings(self, document: ResultDocument) -> Sequence[str]:
        """Return the differences between the node and its model."""
        differences = document.get("differences")
        if differences is None:
            node = document["host"]["hostname"]
            raise LookupError(f"node {node} was not compared with a node model.")
        return [difference["sentence"] for difference in differences]

    def _failures(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        return [
            f"Node {document['host']['hostname']} differs from its node model "
            f"{self.required_node.name} (differences: {len(self.findings(document))}).",
            *super()._failures(),
        ]


class TopologyCheck(_Differences, _ByCommand, special=True):  # type: ignore[call-arg]
    """Reports how a node's drivers differ from the partition's model, and from earlier sessions."""

    program = "topology"
    command_group = "node"

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the setting that the site makes a note."""
        noted = self.current_partition.extras.get("numa_balancing") == "note"
        results = Path(runtime.runtime().output_prefix).parents[1]
        return (
            *super().program_arguments(),
            *("--programs", str(self.programs_folder), "--results", str(results)),
            *(["--note-numa-balancing"] if noted else []),
        )

    def started_programs(self) -> Sequence[Path]:
        """Return also the program that asks the drivers."""
        return (*super().started_programs(), self.programs_folder / inventory.PROGRAM)

    def findings(self, document: ResultDocument) -> Sequence[str]:
        """Return the differences, each with the name of the node."""
        node = document["host"]["hostname"]
        return [f"Node {node}: {sentence}" for sentence in _Differences.findings(self, document)]


class _OfNics(_ByCommand, special=True):  # type: ignore[call-arg]
    """Reads a node's NICs from its kernel."""

    program = "nics"
    command_group = "network"

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the partition's fabric if it names one."""
        fabric = self.current_partition.extras.get("fabric")
        return (*super().program_arguments(), *(("--fabric", str(fabric)) if fabric else ()))


class NicCheck(_Differences, _OfNics, special=True):  # type: ignore[call-arg]
    """Reports how a node's NICs differ from the partition's node model and fabric."""


class NicLoopbackCheck(_OfNics, special=True):  # type: ignore[call-arg]
    """Runs a vendor's loopback on each NIC of the node model; its worst value is the metric.

    Skipped on a node without the tool, unless the environment states one.

    The tools compare no data, so no series is made of their values. Differences from the model are
    those of the inventory, and are not judged again.
    """

    metrics = (Metric("loopback_worst", over=(), unit="GB/s"),)
    #: Sites have it inside an allocation only: a session from a login node has not lost it.
    depends_on_place = True
    seconds = 300

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the stated tool or that of the NICs."""
        # Here and below: listing the checks takes as long as what they import.
        from fabricheck.tools.nic_loopback import loopback_of

        tool = self.current_environ.extras.get("loopback") or loopback_of(self._provider)
        self.skip_if(
            tool is None,
            f"Partition {self.current_partition.fullname} names no fabric with a known loopback.",
        )
        return (*super().program_arguments(), "--loopback", str(tool))

    @property
    def _provider(self) -> str | None:
        from fabricheck.node.fabric import load_fabric

        fabric = self.current_partition.extras.get("fabric")
        return load_fabric(str(fabric)).provider if fabric else None

    def _keep_to_its_nodes(self) -> None:
        super()._keep_to_its_nodes()
        launcher = self.job.launcher
        row = jobs.starting(launcher)
        if self._provider == "cxi" and row is not None:
            launcher.options = [*launcher.options, *row.cxi_service]

    @run_before("sanity")  # type: ignore[untyped-decorator]
    def _skip_without_tool(self) -> None:
        if self.current_environ.extras.get("loopback"):
            return
        with contextlib.suppress(FabricheckError):  # the base judges and reports this
            outcome = load(Path(self.stagedir) / RESULT)["outcome"]
            self.skip_if(outcome["exit_code"] == EXIT_NOT_FOUND, outcome["message"])

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return the worst value, and the NIC that has it.

        :raises MetricError: when a NIC of the model has none, or one beyond its peak.
        """
        from fabricheck.node.fabric import load_fabric
        from fabricheck.tools.nic_matching import match

        node, host = self.required_node, document["host"]["hostname"]
        fabric = document["options"].get("fabric")
        matching = match(
            node, document.get("nics") or (), None if fabric is None else load_fabric(str(fabric))
        )
        for expected in node.nics:
            if expected not in [pair.expected for pair in matching.pairs]:
                raise MetricError(f"Metric {metric}: {host}:{expected.name} has no value.")
        values: dict[str, float] = {}
        for pair in matching.pairs:
            name, peak = pair.nic["name"], pair.expected.peak_gbs
            value = pair.nic.get("loopback_gbs")
            if value is None:
                raise MetricError(f"Metric {metric}: {host}:{name} has no value.")
            if value > peak:
                raise MetricError(
                    f"Metric {metric}: {host}:{name} reported {value:g} GB/s, above the physical "
                    f"bound of {peak:g} GB/s of the NIC ({node.name})."
                )
            values[name] = value
        worst = min(values, key=lambda name: values[name])
        value = values[worst]
        return Figure(metric, value, (), (), f"{value:g} GB/s at {worst}")


def _require_ranks(document: ResultDocument) -> None:
    if not document.get("ranks"):
        raise LookupError(f"the result of node {document['host']['hostname']} has no ranks.")


def _launched(document: ResultDocument, started: int) -> Iterator[str]:
    """Yield the faults of all ranks of a launch."""
    ranks = document.get("ranks") or []
    if len(ranks) != started:
        node = document["host"]["hostname"]
        yield f"Node {node} has {count(len(ranks), 'rank')}; {started} were started."
    hosts = sorted({rank["host"] for rank in ranks})
    if len(hosts) > 1:
        yield f"The ranks are on several nodes: {listed(hosts)}."


def misplaced(
    document: ResultDocument,
    started: int,
    placed: Placement | None = None,
    node: NodeModel | None = None,
) -> Iterator[str]:
    """Yield one sentence for each rank with another device or core than requested.

    :param started: the number of ranks.
    :param placed: their devices and cores; ``None`` for the launcher's choice.
    :param node: the node model, which gives the NUMA domain of each core.
    """
    yield from _launched(document, started)
    ranks = document.get("ranks") or []
    for rank in ranks:
        requested = placed if rank["rank"] < started else None
        shared = placed is not None and len(set(placed.devices)) < started
        yield from _on_its_device(rank, ranks, requested, shared)
        yield from _on_its_cores(rank, ranks, requested, node)


def _on_its_device(
    rank: Rank, ranks: Sequence[Rank], placed: Placement | None, shared: bool
) -> Iterator[str]:
    device = rank["device"]
    if device is None:
        yield f"Rank {rank['rank']} has no device."
        return
    others = [
        other["rank"]
        for other in ranks
        if other["device"] == device and other["rank"] < rank["rank"]
    ]
    if others and not shared:
        yield f"Rank {rank['rank']} has device {device}, which rank {others[0]} also has."
    if placed is not None:
        requested = placed.devices[rank["rank"]]
        if device != requested:
            yield f"Rank {rank['rank']} has device {device}; device {requested} was requested."


def _on_its_cores(
    rank: Rank, ranks: Sequence[Rank], placed: Placement | None, node: NodeModel | None
) -> Iterator[str]:
    cores = rank["cores"]
    if not cores:
        yield f"Rank {rank['rank']} may use no core."
        return
    if placed is None:
        return
    core = placed.cores[rank["rank"]]
    if cores != [core]:
        yield f"Rank {rank['rank']} may use cores {format_cores(cores)}; core {core} was requested."
    taken = [
        other["rank"]
        for other in ranks
        if other["rank"] < rank["rank"] and set(other["cores"]) & set(cores)
    ]
    if taken:
        yield f"Rank {rank['rank']} shares cores {format_cores(cores)} with rank {taken[0]}."
    domain = domain_of_core(node, core) if node else None
    for name, seen in (("cores", rank["numa_domain"]), ("memory", rank["memory_domain"])):
        if domain is not None and seen != domain:
            yield (
                f"Rank {rank['rank']} has its {name} in NUMA domain {seen}, but core {core} is "
                f"in domain {domain}."
            )


def options(template: Sequence[str], node: NodeModel) -> list[str]:
    """Return the launcher's options of a site.

    :param template: the options, with ``{devices}`` for the devices in the ascending order of the
        cores near them, and ``{cpus}`` for the cores of each.
    :raises KeyError: for another name in braces.
    """
    known = {
        "devices": ",".join(map(str, in_order_of_cores(node))),
        "cpus": str(cores_per_device(node)),
    }
    return [option.format_map(known) for option in template]


def misbound(document: ResultDocument, node: NodeModel) -> Iterator[str]:
    """Yield one sentence for each rank without a device of its own and cores near it.

    The document numbers devices in the order in which ranks saw them. Where the node model states
    no addresses, its numbers count ascending PCI addresses, which HIP need not do, and all
    devices must be seen.
    """
    yield from _launched(document, len(node.devices))
    yield from _unknown_devices(document, node)
    seen, ranks = _devices(document, node), document.get("ranks") or []
    for rank in ranks:
        earlier = [other for other in ranks if other["rank"] < rank["rank"]]
        yield from _of_its_device(rank, earlier, seen)
        yield from _of_its_cores(rank, earlier, seen, node)


def _unknown_devices(document: ResultDocument, node: NodeModel) -> Iterator[str]:
    seen, wanted = len(document["devices"]), len(node.devices)
    if seen != wanted:
        yield (
            f"The ranks together see {count(seen, 'different device')}; node model {node.name} "
            f"has {wanted}."
        )
    for device in document["devices"]:
        if not device["pci_address"]:
            yield f"Device {device['index']} reports no PCI address, so its place is unknown."


def _devices(document: ResultDocument, node: NodeModel) -> Mapping[int, tuple[str, int | None]]:
    """Return the devices of a document: the name in sentences, and the model's number if known."""
    stated = {device.pci_address: device.index for device in node.devices if device.pci_address}
    addresses = sorted(
        device["pci_address"] for device in document["devices"] if device["pci_address"]
    )
    whole = len(set(addresses)) == len(node.devices)
    seen = {}
    for device in document["devices"]:
        address = device["pci_address"]
        number = stated.get(address) if address else None
        if number is None and address and whole:
            number = addresses.index(address)
        named = f"device {number}" if number is not None else "a device"
        seen[device["index"]] = (f"{named} ({address or 'no PCI address'})", number)
    return seen


def _of_its_device(
    rank: Rank, earlier: Sequence[Rank], seen: Mapping[int, tuple[str, int | None]]
) -> Iterator[str]:
    visible = rank["visible_devices"]
    if len(visible) != 1:
        yield f"Rank {rank['rank']} sees {len(visible)} devices; one of its own is required."
    for device in visible:
        others = [other["rank"] for other in earlier if device in other["visible_devices"]]
        if others and len(visible) == 1:
            yield f"Rank {rank['rank']} sees {seen[device][0]}, which rank {others[0]} also sees."


def _of_its_cores(
    rank: Rank,
    earlier: Sequence[Rank],
    seen: Mapping[int, tuple[str, int | None]],
    node: NodeModel,
) -> Iterator[str]:
    cores = set(rank["cores"])
    if not cores:
        yield f"Rank {rank['rank']} may use no core."
        return
    reserved = cores & {core for domain in node.domains for core in domain.reserved}
    if reserved:
        yield (
            f"Rank {rank['rank']} may use cores {format_cores(reserved)}, reserved for the system "
            f"on {node.name}."
        )
    shared = [other["rank"] for other in earlier if set(other["cores"]) & cores]
    if shared:
        yield f"Rank {rank['rank']} shares cores with rank {shared[0]}."
    if len(rank["visible_devices"]) != 1:
        return
    name, number = seen[rank["visible_devices"][0]]
    if number is None:
        return
    near = node.device(number).near_cores
    if cores - reserved - set(near):
        yield (
            f"Rank {rank['rank']} may use cores {format_cores(cores)} and sees {name}, whose "
            f"cores are {format_cores(near)}."
        )


class AffinityCheck(Findings, NearRanksCheck, special=True):  # type: ignore[call-arg]
    """Compares each rank's cores and device with the requested ones; runs before all others."""

    program = "affinity"
    metrics = (Metric("misplaced", over=(), unit="count"),)
    runs_first = True

    def findings(self, document: ResultDocument) -> Iterable[str]:
        """Return a sentence for each rank with another device or core than requested."""
        _require_ranks(document)
        return misplaced(document, self.num_tasks, self.placed, self.node)

    @run_before("performance")  # type: ignore[untyped-decorator]
    def _show_map(self) -> None:
        if self.is_dry_run():
            return
        for line in describe_ranks(load(Path(self.stagedir) / RESULT)):
            self.logger.info(f"{self.name}: {line}")


class SiteAffinityCheck(Findings, RanksCheck, special=True):  # type: ignore[call-arg]
    """Compares the binding by the site's own options, one rank per device, with the node model."""

    program = "affinity"
    metrics = (Metric("misbound", over=(), unit="count"),)
    runs_first = True

    def findings(self, document: ResultDocument) -> Iterable[str]:
        """Return a sentence for each rank without a device of its own and cores near it."""
        _require_ranks(document)
        return misbound(document, self.required_node)

    def _keep_to_its_nodes(self) -> None:
        super()._keep_to_its_nodes()
        try:
            bound = options(self.extra("site_binding"), self.required_node)
        except (KeyError, ValueError) as error:
            raise PipelineError(
                f"Partition {self.current_partition.fullname}: site_binding has {error} in "
                "braces; only {devices} and {cpus} are defined."
            ) from None
        self.job.launcher.options = [*self.job.launcher.options, *bound]

    def requested(self) -> Requested:
        """Return the devices that the ranks see together; findings refer to them."""
        devices = load(Path(self.stagedir) / RESULT)["devices"]
        architecture = self.current_partition.devices[0].arch
        return replace(super().requested(), architectures=[architecture for _ in devices])
