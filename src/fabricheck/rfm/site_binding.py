"""The check of a site's own way to give each rank one device and the cores near it (E15).

The other checks show every rank all devices, and choose by ``--map``. Here the launcher chooses, by
the options that the site recommends to its users, and each rank sees what it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reframe.core.exceptions import PipelineError

from fabricheck.node.cores import format_cores
from fabricheck.node.placement import cores_per_device, in_order_of_cores
from fabricheck.results.document import load
from fabricheck.results.launches import cores_text
from fabricheck.results.model import Rank, ResultDocument
from fabricheck.rfm.base import MOST_SENTENCES, RESULT
from fabricheck.rfm.metrics import Figure, Metric, MetricError, Population
from fabricheck.rfm.ranks import RanksCheck

if TYPE_CHECKING:
    from fabricheck.node import NodeModel
    from fabricheck.rfm.asked import Asked


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


@dataclass(frozen=True)
class _Seen:
    """A device of a document: what to call it, and its number in the node model, if known."""

    name: str
    number: int | None


def misbound(document: ResultDocument, node: NodeModel) -> Iterator[str]:
    """Yield one sentence for each rank that has not one device of its own and cores near it.

    The document numbers devices in the order in which ranks saw them. Their numbers in the node
    model are those of HIP and CUDA: ascending PCI addresses, so all of them have to be seen; an
    address that the model states decides by itself.
    """
    ranks = document.get("ranks") or []
    host = document["host"]["hostname"]
    wanted = len(node.devices)
    if len(ranks) != wanted:
        yield f"Node {host} has {len(ranks)} rank(s), and {wanted} were started."
    hosts = sorted({rank["host"] for rank in ranks})
    if len(hosts) > 1:
        yield f"The ranks are on several nodes: {', '.join(hosts)}."
    yield from _unknown_devices(document, node)
    seen = _devices(document, node)
    for rank in ranks:
        earlier = [one for one in ranks if one["rank"] < rank["rank"]]
        yield from _of_its_device(rank, earlier, seen)
        yield from _of_its_cores(rank, earlier, seen, node)


def _unknown_devices(document: ResultDocument, node: NodeModel) -> Iterator[str]:
    found, wanted = len(document["devices"]), len(node.devices)
    if found != wanted:
        yield (
            f"The ranks see {found} different device(s) together, and node model {node.name} has "
            f"{wanted}."
        )
    for device in document["devices"]:
        if not device["pci_address"]:
            yield f"Device {device['index']} tells no PCI address, so nobody knows where it is."


def _devices(document: ResultDocument, node: NodeModel) -> Mapping[int, _Seen]:
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
        seen[device["index"]] = _Seen(f"{named} ({address or 'no PCI address'})", number)
    return seen


def _of_its_device(rank: Rank, earlier: Sequence[Rank], seen: Mapping[int, _Seen]) -> Iterator[str]:
    visible = rank["visible_devices"]
    if len(visible) != 1:
        yield f"Rank {rank['rank']} sees {len(visible)} devices, and one of its own was asked for."
    for device in visible:
        others = [one["rank"] for one in earlier if device in one["visible_devices"]]
        if others and len(visible) == 1:
            yield f"Rank {rank['rank']} sees {seen[device].name}, as rank {others[0]} does."


def _of_its_cores(
    rank: Rank, earlier: Sequence[Rank], seen: Mapping[int, _Seen], node: NodeModel
) -> Iterator[str]:
    cores = set(rank["cores"])
    if not cores:
        yield f"Rank {rank['rank']} may use no core."
        return
    kept = cores & {core for domain in node.domains for core in domain.reserved}
    if kept:
        yield (
            f"Rank {rank['rank']} may use {cores_text(sorted(kept))}, kept for the system on "
            f"{node.name}."
        )
    shared = [one["rank"] for one in earlier if set(one["cores"]) & cores]
    if shared:
        yield f"Rank {rank['rank']} shares cores with rank {shared[0]}."
    if len(rank["visible_devices"]) != 1:
        return
    its = seen[rank["visible_devices"][0]]
    if its.number is None:
        return
    near = node.device(its.number).near_cores
    if cores - kept - set(near):
        yield (
            f"Rank {rank['rank']} may use cores {format_cores(cores)} and sees {its.name}, whose "
            f"cores are {format_cores(near)}."
        )


class Misbound(Metric):
    """The number of sentences about ranks without a device of their own and cores near it."""

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Count them.

        :param population: ``node`` is the node model.
        :raises MetricError: when the document tells of no ranks.
        """
        if not document.get("ranks"):
            host = document["host"]["hostname"]
            raise MetricError(f"Metric {self}: the result of node {host} tells of no ranks.")
        (node,) = population["node"]
        return Figure(self, float(len(list(misbound(document, node)))), (), ())


class SiteAffinityCheck(RanksCheck, special=True):  # type: ignore[call-arg]
    """One rank per device, bound by the site's own options; names those that sit elsewhere."""

    program = "affinity"
    metrics = (Misbound("misbound", over=(), unit="count"),)
    runs_first = True

    def population(self) -> dict[str, Sequence[NodeModel]]:
        """Return what the metric compares with."""
        return {"node": [self.required_node]}

    def _keep_to_one_node(self) -> None:
        super()._keep_to_one_node()
        try:
            bound = options(self.extra("site_binding"), self.required_node)
        except (KeyError, ValueError) as error:
            raise PipelineError(
                f"Partition {self.current_partition.fullname}: site_binding has {error} in "
                "braces, where {devices} and {cpus} are known."
            ) from None
        self.job.launcher.options = [*self.job.launcher.options, *bound]

    def _what_was_asked(self) -> Asked:
        # How many devices the ranks see together is what the metric judges, with their ranks.
        asked = super()._what_was_asked()
        document = load(Path(self.stagedir) / RESULT)
        return replace(asked, architectures=[asked.architectures[0] for _ in document["devices"]])

    def _missed(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        found = list(misbound(document, self.required_node))
        more = len(found) - MOST_SENTENCES
        return [*found[:MOST_SENTENCES], *([f"And {more} more."] if more > 0 else [])]
