"""The resources that each measured transfer uses on a node, and their slack.

A transfer is as fast as its narrowest resource. The *slack* of a resource is the logarithm of how
many times faster the transfer could be if nothing else limited it; it is 0 for the limiting
resource. A resource at the fraction f of its bandwidth makes the transfer slower by min(0, log f +
slack).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from fabricheck.core.grouping import grouped
from fabricheck.judge.diagnosis.ways import HOME, Chosen, Key, Way, chosen_series
from fabricheck.node import LinkClass, NodeModel
from fabricheck.node.platform import End, Resource, ResourceKind, routes
from fabricheck.references.rules import TransferKind
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import (
    device_pair,
    kind_of_series,
    series_key,
    several_at_once,
)

#: A resource is slowed to this fraction of its bandwidth to see which transfers it can limit.
_SLOWED = 0.02

#: A transfer is limited by the narrowest peak on its route if it reaches at least this fraction of
#: it.
_LIMITED = 0.6

#: The kind of resources that are links between devices.
_LINK: ResourceKind = "link {0.number}-{1.number}"

#: The kinds of resources that are copy engines, and those of pageable copies.
_ENGINES: tuple[ResourceKind, ...] = (
    "copy engine of copies {0}-{1}",
    "copy engine of messages {0}-{1}",
    "copy engines of {0}",
)
_PAGEABLE: tuple[ResourceKind, ...] = (
    "pageable copies to {1}",
    "pageable copies from {0}",
    "pageable copies of all devices",
)

#: By resource, how many times a flow uses it.
Flow = Mapping[Resource, int]


@dataclass(frozen=True)
class Transfer:
    """One series: the resources it uses, and its rate by the node model.

    slack: by resource. share: by resource, the part of its time that it takes, where that is not
    all of it. gbs: the rate of one array by the node model, in GB/s; None for a time, and
    where the model gives no rate. alike: the key that similar transfers share. kind: the name of
    its spread in the rules file.
    """

    key: Key
    series: Series
    slack: Mapping[Resource, float]
    gbs: float | None
    alike: Hashable
    kind: TransferKind
    loose: Mapping[Resource, float] = field(default_factory=dict)
    share: Mapping[Resource, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Small:
    """A copy whose start takes a good part of its time.

    start: the latency that it has. start_us: by the node model; None where that does not state it.
    """

    start: Resource
    start_us: float | None

    def total_us(self, series: Series, gbs: float) -> float | None:
        """Return its time by the node model, at a rate of its bytes; None where it is unknown."""
        if self.start_us is None:
            return None
        return self.start_us + series["bytes"] / gbs / 1e3


#: Simultaneous flows, and by series the numbers of those that it consists of.
_AtOnce = tuple[Sequence[Flow], Mapping[Key, Sequence[int]]]


class Routes:
    """The routes of a node model, found from a series' description of its transfer."""

    def __init__(self, node: NodeModel) -> None:
        self.node = node
        content = routes(node)
        self.stated = node.simulation is not None
        self.gbs: dict[Resource, float] = {
            link["name"]: math.inf if link["gbs"] is None else float(link["gbs"])
            for link in content["links"]
        }
        self.each = {link["name"] for link in content["links"] if link["each"]}
        self._kernel = {(route["device"], route["memory"]): route for route in content["kernel"]}
        self._copy = {(route["source"], route["destination"]): route for route in content["copy"]}
        self._message = {
            (route["source"], route["destination"]): route for route in content["messages"]
        }
        self._flows: dict[Way, tuple[Flow, ...]] = {}

    def flows(self, way: Way) -> tuple[Flow, ...]:
        """Return the flows over one way; none if the node has no route for it."""
        if way not in self._flows:
            self._flows[way] = self._new_flows(way)
        return self._flows[way]

    def _new_flows(self, way: Way) -> tuple[Flow, ...]:
        if way.carrier is None or way.source is None or way.destination is None:
            return ()
        ends = self._name(way.source), self._name(way.destination)
        if way.carrier == "migration":
            return ({_of_device("page migration of {0}", way.device): 1},)
        if way.carrier == "kernel":
            return self._by_kernel(way.device, *ends)
        if way.carrier in ("by_engine", "by_kernel"):
            message = self._message.get(ends)
            return (dict(Counter(message[way.carrier])),) if message else ()
        copy = self._copy.get(ends)
        return (dict(Counter(copy.get(way.carrier, copy["links"]))),) if copy else ()

    def agree(self, other: Routes, way: Way) -> bool:
        """Whether a transfer over a way passes the same as by other routes, and starts as soon."""
        flows = self.flows(way)
        return (
            flows == other.flows(way)
            and all(self.gbs[name] == other.gbs[name] for flow in flows for name in flow)
            and self._start_us(way) == other._start_us(way)
        )

    def start_us(self, series: Series, way: Way) -> float | None:
        """Return the latency of a copy by the model; None for other series."""
        of_copy = series["operation"] in ("latency", "h2d-latency", "d2h-latency")
        return self._start_us(way) if of_copy and series["engine"] != "mpi" else None

    def small(self, series: Series, way: Way) -> Small | None:
        """Return what of the time of a small copy is its start; None for other series.

        A model without a simulation has no start: it alone then limits the copy.
        """
        if kind_of_series(series) not in ("small_copy", "small_host_copy"):
            return None
        started = _started(series)
        start_us = self._start_us(way)
        return Small(started, start_us if self.stated else None) if started else None

    def _start_us(self, way: Way) -> float | None:
        if way.source is None or way.destination is None:
            return None
        copy = self._copy.get((self._name(way.source), self._name(way.destination)))
        return float(copy["start_us"]) if copy else None

    def _by_kernel(self, device: int | None, source: str, destination: str) -> tuple[Flow, ...]:
        if device is None:
            return ()
        read, write = (self._kernel.get((device, place)) for place in (source, destination))
        if read is None or write is None:
            return ()
        return (dict(Counter([*read["read"], *write["write"]])),)

    def _name(self, end: End) -> str:
        """Return the name of the end of a way in the platform."""
        if end.what == HOME:
            return f"domain{self.node.devices[int(end.number)].domain}"
        return str(end)

    def rates(self, flows: Sequence[Flow], slowed: Resource | None = None) -> list[float]:
        """Return the rates of simultaneous flows, in GB/s, by max-min fairness.

        :param slowed: a resource that has only a fraction of its bandwidth.
        """
        if len(flows) == 1 and slowed is None:  # nearly all cases
            return [min([self.gbs[name] / n for name, n in flows[0].items()], default=math.inf)]
        left = {
            name: self.gbs[name] * (_SLOWED if name == slowed else 1)
            for name in dict.fromkeys(name for flow in flows for name in flow)
        }
        alone = [
            min((left[name] / times for name, times in flow.items() if name in self.each),
                default=math.inf)
            for flow in flows
        ]  # fmt: skip
        rates = [0.0] * len(flows)
        open_flows = set(range(len(flows)))
        shared = [name for name in left if name not in self.each]
        while open_flows:
            level, tight = math.inf, None
            for name in shared:
                takes = sum(flows[flow].get(name, 0) for flow in open_flows)
                if takes and left[name] / takes < level:
                    level, tight = left[name] / takes, name
            first = min(open_flows, key=lambda flow: alone[flow])
            if math.isinf(min(level, alone[first])):
                for flow in open_flows:  # no known resource limits them
                    rates[flow] = math.inf
                break
            if alone[first] <= level:
                ending, level = {first}, alone[first]
            else:
                ending = {flow for flow in open_flows if tight in flows[flow]}
            for flow in ending:
                rates[flow] = level
                for name, times in flows[flow].items():
                    left[name] = max(0.0, left[name] - times * level)
            open_flows -= ending
        return rates


