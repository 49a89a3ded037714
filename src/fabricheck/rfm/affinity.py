"""Checks of rank binding (E15) against the requested binding; no time is measured.

The check ``affinity`` shows every rank all devices, as all other checks do, and binds it by
``--map``. The check of a site's own binding lets the launcher choose, with the options that the
site recommends to its users: each rank sees one device and has the cores near it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reframe.core.builtins import run_before
from reframe.core.exceptions import PipelineError

from fabricheck.node.cores import format_cores
from fabricheck.node.placement import cores_per_device, domain_of_core, in_order_of_cores
from fabricheck.results.document import load
from fabricheck.results.model import Rank, ResultDocument, describe_ranks
from fabricheck.rfm.base import RESULT
from fabricheck.rfm.findings import Findings
from fabricheck.rfm.metrics import Metric
from fabricheck.rfm.ranks import NearRanksCheck, RanksCheck

if TYPE_CHECKING:
    from fabricheck.node import NodeModel
    from fabricheck.node.placement import Placement
    from fabricheck.rfm.run_match import Requested


def _require_ranks(document: ResultDocument) -> None:
    if not document.get("ranks"):
        raise LookupError(f"the result of node {document['host']['hostname']} has no ranks.")


def _launched(document: ResultDocument, started: int) -> Iterator[str]:
    """Yield the faults of all ranks of a launch."""
    ranks = document.get("ranks") or []
    if len(ranks) != started:
        node = document["host"]["hostname"]
        yield f"Node {node} has {len(ranks)} rank(s); {started} were started."
    hosts = sorted({rank["host"] for rank in ranks})
    if len(hosts) > 1:
        yield f"The ranks are on several nodes: {', '.join(hosts)}."


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
        one["rank"] for one in ranks if one["device"] == device and one["rank"] < rank["rank"]
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
        one["rank"]
        for one in ranks
        if one["rank"] < rank["rank"] and set(one["cores"]) & set(cores)
    ]
    if taken:
        yield f"Rank {rank['rank']} shares cores {format_cores(cores)} with rank {taken[0]}."
    domain = domain_of_core(node, core) if node else None
    for name, found in (("cores", rank["numa_domain"]), ("memory", rank["memory_domain"])):
        if domain is not None and found != domain:
            yield (
                f"Rank {rank['rank']} has its {name} in NUMA domain {found}, but core {core} is "
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
        earlier = [one for one in ranks if one["rank"] < rank["rank"]]
        yield from _of_its_device(rank, earlier, seen)
        yield from _of_its_cores(rank, earlier, seen, node)


def _unknown_devices(document: ResultDocument, node: NodeModel) -> Iterator[str]:
    found, wanted = len(document["devices"]), len(node.devices)
    if found != wanted:
        yield (
            f"The ranks together see {found} different device(s); node model {node.name} has "
            f"{wanted}."
        )
    for device in document["devices"]:
        if not device["pci_address"]:
            yield f"Device {device['index']} reports no PCI address, so its place is unknown."


def _devices(document: ResultDocument, node: NodeModel) -> Mapping[int, tuple[str, int | None]]:
    """Return the devices of a document: the name in sentences, and the model's number if known."""
    stated = {one.pci_address: one.index for one in node.devices if one.pci_address}
    addresses = sorted(one["pci_address"] for one in document["devices"] if one["pci_address"])
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
        others = [one["rank"] for one in earlier if device in one["visible_devices"]]
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
    kept = cores & {core for domain in node.domains for core in domain.reserved}
    if kept:
        yield (
            f"Rank {rank['rank']} may use cores {format_cores(kept)}, reserved for the system on "
            f"{node.name}."
        )
    shared = [one["rank"] for one in earlier if set(one["cores"]) & cores]
    if shared:
        yield f"Rank {rank['rank']} shares cores with rank {shared[0]}."
    if len(rank["visible_devices"]) != 1:
        return
    name, number = seen[rank["visible_devices"][0]]
    if number is None:
        return
    near = node.device(number).near_cores
    if cores - kept - set(near):
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
        requested = super().requested()
        devices = load(Path(self.stagedir) / RESULT)["devices"]
        return replace(requested, architectures=[requested.architectures[0] for _ in devices])
