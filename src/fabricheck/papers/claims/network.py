"""Claims on messages between nodes (E17): NICs alone and together, distances, the wrong network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import OF_HOST, Transport
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import (
    STATISTICS,
    Group,
    Peak,
    Values,
    by_subject,
    group,
)
from fabricheck.papers.claims.kinds import (
    Limits,
    absent,
    at_least,
    at_most,
    equal,
    level,
    quotient,
    ratio,
)
from fabricheck.papers.claims.model import Claim, NotTestable, value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series, largest

#: The smallest message with a published rate between nodes: 99 % of what larger ones reach.
LARGE = 1 << 20

_OF_LUMI = "the simulated network is made of LUMI's values"


def _with_nics(base: Callable[[Observed], NodeModel]) -> Callable[[Observed], NodeModel]:
    """Return a precondition: a node model that states the NICs."""
    return needs.nodes(
        lambda model: model.nics, lambda model: f"nodes with NICs; {model.name} states none", base
    )


_ANY_NICS = _with_nics(needs.node)
_MI250X_NICS = _with_nics(needs.architecture("gfx90a", "MI250X"))


def _transport(point: Series) -> Transport | None:
    """Return how the messages of the first rank of a series left its node, by its counters."""
    for rank in point.document.get("ranks") or ():
        if point.ranks and rank["rank"] == point.ranks[0]:
            network = rank.get("network")
            return network["transport"] if network else None
    return None


def _messages(operation: str, role: str = "single", *, host: bool = False) -> Group:
    """Return the largest messages between nodes by ranks, of program mpi where it has them.

    Those that went by the kernel's stack are left out.
    """
    memory = "host memory" if host else "devices"
    words = {"single": "of one pair of ranks", "sum": "of all NICs of a node at once"}
    name = f"messages between nodes {words[role]}, from {memory}"
    what = f"{operation.replace('-', ' ')} of {name}"

    def choose(observed: Observed) -> Values:
        points = needs.series(
            observed,
            what,
            lambda point: (
                (point.source_memory in OF_HOST) == host and _transport(point) in ("nic", None)
            ),
            experiment="E17",
            operation=operation,
            role=role,
        )
        if operation != "latency":
            points = [series for series in points if series.bytes >= LARGE]
            if not points:
                raise NotTestable(f"a rate needs {name} of {about(LARGE)} at least (E17)")
        ours = [series for series in points if series.program == "mpi"] or points
        return by_subject(largest(ours, lambda point: point.ranks))

    return Group(what, choose, "direction")


def _nic_peak(node: NodeModel, _: object, point: Series) -> float:
    """Return the peak of the NIC nearest to a sender's device, in GB/s."""
    device = point.source_device
    nearest = None if device is None else node.nearest_nic(device)
    return (nearest or node.nics[0]).peak_gbs


NIC = Peak("a NIC's peak", _nic_peak)
ALL_NICS = Peak("the peak of all NICs", lambda node, *_: sum(nic.peak_gbs for nic in node.nics))


def _node_rates(*, host: bool) -> Group:
    """Return the rates of all NICs of a node, both ways if both kinds of memory have that."""

    def choose(observed: Observed) -> Values:
        lacking: list[NotTestable] = []
        for operation in ("bandwidth-both", "bandwidth"):
            try:
                device, other = (
                    _messages(operation, "sum", host=memory).choose(observed)
                    for memory in (False, True)
                )
            except NotTestable as error:
                lacking.append(error)
                continue
            return other if host else device
        raise lacking[0]

    return Group(
        f"all NICs of a node at once, from {'host memory' if host else 'devices'}",
        choose,
        "direction",
    )


@group("latencies between nodes by distance", "distance", "each")
def _by_distance(observed: Observed) -> Values:
    """Return the median latency of each distance."""
    distances = grouped(
        (distance, point)
        for point in _messages("latency").choose(observed).values()
        if (distance := point.series[0].measured.get("distance")) is not None
    )
    if len(distances) < 2:
        has = f"of {next(iter(distances))}" if distances else "whose distance is known"
        raise NotTestable(f"it needs latencies of two distances, the session has those {has} (E17)")
    return {distance: STATISTICS["median"](some) for distance, some in distances.items()}


_BY_KERNEL = "messages between nodes that went by the kernel's network stack, as counters show"


@group(_BY_KERNEL, "message")
def _by_tcp(observed: Observed) -> Values:
    """Return by its place the messages that went by the kernel's stack past the NICs' drivers."""
    points = needs.series(
        observed,
        f"{_BY_KERNEL}, of 1 MiB or more of one pair of ranks",
        lambda point: _transport(point) == "kernel" and point.bytes >= LARGE,
        experiment="E17",
        operation="bandwidth",
        role="single",
    )
    return by_subject(dict(enumerate(points)))