def transfers(
    documents: Mapping[str, ResultDocument], routes: Routes | None
) -> dict[Key, Transfer]:
    """Return the resources of each series for which something is known.

    The largest of several sizes counts, where the rate no longer depends on the size.

    :param documents: by check.
    :param routes: None without a node model; only devices and pairs are then known.
    """
    by_key: dict[Key, Transfer] = {}
    for chosen in chosen_series(documents):
        if routes is not None:
            for keys in chosen.at_once:
                flows, numbers = _at_once(keys, chosen, routes)
                of_flows = _of_flows(flows, numbers, chosen, routes)
                by_key |= {transfer.key: transfer for transfer in of_flows}
        for key, series in chosen.series.items():
            if key not in by_key:
                passes = _passed(series, routes)
                if passes:
                    alike = (*_alike(key, series), _class(series, routes))
                    slack, kind = dict.fromkeys(passes, 0.0), _kind(series, routes)
                    by_key[key] = Transfer(key, series, slack, None, alike, kind)
    return by_key


def _alike(key: Key, series: Series) -> tuple[Hashable, ...]:
    """Return what similar transfers have in common, but for their way.

    Blocks of another size may be several times as fast, and say nothing of a component.
    """
    return key[0], *series_key(series), series["bytes"], series["block_size"]


