"""Claims of JSC on MPI messages between devices (E9): MI250's tiers, A100's uniform links."""

from __future__ import annotations

import statistics
from dataclasses import replace

from fabricheck.core.amounts import about
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import (
    DUAL,
    QUAD,
    SINGLE,
    by_pair,
    every_pair,
    of_classes,
)
from fabricheck.papers.claims.judging import (
    high,
    low,
    measured_by,
    median_of,
    middle,
    middle_number,
    named,
)
from fabricheck.papers.claims.messages import candidates, device_messages, messages
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import LINKS, MEMORY, Group, Points, part_between
from fabricheck.results.observed import Observed
from fabricheck.results.table import largest

#: The tolerances as fractions or percentage points; the rules give the reasons.
AROUND, PARTS_POINTS, SMALLER, UNIFORM, A100_POINTS = 0.10, 10.0, 0.5, 0.02, 3.0

LARGE, SMALL = 64 << 20, 4 << 20

#: A message within a device compared with JSC's: in points of the memory's peak, and as a fraction.
OWN_POINTS, OWN_AROUND = 3.0, 0.10


def _large_enough(points: Points, below: bool, text: str) -> None:
    """Require the document's size if messages reach less than published: smaller ones are slower.

    :param below: whether they reach too little somewhere, and too much nowhere.
    :param text: what the messages reach, to end the sentence.
    """
    size = min(point.bytes for point in points.values())
    if below and size < LARGE:
        raise NotTestable(
            f"the claim is about messages of {about(LARGE)}; the session's of {about(size)} can be "
            f"slower, as the document states{text} (E9)"
        )


def _tiers(observed: Observed) -> Finding:
    node = needs.node(observed)
    records = {QUAD: "jsc-samegpu", DUAL: "jsc-dual", SINGLE: "jsc-single"}
    points = messages(observed, False, LARGE)
    off, texts, numbers = [], [], []
    for kind, tier in of_classes(node, points, [*records], "messages of MPI", "E9").items():
        wanted = value(records[kind])
        apart = middle(tier) / wanted - 1
        if abs(apart) > AROUND:
            off.append(apart)
        texts.append(f"{middle(tier):.1f} GB/s over {kind.name} links ({wanted:.1f} published)")
        numbers.append(middle_number(f"{kind.name} links, median", tier))
    by = measured_by(points.values())
    _large_enough(points, bool(off) and max(off) < 0, f"; they have {', '.join(texts)}")
    return verdict(
        not off, f"Messages have {', '.join(texts)} ({by}; published of 64 MiB).", *numbers
    )


def _parts(node: NodeModel, points: Points) -> tuple[list[float], list[float]]:
    """Return the percentages of their path's peak that direct and other pairs reach."""
    direct: list[float] = []
    indirect: list[float] = []
    for pair, point in points.items():
        part = 100 * point.value / node.peer_peak_gbs(*pair)
        (direct if node.link_class(*pair).direct else indirect).append(part)
    if not direct or not indirect:
        raise NotTestable("the session has no messages of neighbours and of others (E9)")
    return direct, indirect


def _parts_of_peak(observed: Observed) -> Finding:
    node = needs.node(observed)
    points = messages(observed, False, LARGE)
    direct, indirect = (statistics.median(some) for some in _parts(node, points))
    first, second = value("jsc-util-direct"), value("jsc-util-indirect")
    holds = (
        abs(direct - first) <= PARTS_POINTS
        and abs(indirect - second) <= PARTS_POINTS
        and indirect < direct
    )
    least = min(direct - first, indirect - second)
    reach = f"; they reach {direct:.1f} % of the peak between neighbours, {indirect:.1f} % else"
    _large_enough(points, least < -PARTS_POINTS, reach)
    return verdict(
        holds,
        f"Neighbours reach {direct:.1f} % of the peak and others {indirect:.1f} % "
        f"({measured_by(points.values())}); published are about {first:g} and {second:g} %.",
        computed("neighbours, of the peak", direct, "percent", *points.values()),
        computed("others, of the peak", indirect, "percent", *points.values()),
    )