CLAIMS = (
    Claim(
        id="one-nic-93-to-97-percent",
        statement="One rank and one NIC reach 93 to 97 % of the NIC's peak.",
        document="thesis-lumi",
        where="3_osu_internode/osu_bw_analysis.md, aggregate bandwidth; its text says 96 to 98 %",
        rule="the median over ordered pairs of ranks on devices of what messages of 1 MiB or more "
        "reach of the peak of the NIC beside the sender is in that range, 1 point either way, by "
        "which the document's text, 96 to 98 %, is above its table",
        requires=_ANY_NICS,
        judge=level(
            (
                _messages("bandwidth").part_of(NIC),
                Limits(
                    quotient("thesis-lumi-bw-mean-64MiB", "lumi-nic", 100),
                    quotient("thesis-lumi-ompi-bw-mean-64MiB", "lumi-nic", 100),
                    points=1.0,
                ),
            )
        ),
        experiments=("E17",),
        records=("thesis-lumi-bw-mean-64MiB", "thesis-lumi-ompi-bw-mean-64MiB", "lumi-nic"),
        built_in=_OF_LUMI,
    ),
    Claim(
        id="nic-both-ways-below-twice",
        statement="Both directions of one NIC at once give 1.85 to 1.91 times one direction.",
        document="thesis-lumi",
        where="3_osu_internode/osu_bibw_analysis.md, comparison with osu_bw",
        rule="the median over ordered pairs of ranks on devices is in that range, 3 % either way, "
        "by which the means of the document's two libraries differ",
        requires=_MI250X_NICS,
        judge=level(
            (
                replace(
                    _messages("bandwidth-both").over(_messages("bandwidth")), statistic="median"
                ),
                Limits("thesis-lumi-bibw-ratio-low", "thesis-lumi-bibw-ratio-high", part=0.03),
            )
        ),
        experiments=("E17",),
        records=("thesis-lumi-bibw-ratio-low", "thesis-lumi-bibw-ratio-high"),
        built_in=_OF_LUMI,
    ),
    Claim(
        id="node-nics-95-percent",
        statement="All NICs of a node together send 95 % of their peak from devices.",
        document="lumi-checks",
        where="checks/microbenchmarks/mpi/osu_check.py, osu_mbw_mr",
        rule="the slowest ordered pair of nodes has 95 % of the sum of the NICs' peaks, 1 % either "
        "way, by which LUMI accepts its nodes, with eight ranks a node",
        requires=_MI250X_NICS,
        judge=level(
            (
                _messages("bandwidth", "sum").part_of(ALL_NICS).whole("least"),
                Limits(quotient("lumirfm-mbwmr-internode", "olcf-nic-node", 100), part=0.01),
            )
        ),
        experiments=("E17",),
        records=("lumirfm-mbwmr-internode", "olcf-nic-node"),
        built_in=_OF_LUMI,
    ),
    Claim(
        id="nics-from-devices-not-below-host",
        statement="From devices the NICs of a node reach no less than from host memory.",
        document="bisection",
        where="README.md, table of peak bandwidth across nodes, Crusher",
        rule="of each direction all NICs at once, both ways where the session has it, are from "
        "devices not below those from host memory, the noise allowed",
        requires=_MI250X_NICS,
        judge=equal(_node_rates(host=False), _node_rates(host=True), at_least(1.0)),
        experiments=("E17",),
        records=(
            "bisection-crusher-device",
            "bisection-crusher-host",
            "bisection-crusher-2n-device",
            "bisection-crusher-2n-host",
        ),
    ),
    Claim(
        id="distance-below-30-percent",
        statement="Where nodes are in the network changes the latency by less than 30 %.",
        document="de-sensi",
        where="from a summary of the paper, not compared with the paper itself",
        rule="the medians of the latencies between devices of two or three distances differ by "
        "less than 30 % of the shortest",
        requires=_MI250X_NICS,
        judge=ratio(
            _by_distance.whole("greatest"),
            _by_distance.whole("least"),
            at_most(lambda: 1 + value("desensi-lumi-placement-lat") / 100),
        ),
        experiments=("E17",),
        records=("desensi-lumi-placement-lat",),
        built_in="the simulated network has a latency for each distance",
    ),
    Claim(
        id="tcp-an-eighth-of-a-nic",
        statement="Without the driver of its NIC a rank reaches an eighth of the NIC's peak.",
        document="cscs-docs",
        where="software/communication/openmpi.md, without the CXI hook",
        rule="no messages that went by the kernel's network stack, as counters show, are above "
        "12.5 % of the peak of a NIC, 1.5 points allowed; published are 5.1 to 12.5 %",
        requires=_ANY_NICS,
        judge=level(
            (
                _by_tcp.part_of(NIC).whole("greatest"),
                at_most(quotient("cscsdocs-tcp-bw-hh", "lumi-nic", 100), points=1.5),
            )
        ),
        experiments=("E17",),
        records=(
            "cscsdocs-tcp-bw-hh",
            "cscsdocs-tcp-bw-dd",
            "cscsdocs-hook-bw-without",
            "thesis-lumi-tcp",
        ),
        built_in="what TCP reaches is a value of the overlay",
    ),
    Claim(
        id="wrong-network-right-data",
        statement="On the wrong network the data are right all the same.",
        document="cscs-docs",
        where="software/communication/openmpi.md, without the CXI hook",
        rule="all messages that went by the kernel's network stack, as counters show, and whose "
        "data was compared had right data",
        requires=_ANY_NICS,
        judge=absent(
            f"{_BY_KERNEL} and whose data was compared",
            "E17",
            lambda observed, point: _transport(point) == "kernel",
            compared=True,
        ),
        experiments=("E17",),
        records=("cscsdocs-tcp-bw-hh",),
        built_in="the simulated network does not change data",
    ),
)