def rates_of(
    all_chosen: Sequence[Chosen], routes: Routes, other_than: Routes | None = None
) -> dict[Key, float]:
    """Return the rate of each series by the node model; for latencies the inverse, in 1/us.

    :param other_than: only of the series whose ways are not those of these routes.
    """
    rate_of: dict[Key, float] = {}
    changed = {way for chosen in all_chosen for way in chosen.ways.values()}
    if other_than is not None:
        changed = {way for way in changed if not routes.agree(other_than, way)}
    for chosen in all_chosen:
        ways = chosen.ways
        for keys in chosen.at_once:
            if changed.isdisjoint([ways[key] for key in keys]):
                continue
            flows, numbers = _at_once(keys, chosen, routes)
            rates = routes.rates(flows)
            for key, flow_numbers in numbers.items():
                slowest = min([rates[flow] for flow in flow_numbers])
                rate_of[key] = _with_start(chosen.series[key], ways[key], slowest, routes)
        for key, series in chosen.series.items():
            if ways[key] not in changed:
                continue
            start_us = routes.start_us(series, ways[key])
            if start_us is not None:
                rate_of[key] = 1 / start_us
    return rate_of


def _class(series: Series, routes: Routes | None) -> LinkClass | None:
    """Return the link class of the pair of a series; None for other series."""
    pair = device_pair(series)
    if routes is None or len(pair) != 2 or pair[0] == pair[1]:
        return None
    return routes.node.link_class(*pair)


def _kind(series: Series, routes: Routes | None) -> TransferKind:
    """Return the kind of a series: the name of its spread in the file of rules."""
    link_class = _class(series, routes)
    return kind_of_series(series, link_class is None or link_class.direct)


def _passed(series: Series, routes: Routes | None) -> list[Resource]:
    """Return the components of a series without a rate or a known route.

    Each has the whole effect: the latency of a pair and of the links between, the software of a
    collective; without a node model, the devices and the pair.
    """
    pair = device_pair(series)
    ends = [End("device", device) for device in pair]
    if routes is None:
        devices = [Resource("device {0.number}", end) for end in dict.fromkeys(ends)]
        both = [Resource("pair {0.number}-{1.number}", *ends)] if len(ends) == 2 else []
        return [*devices, *both] if len(ends) <= 2 else []
    if series["direction"] == "collective":
        kind: ResourceKind = (
            "{0.number} of mpi" if series["engine"] == "mpi" else "{0.number} of rccl"
        )
        operations = ("collectives", series["operation"])
        return [Resource(kind, End("operation", operation)) for operation in operations]
    started = _started(series)
    if series["unit"] == "us" and started is not None and len(pair) == 1:
        return [started]
    if series["operation"] != "latency" or len(pair) != 2:
        return []
    if series["engine"] == "mpi":
        return [Resource("latency of messages {0.number}-{1.number}", *ends)]
    path = routes.node.widest_path(*pair) if routes.node.switch is None else ()
    hops = pairwise(End("device", device) for device in path)
    links = [Resource("latency of link {0.number}-{1.number}", *hop) for hop in hops]
    return [Resource("latency of copies {0.number}-{1.number}", *ends), *links]


def _started(series: Series) -> Resource | None:
    """Return the latency of a copy-engine transfer; None where it is of no pair and no device."""
    source, destination = series["source"], series["destination"]
    ends = [End("device", device) for device in device_pair(series)]
    if len(ends) == 2:
        return Resource("latency of copies {0.number}-{1.number}", *ends)
    if len(ends) != 1:
        return None
    if source["memory"].startswith("host-"):
        return Resource("latency of host copies to {1}", None, ends[0])
    if destination["memory"].startswith("host-"):
        return Resource("latency of host copies from {0}", ends[0], None)
    return None


def _with_start(series: Series, way: Way, gbs: float, routes: Routes) -> float:
    """Return the rate of a series, that of a small copy with the time of its start."""
    small = routes.small(series, way)
    total_us = None if small is None else small.total_us(series, gbs)
    return gbs if total_us is None else series["bytes"] / total_us / 1e3


def _at_once(keys: Iterable[Key], chosen: Chosen, routes: Routes) -> _AtOnce:
    """Return the flows of simultaneous series, without those for which the node has no route."""
    simultaneous = [(key, flow) for key in keys for flow in routes.flows(chosen.ways[key])]
    numbers = grouped((key, number) for number, (key, _) in enumerate(simultaneous))
    return [flow for _, flow in simultaneous], numbers


