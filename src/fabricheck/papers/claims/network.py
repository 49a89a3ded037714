"""Claims on messages between nodes (E17): NICs alone and together, distances, the wrong network."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping

from fabricheck.core.amounts import about
from fabricheck.core.text import count
from fabricheck.core.vocabulary import OF_HOST, Transport
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import measured_by, middle
from fabricheck.papers.claims.model import (
    Claim,
    Finding,
    NotTestable,
    Number,
    computed,
    counted,
    number,
    verdict,
)
from fabricheck.papers.claims.published import value
from fabricheck.references import rules
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series, largest

#: Ranks in order; of a pair the sender first.
Ranks = tuple[int, ...]

#: The smallest message with a published rate between nodes: 99 % of what larger ones reach.
LARGE = 1 << 20

#: Tolerances in percentage points, or as a fraction; the rules give the reasons.
PART_POINTS, NODE_POINTS, WRONG_POINTS, AROUND, NOISE = 1.0, 2.0, 1.5, 0.03, 0.02

_OF_LUMI = "the simulated network is made of LUMI's values"


def _with_nics(observed: Observed) -> NodeModel:
    """Require a node model that states the NICs."""
    model = needs.node(observed)
    if not model.nics:
        raise NotTestable(f"{model.name} states no NICs")
    return model


def _mi250x_with_nics(observed: Observed) -> NodeModel:
    """Require the devices of Crusher and LUMI, and their NICs."""
    needs.architecture("gfx90a", "MI250X")(observed)
    return _with_nics(observed)


def _transport(point: Series) -> Transport | None:
    """Return how the messages of the first rank of a series left its node, by its counters."""
    for rank in point.document.get("ranks") or ():
        if point.ranks and rank["rank"] == point.ranks[0]:
            network = rank.get("network")
            return network["transport"] if network else None
    return None


def _on_host(point: Series) -> bool:
    return point.measured["source"]["memory"] in OF_HOST


def _messages(
    observed: Observed, operation: str, role: str = "single", *, host: bool = False
) -> Mapping[Ranks, Series]:
    """Return the largest messages between nodes by ranks, of program mpi where it has them.

    Those that went by the kernel's stack are left out.

    :raises NotTestable: when there are none, or none of a size with a published rate.
    """
    memory = "host memory" if host else "devices"
    words = {"single": "of one pair of ranks", "sum": "of all NICs of a node at once"}
    what = f"messages between nodes {words[role]}, from {memory}"
    found = [
        one
        for one in observed.select(experiment="E17", operation=operation, role=role)
        if _on_host(one) == host and _transport(one) in ("nic", None)
    ]
    needs.some(found, f"{operation.replace('-', ' ')} of {what}", "E17")
    if operation != "latency":
        found = [one for one in found if one.bytes >= LARGE]
        if not found:
            raise NotTestable(f"a rate needs {what} of {about(LARGE)} at least (E17)")
    ours = [one for one in found if one.program == "mpi"] or found
    chosen = largest(ours, lambda point: point.ranks)
    return {ranks: point for ranks, point in chosen.items() if ranks is not None}


def _peak(node: NodeModel, point: Series) -> float:
    """Return the peak of the NIC nearest to a sender's device, in GB/s."""
    device = point.measured["source"]["device"]
    nearest = None if device is None else node.nearest_nic(device)
    return (nearest or node.nics[0]).peak_gbs


def _numbers(points: Mapping[Ranks, Series], what: str) -> list[Number]:
    return [number(f"{what}, ranks {'-'.join(map(str, key))}", one) for key, one in points.items()]


def _pairs(points: Collection[Series]) -> str:
    return f"{count(len(points), 'ordered pair')} of ranks ({measured_by(points)})"


def _one_nic(observed: Observed) -> Finding:
    node = _with_nics(observed)
    points = _messages(observed, "bandwidth")
    part = statistics.median(100 * one.value / _peak(node, one) for one in points.values())
    peak = value("lumi-nic")
    least = 100 * value("thesis-lumi-bw-mean-64MiB") / peak
    most = 100 * value("thesis-lumi-ompi-bw-mean-64MiB") / peak
    return verdict(
        least - PART_POINTS <= part <= most + PART_POINTS,
        f"One rank reaches {middle(points.values()):.2f} GB/s over its NIC, {part:.1f} % of the "
        f"NIC's peak, the median of {_pairs(points.values())}; published are {least:.1f} to "
        f"{most:.1f} %.",
        computed("of a NIC's peak", part, "percent", *points.values()),
        *_numbers(points, "one way"),
    )