def _smaller_messages(observed: Observed) -> Finding:
    node = needs.node(observed)
    for found in device_messages(observed, engine=False):
        of_size = [by_pair(one for one in found if one.bytes == size) for size in (LARGE, SMALL)]
        pairs = [pair for pair in of_size[0] if pair in of_size[1]]
        if pairs:
            break
    else:
        raise NotTestable("the session has no messages of both 4 and 64 MiB of a pair (E9)")
    large, small = ([*_parts(node, {pair: some[pair] for pair in pairs})] for some in of_size)
    used = [some[pair] for some in of_size for pair in pairs]
    holds, texts, numbers = True, [], []
    names = (("neighbours", "jsc-util-small-direct"), ("others", "jsc-util-small-indirect"))
    for (name, record), many, few in zip(names, large, small, strict=True):
        change, wanted = statistics.median(few) - statistics.median(many), value(record)
        holds &= abs(change - wanted) <= SMALLER * abs(wanted)
        texts.append(f"{change:+.1f} points between {name} ({wanted:+g} published)")
        what = f"{name}, change of part of peak"
        numbers.append(computed(what, change, "percentage points", *used))
    return verdict(
        holds,
        f"From 64 to 4 MiB the part of the peak changes by {' and '.join(texts)} "
        f"({used[0].program}).",
        *numbers,
    )


def _every_message(observed: Observed) -> Points:
    """Return the messages of all ordered pairs."""
    most = max(candidates(observed, None, LARGE), key=len)
    return every_pair(needs.node(observed), most, "messages of MPI", "E9")


def _with_few(observed: Observed, found: Finding) -> Finding:
    """Return a finding that says so if it compares two directions only."""
    if len(needs.node(observed).devices) > 2:
        return found
    few = "There is one pair only, so its two directions are all that is compared."
    return replace(found, because=f"{found.because} {few}")


def _uniform(observed: Observed) -> Finding:
    points = _every_message(observed).values()
    first, last = min(points, key=median_of), max(points, key=median_of)
    found = verdict(
        low(last) / high(first) - 1 <= UNIFORM,
        f"Messages of {len(points)} ordered pairs of {needs.node(observed).name} have "
        f"{named([first])} to {named([last])} ({measured_by(points)}).",
        number(f"least, {named([first])}", first),
        number(f"most, {named([last])}", last),
        computed("most over least", last.value / first.value, "ratio", first, last),
    )
    return _with_few(observed, found)


def _part_of_uniform(observed: Observed) -> Finding:
    every, wanted = Group("a message", _every_message, "ordered pair"), value("jsc-a100-util")
    least, most = wanted - A100_POINTS, wanted + A100_POINTS
    return _with_few(
        observed, part_between(observed, every, LINKS, least, most, f"{wanted:g} % of A100")
    )


def _within_devices(observed: Observed) -> Points:
    """Return by device the messages between two ranks on it, of the document's size or larger.

    OSU's messages come first, as in the document.
    """
    found = [
        point
        for point in observed.select(experiment="E9", operation="bandwidth", role="single")
        if point.source_memory == "device" and point.source_device == point.destination_device
    ]
    needs.some(found, "messages of MPI between two ranks on one device", "E9")
    of_tool = [point for point in found if point.program == "osu"] or found
    exact = [point for point in of_tool if point.bytes == LARGE]
    large = exact or [point for point in of_tool if point.bytes > LARGE]
    needs.some(large, f"such messages of {about(LARGE)} or more", "E9")
    return largest(large, lambda point: point.source_device)


WITHIN = Group("a message between two ranks on one device", _within_devices)


def _part_of_own_memory(observed: Observed) -> Finding:
    wanted = value("jsc-a100-self-util")
    least, most = wanted - OWN_POINTS, wanted + OWN_POINTS
    said = f"{wanted:g} % ({value('jsc-a100-self'):.0f} GB/s)"
    return part_between(observed, WITHIN, MEMORY, least, most, said)


def _less_than_a100(observed: Observed) -> Finding:
    points = _within_devices(observed)
    a100, less = value("jsc-a100-self"), value("jsc-a100-vs-mi250-self")
    found, wanted = middle(points.values()), a100 - less
    return verdict(
        abs(found / wanted - 1) <= OWN_AROUND,
        f"Between two ranks on one device messages have {found:.1f} GB/s, the median of "
        f"{len(points)} device(s) ({measured_by(points.values())}); published are {a100:.1f} of "
        f"A100 and about {less:.0f} less, {wanted:.1f}.",
        *WITHIN.numbers(points),
    )