def _of_flows(
    flows: Sequence[Flow],
    numbers: Mapping[Key, Sequence[int]],
    chosen: Chosen,
    routes: Routes,
) -> Iterable[Transfer]:
    """Yield the transfers of simultaneous flows."""
    healthy = routes.rates(flows)
    slowed: dict[Resource, list[float]] = {}
    at_once_of_device: list[tuple[Resource, float]] = []
    all_series = [chosen.series[key] for key in numbers]
    pairs = [device_pair(series) for series in all_series if several_at_once(series)]
    known = 0 < sum(healthy) < math.inf
    if known and len(pairs) == len(numbers) and all(len(pair) == 2 for pair in pairs):
        at_once_of_device = [*_of_one_device(pairs, flows, routes)]
    for key, flow_numbers in numbers.items():
        series = chosen.series[key]
        # A transfer in both directions ends with the slower one.
        gbs = min(healthy[flow] for flow in flow_numbers)
        passes: dict[Resource, float] = {}
        for name in dict.fromkeys(name for flow in flow_numbers for name in flows[flow]):
            if math.isinf(routes.gbs[name]):
                passes[name] = 0.0
            elif len(flows) == 1:
                passes[name] = math.log(routes.gbs[name] / flows[0][name] / gbs)
            else:
                rates = slowed.setdefault(name, routes.rates(flows, name))
                slower = min(rates[flow] for flow in flow_numbers)
                if slower < 0.999 * gbs:
                    passes[name] = max(0.0, math.log(slower / gbs) - math.log(_SLOWED))
        small, share = routes.small(series, chosen.ways[key]), dict[Resource, float]()
        if small is not None:
            share, gbs = _of_small(passes, small, series, gbs)
        if at_once_of_device:
            # What limits them together takes most of the fastest, and leaves the slow ones alone.
            slack = math.log(max(healthy) / gbs)
            for name, peak in at_once_of_device:
                passes[name] = slack + math.log(max(peak / sum(healthy), 1))
        if series["experiment"] == "E6":
            passes[_of_device("rank on {0}", series["device"])] = 0.0
        if series["direction"] == "local":
            passes[_of_device("kernels of {0}", series["device"])] = 0.0
        alike: tuple[Hashable, ...] = (*_alike(key, series), f"{gbs:.3g}")
        if small is not None:
            alike = (*alike, _class(series, routes))
        yield Transfer(key, series, passes, gbs, alike, _kind(series, routes), share=share)


def _of_small(
    passes: dict[Resource, float], small: Small, series: Series, gbs: float
) -> tuple[dict[Resource, float], float]:
    """Add the start of a small copy to what it passes.

    :returns: by resource the part of its time, and its rate by the node model.
    """
    total_us = small.total_us(series, gbs)
    moved = [*passes]
    passes[small.start] = 0.0
    if total_us is None or small.start_us is None:
        return {}, gbs
    started = small.start_us / total_us
    share = {**dict.fromkeys(moved, 1 - started), small.start: started}
    return share, series["bytes"] / total_us / 1e3


def _of_one_device(
    pairs: Iterable[Sequence[int]], flows: Sequence[Flow], routes: Routes
) -> Iterable[tuple[Resource, float]]:
    """Yield what limits simultaneous transfers of one device together, with its links' peak.

    :param pairs: the source and the destination of each transfer.
    """
    links = {name for name in chain.from_iterable(flows) if name.kind == _LINK}
    sources, destinations = map(set, zip(*pairs, strict=True))
    if len(sources) == 1:
        device = End("device", min(sources))
        peak = sum(routes.gbs[name] for name in links if name.source == device)
        yield Resource("transfers at once from {0}", device), peak
    if len(destinations) == 1:
        device = End("device", min(destinations))
        peak = sum(routes.gbs[name] for name in links if name.destination == device)
        yield Resource("transfers at once to {1}", None, device), peak


def _of_device(kind: ResourceKind, device: int | None) -> Resource:
    return Resource(kind, None if device is None else End("device", device))


def by_level(
    transfers: Mapping[Key, Transfer], routes: Routes, references: Mapping[Hashable, float]
) -> Mapping[Key, Transfer]:
    """Return transfers with slacks from measured levels, where the model states only peaks.

    A transfer far below its narrowest peak is limited by a resource without a peak.

    :param references: the known references of groups; in other groups the best value counts.
    """
    if routes.stated:
        return transfers
    # The rates of one array, or of one direction.
    rates = grouped(
        (
            each.alike,
            references.get(each.alike, each.series["median"])
            * each.series["bytes"]
            / max(1, each.series["bytes_moved"]),
        )
        for each in transfers.values()
    )
    best = {alike: max(gbs) for alike, gbs in rates.items()}
    changed: dict[Key, Transfer] = {}
    for key, transfer in transfers.items():
        beyond = 0.0
        if transfer.gbs is not None and not math.isinf(transfer.gbs):
            beyond = max(0.0, math.log(transfer.gbs / best[transfer.alike]))
        loose = {
            name: slack + (0.0 if _may_limit(name, transfer, routes) else beyond)
            for name, slack in transfer.slack.items()
        }
        far = beyond > -math.log(_LIMITED)
        changed[key] = replace(transfer, slack=loose if far else transfer.slack, loose=loose)
    return changed


def _may_limit(name: Resource, transfer: Transfer, routes: Routes) -> bool:
    """Whether a resource without a peak may limit a transfer; no engine limits pageable copies."""
    if name.kind in _ENGINES and any(each.kind in _PAGEABLE for each in transfer.slack):
        return False
    return math.isinf(routes.gbs.get(name, math.inf))