def _both_ways(observed: Observed) -> Finding:
    once = _messages(observed, "bandwidth")
    both = _messages(observed, "bandwidth-both")
    there = [key for key in both if key in once]
    if not there:
        raise NotTestable("no pair of ranks has messages one way and both ways at once (E17)")
    ratio = statistics.median(both[key].value / once[key].value for key in there)
    least, most = value("thesis-lumi-bibw-ratio-low"), value("thesis-lumi-bibw-ratio-high")
    used = {key: both[key] for key in there}
    return verdict(
        least * (1 - AROUND) <= ratio <= most * (1 + AROUND),
        f"Both directions of a NIC at once have {ratio:.2f} times one direction, the median of "
        f"{_pairs(used.values())}; published are {least:g} to {most:g}.",
        computed("both ways over one way", ratio, "ratio", *used.values()),
        *_numbers({key: once[key] for key in there}, "one way"),
        *_numbers(used, "both ways"),
    )


def _all_nics(observed: Observed) -> Finding:
    node = _with_nics(observed)
    points = _messages(observed, "bandwidth", "sum")
    peak = sum(nic.peak_gbs for nic in node.nics)
    parts = {key: 100 * one.value / peak for key, one in points.items()}
    slowest = min(parts, key=lambda key: parts[key])
    part, wanted = parts[slowest], 100 * value("lumirfm-mbwmr-internode") / value("olcf-nic-node")
    return verdict(
        abs(part - wanted) <= NODE_POINTS,
        f"The {len(node.nics)} NICs of a node together send {points[slowest].value:.1f} of "
        f"{peak:g} GB/s, {part:.1f} %, in the slowest of {len(points)} direction(s) between nodes "
        f"({measured_by(points.values())}); LUMI accepts its nodes by {wanted:g} %.",
        computed("of the peak of all NICs", part, "percent", points[slowest]),
        *_numbers(points, "all NICs"),
    )


def _devices_and_host(observed: Observed) -> Finding:
    lacking: NotTestable | None = None
    for operation, ways in (("bandwidth-both", "both ways"), ("bandwidth", "one way")):
        try:
            device = _messages(observed, operation, "sum")
            host = _messages(observed, operation, "sum", host=True)
        except NotTestable as error:
            lacking = lacking or error
            continue
        own, other = middle(device.values()), middle(host.values())
        low, high = value("bisection-crusher-host"), value("bisection-crusher-device")
        return verdict(
            own >= other * (1 - NOISE),
            f"All NICs of a node at once, {ways}, have {own:.1f} GB/s from devices "
            f"({measured_by(device.values())}) and {other:.1f} from host memory "
            f"({measured_by(host.values())}); published are {high:g} and {low:g} of six nodes.",
            *_numbers(device, f"devices, {ways}"),
            *_numbers(host, f"host memory, {ways}"),
        )
    assert lacking is not None
    raise lacking


def _by_distance(observed: Observed) -> Finding:
    points = _messages(observed, "latency")
    by: dict[str, list[Series]] = {}
    for one in points.values():
        distance = one.measured.get("distance")
        if distance is not None:
            by.setdefault(distance, []).append(one)
    if len(by) < 2:
        has = f"of {next(iter(by))}" if by else "whose distance is known"
        raise NotTestable(f"it needs latencies of two distances, the session has those {has} (E17)")
    middles = {distance: middle(own) for distance, own in by.items()}
    more = 100 * (max(middles.values()) / min(middles.values()) - 1)
    most = value("desensi-lumi-placement-lat")
    said = ", ".join(f"{took:.2f} us {distance}" for distance, took in middles.items())
    return verdict(
        more < most,
        f"Latencies differ by {more:.0f} % between distances: {said} "
        f"({measured_by(points.values())}); published is less than {most:g} %.",
        computed("longest over shortest", more, "percent", *points.values()),
        *(computed(f"latency, {distance}", took, "us", *by[distance])
          for distance, took in middles.items()),
    )  # fmt: skip