CLAIMS = (
    Claim(
        id="jsc-mi250-tiers",
        statement="Messages of MPI have three tiers on MI250: 155, 80 and 40 GiB/s over quad, dual "
        "and single links.",
        document="jsc",
        where="OSU Bandwidth Micro-Benchmark",
        rule="the median of each class of direct pairs is that, 10 % either way: the document has "
        "155 and 150 of the same links; without the engine, which such rates exclude; of 64 MiB "
        "where the session has it, and slower ones that are smaller do not refute",
        requires=needs.tiers,
        judge=_tiers,
        experiments=("E9",),
        records=("jsc-samegpu", "jsc-dual", "jsc-single"),
    ),
    Claim(
        id="jsc-neighbours-90-percent",
        statement="Messages of MPI reach about 90 % of the peak between neighbours and 80 % "
        "between others.",
        document="jsc",
        where="OSU Bandwidth Micro-Benchmark",
        rule="the medians are these, 10 points either way, as the document's own rates give 83 to "
        "86 % where it says 90, and others are below neighbours; without the engine; of 64 MiB "
        "where the session has it, and slower ones that are smaller do not refute",
        requires=needs.tiers,
        judge=_parts_of_peak,
        experiments=("E9",),
        records=("jsc-util-direct", "jsc-util-indirect"),
    ),
    Claim(
        id="jsc-smaller-messages",
        statement="Messages of 4 MiB reach 20 points less of the peak than those of 64 MiB between "
        "neighbours, and 10 points less between others.",
        document="jsc",
        where="OSU Bandwidth Micro-Benchmark",
        rule="the medians change so, half of it either way for what the document calls somewhat "
        "similar; without the engine",
        requires=needs.tiers,
        judge=_smaller_messages,
        experiments=("E9",),
        records=("jsc-util-small-direct", "jsc-util-small-indirect"),
    ),
    Claim(
        id="uniform-links",
        statement="Between devices that are all linked alike all pairs have the same bandwidth "
        "(A100).",
        document="jsc",
        where="A100 Comparison",
        rule="the most of all ordered pairs is 2 % above the least at most: the 87 GiB/s of all "
        "pairs are rounded, by up to 1.2 %",
        requires=needs.linked_alike,
        judge=_uniform,
        experiments=("E9",),
        records=("jsc-a100-p2p",),
        built_in="links of one kind are alike",
    ),
    Claim(
        id="uniform-links-93-percent",
        statement="Between devices that are all linked alike messages of MPI reach 93 % of the "
        "peak (A100).",
        document="jsc",
        where="A100 Comparison",
        rule="the median of all ordered pairs is 93 % of the peak, 3 points either way: the "
        "rounded 87 GiB/s are 92.9 to 94.0 %, and other devices than A100 are allowed for",
        requires=needs.linked_alike,
        judge=_part_of_uniform,
        experiments=("E9",),
        records=("jsc-a100-util", "jsc-a100-p2p"),
    ),
    Claim(
        id="own-device-41-percent",
        statement="Messages between two ranks on one A100 reach 41 % of its memory's peak, "
        "592 GiB/s.",
        document="jsc",
        where="A100 Comparison",
        rule="the median over the devices is 41 % of the peak, 3 points either way: 592 GiB/s are "
        "40.9 % of the node model's, and other A100 have other memory; of 64 MiB, the document's "
        "size, or more, by OSU where the session has it",
        requires=needs.architecture("sm_80", "A100"),
        judge=_part_of_own_memory,
        experiments=("E9",),
        records=("jsc-a100-self-util", "jsc-a100-self"),
    ),
    Claim(
        id="own-device-below-a100",
        statement="Messages between two ranks on one die of MI250 have some 130 GiB/s less than on "
        "one A100.",
        document="jsc",
        where="A100 Comparison",
        rule="the median over the devices is 592 - 130 GiB/s, 496 GB/s, 10 % either way for some; "
        "of 64 MiB, the document's size, or more, by OSU where the session has it",
        requires=needs.packages_of_two,
        judge=_less_than_a100,
        experiments=("E9",),
        records=("jsc-a100-self", "jsc-a100-vs-mi250-self"),
    ),
)