def _by_the_kernel(observed: Observed, series: Collection[Series]) -> list[Series]:
    """Return the series whose messages went by the kernel's stack past the NICs' drivers.

    :raises NotTestable: when there are none.
    """
    found = [one for one in series if one.experiment == "E17" and _transport(one) == "kernel"]
    if not found:
        raise NotTestable(
            "no counters show messages between nodes that went by the kernel's network stack (E17)"
        )
    return found


def _rate_of_tcp(observed: Observed) -> Finding:
    node = _with_nics(observed)
    found = [
        one
        for one in _by_the_kernel(observed, observed.points)
        if one.operation == "bandwidth" and one.role == "single" and one.bytes >= LARGE
    ]
    needs.some(found, "such messages of 1 MiB or more of one pair of ranks", "E17")
    parts = {id(one): 100 * one.value / _peak(node, one) for one in found}
    fastest = max(found, key=lambda one: parts[id(one)])
    part, wanted = parts[id(fastest)], 100 * value("cscsdocs-tcp-bw-hh") / value("lumi-nic")
    return verdict(
        part <= wanted + WRONG_POINTS,
        f"By the kernel's network stack one rank reaches {fastest.value:.2f} GB/s at most, "
        f"{part:.1f} % of its NIC's peak, of {_pairs(found)}; published are {wanted:.1f} % at "
        f"most. Below {rules.wrong_network_gbs():g} GB/s a rate is taken for that of another "
        "network.",
        computed("of a NIC's peak, the most", part, "percent", fastest),
        number("the fastest", fastest),
    )


def _right_data(observed: Observed) -> Finding:
    found = _by_the_kernel(observed, observed.series)
    checked = [one for one in found if one.bytes_checked and not one.document["faults_injected"]]
    needs.some(checked, "such messages whose data was compared", "E17")
    wrong = [one for one in checked if one.errors]
    return verdict(
        not wrong,
        f"Of {len(checked)} series of messages by the kernel's network stack {len(wrong)} had "
        "wrong data.",
        counted("series with compared data", len(checked), "ratio", checked[0].clock),
        counted("series with wrong data", len(wrong), "ratio", checked[0].clock),
    )


Judge = Callable[[Observed], Finding]

CLAIMS = (
    Claim(
        id="one-nic-93-to-97-percent",
        statement="One rank and one NIC reach 93 to 97 % of the NIC's peak.",
        document="thesis-lumi",
        where="3_osu_internode/osu_bw_analysis.md, aggregate bandwidth; its text says 96 to 98 %",
        rule="the median over ordered pairs of ranks on devices of what messages of 1 MiB or more "
        "reach of the peak of the NIC beside the sender is in that range, 1 point either way",
        requires=_with_nics,
        judge=_one_nic,
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
        requires=_mi250x_with_nics,
        judge=_both_ways,
        experiments=("E17",),
        records=("thesis-lumi-bibw-ratio-low", "thesis-lumi-bibw-ratio-high"),
        built_in=_OF_LUMI,
    ),
    Claim(
        id="node-nics-95-percent",
        statement="All NICs of a node together send 95 % of their peak from devices.",
        document="lumi-checks",
        where="checks/microbenchmarks/mpi/osu_check.py, osu_mbw_mr",
        rule="the slowest ordered pair of nodes has 95 % of the sum of the NICs' peaks, 2 points "
        "either way; LUMI has eight ranks a node, and accepts 1 % either way",
        requires=_mi250x_with_nics,
        judge=_all_nics,
        experiments=("E17",),
        records=("lumirfm-mbwmr-internode", "olcf-nic-node"),
        built_in=_OF_LUMI,
    ),
    Claim(
        id="nics-from-devices-not-below-host",
        statement="From devices the NICs of a node reach no less than from host memory.",
        document="bisection",
        where="README.md, table of peak bandwidth across nodes, Crusher",
        rule="the median over directions of all NICs at once, both ways where the session has it, "
        "is from devices not below that from host memory by more than 2 %",
        requires=_mi250x_with_nics,
        judge=_devices_and_host,
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
        requires=_mi250x_with_nics,
        judge=_by_distance,
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
        requires=_with_nics,
        judge=_rate_of_tcp,
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
        requires=_with_nics,
        judge=_right_data,
        experiments=("E17",),
        records=("cscsdocs-tcp-bw-hh",),
        built_in="the simulated network does not change data",
    ),
)
