"""Claims of the paper and of AMD's lab notes on messages of MPI between two devices (E9)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from fabricheck.core.amounts import about
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs, rules
from fabricheck.papers.claims.between import (
    DUAL,
    QUAD,
    accesses,
    by_class,
    by_engine,
    by_pair,
    peak_of,
)
from fabricheck.papers.claims.judging import (
    above,
    low,
    measured_by,
    median_of,
    middle,
    middle_number,
    named,
    span,
)
from fabricheck.papers.claims.model import (
    Claim,
    Finding,
    NotTestable,
    Number,
    computed,
    number,
    verdict,
)
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Group, Points
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair, Series

#: The tolerances as fractions or percentage points; the rules give the reasons. "Slightly lower"
#: ranges from half the smallest difference in the lab notes to 1.5 times the largest.
CEILING, DEFICIT_POINTS, NO_DIFFERENCE, AROUND_POINTS = 0.01, 2.0, 0.05, 5.0
SLIGHTLY_LEAST, SLIGHTLY_MOST = 0.025, 0.15

_PROGRAMS = ("mpi", "osu")
#: The sizes of the messages in the paper and in AMD's lab notes.
_PAPER, _LAB = 1 << 30, 16 << 20


def device_messages(observed: Observed, engine: bool | None) -> list[list[Series]]:
    """Return the bandwidths of messages between two devices, those of program mpi before OSU's.

    :param engine: with the copy engines or without; None for either, as on NVIDIA.
    :raises NotTestable: when there are none.
    """
    found = [
        point
        for point in observed.select(experiment="E9", operation="bandwidth", role="single")
        if point.pair is not None
        and engine in (None, by_engine(point))
        and {point.measured[end]["memory"] for end in ("source", "destination")} == {"device"}
    ]
    words = {None: "", True: " with the copy engines", False: " without the copy engines"}
    needs.some(found, f"messages of MPI between devices{words[engine]}", "E9")
    by_program = [[one for one in found if one.program == name] for name in _PROGRAMS]
    return [points for points in by_program if points]


def candidates(observed: Observed, engine: bool | None, size: int) -> list[dict[Pair, Series]]:
    """Return sets of messages of one program by ordered pair, the set nearest to a document first.

    Messages of the document's size come first, then the largest messages of a program that has
    larger ones, then the largest of the others. Messages of program mpi come before OSU's.

    :param engine: as in `device_messages`, which raises the same error.
    :param size: the size of the document's messages, in bytes.
    :raises NotTestable: when no message has at least `needs.LARGE` bytes.
    """
    found = device_messages(observed, engine)
    needs.large([one for points in found for one in points], "messages of MPI", "E9")
    found = [[one for one in points if one.bytes >= needs.LARGE] for points in found]
    exact = [[one for one in points if one.bytes == size] for points in found]
    above = [points for points in found if any(one.bytes > size for one in points)]
    return [by_pair(points) for points in (*exact, *above, *found) if points]


def messages(observed: Observed, engine: bool | None, size: int) -> dict[Pair, Series]:
    """Return the first of the `candidates`: the message of each ordered pair."""
    return candidates(observed, engine, size)[0]


def _wide(node: NodeModel, pairs: Sequence[Pair]) -> list[Pair]:
    wide = [pair for pair in pairs if node.link_class(*pair).links > 1]
    if not wide:
        raise NotTestable("the session has no such messages of pairs with several links (E9)")
    return wide


def _engine_ceiling(observed: Observed) -> Finding:
    node = needs.node(observed)
    points = messages(observed, True, _PAPER)
    wide = [points[pair] for pair in _wide(node, list(points))]
    most = value("paper-mpi-sdma-ceiling")
    above = [one for one in points.values() if low(one) > most * (1 + CEILING)]
    top = max(points.values(), key=median_of)
    return verdict(
        not above,
        f"With the engine messages reach {named([top])} at most, over several links {span(wide)} "
        f"({measured_by(wide)}); published is less than {most:g}.",
        number(f"the most, {named([top])}", top),
        middle_number("over several links, median", wide),
        *_parts(node, points),
    )


def _parts(node: NodeModel, points: dict[Pair, Series]) -> Iterator[Number]:
    """Yield the fraction of the peak that messages over dual and over quad links reach."""
    found = by_class(node, points)
    for kind in (DUAL, QUAD):
        tier = found.get(kind)
        if tier:
            part = 100 * middle(tier) / peak_of(node, tier)
            yield computed(f"{kind.name} links, of the peak", part, "percent", *tier)


def _below_direct_access(observed: Observed) -> Finding:
    sent = messages(observed, False, _PAPER)
    read = accesses(observed, "read")
    pairs = [pair for pair in sent if pair in read]
    if not pairs:
        raise NotTestable("the session has no pair with messages (E9) and reads by kernel (E8)")
    lacks = sorted(100 * (1 - sent[pair].value / read[pair].value) for pair in pairs)
    used = [some[pair] for some in (sent, read) for pair in pairs]
    lack = statistics.median(lacks)
    least, most = value("paper-mpi-vs-direct-low"), value("paper-mpi-vs-direct-high")
    size = min(sent[pair].bytes for pair in pairs)
    if size < _PAPER and lack >= least - DEFICIT_POINTS:
        raise NotTestable(
            f"messages without the engine are {lack:.1f} % below reads by kernel, but the claim "
            f"is about messages of 1 GiB; those of {about(size)}, the largest here, lose more (E9)"
        )
    return verdict(
        least - DEFICIT_POINTS <= lack <= most + DEFICIT_POINTS,
        f"Without the engine messages are {lack:.1f} % below reads by kernel, the median of "
        f"{len(pairs)} ordered pairs with {lacks[0]:.1f} to {lacks[-1]:.1f} % "
        f"({measured_by([sent[pair] for pair in pairs])}); published are {least:g} to {most:g} % "
        f"of messages of 1 GiB.",
        computed("below reads by kernel, median", lack, "percent", *used),
        computed("below reads by kernel, least", lacks[0], "percent", *used),
        computed("below reads by kernel, most", lacks[-1], "percent", *used),
    )


def _faster_without(observed: Observed) -> Finding:
    node = needs.node(observed)
    on, off = messages(observed, True, _PAPER), messages(observed, False, _PAPER)
    alike = [pair for pair in on if pair in off and on[pair].program == off[pair].program]
    pairs = _wide(node, [pair for pair in alike if on[pair].bytes == off[pair].bytes])
    slower = [off[pair] for pair in pairs if not above(off[pair], on[pair])]
    with_engine, without = [on[pair] for pair in pairs], [off[pair] for pair in pairs]
    return verdict(
        not slower,
        f"Over several links messages of {len(pairs)} ordered pairs have {span(with_engine)} with "
        f"the engine ({measured_by(with_engine)}) and {span(without)} without "
        f"({measured_by(without)}); not faster without it: {named(slower)}.",
        middle_number("with the engine, median", with_engine),
        middle_number("without the engine, median", without),
    )


def _detours(
    node: NodeModel, points: dict[Pair, Series], words: str, hops: int | None = None
) -> Iterator[tuple[float, str, Number]]:
    """Yield, for each link width, how much slower indirect pairs are, in words and as a number.

    :param hops: the number of hops of the indirect pairs; None for any.
    """
    found = by_class(node, points)
    for direct in (kind for kind in found if kind.direct):
        indirect = [
            one
            for kind, some in found.items()
            if kind.links == direct.links and not kind.direct and hops in (None, kind.hops)
            for one in some
        ]
        if indirect:
            lack = 1 - middle(indirect) / middle(found[direct])
            text = (
                f"{middle(indirect):.1f} GB/s beside {middle(found[direct]):.1f} of {direct.name} "
                f"links{words} ({round(-100 * lack, 1) + 0.0:+.1f} %)"
            )
            what = f"less than direct {direct.name} links{words}"
            yield lack, text, computed(what, 100 * lack, "percent", *indirect, *found[direct])


def _non_neighbours(observed: Observed) -> Finding:
    node = needs.node(observed)
    found = []
    size = _PAPER
    for engine, words in ((True, " with the engine"), (False, " without it")):
        try:
            points = messages(observed, engine, _PAPER)
        except NotTestable:
            continue
        first = {pair: point for pair, point in points.items() if pair[0] == 0}
        size = min([size, *(point.bytes for point in first.values())])
        found += list(_detours(node, first, words))
    if not found:
        raise NotTestable(
            "the session has no messages from device 0 to neighbours and to others (E9)"
        )
    said = "; ".join(text for _, text, _ in found)
    lacks = [lack for lack, _, _ in found]
    if size < _PAPER and max(lacks) > NO_DIFFERENCE:
        raise NotTestable(
            f"messages from device 0 to devices that are not neighbours have {said}, but the claim "
            f"is about messages of 1 GiB; those of {about(size)} can lose more (E9)"
        )
    return verdict(
        all(abs(lack) <= NO_DIFFERENCE for lack in lacks),
        f"Messages from device 0 to devices that are not neighbours have {said}.",
        *(one for _, _, one in found),
    )


def _two_hops_slower(observed: Observed) -> Finding:
    node = needs.node(observed)
    found = list(_detours(node, messages(observed, False, _LAB), "", hops=2))
    if not found:
        raise NotTestable("the session has no messages of neighbours and over two hops (E9)")
    return verdict(
        all(SLIGHTLY_LEAST <= lack <= SLIGHTLY_MOST for lack, _, _ in found),
        f"Over two hops without the engine pairs have {'; '.join(text for _, text, _ in found)}.",
        *(one for _, _, one in found),
    )


def _inside(observed: Observed) -> Points:
    found = by_class(needs.node(observed), messages(observed, False, _LAB)).get(QUAD)
    if not found:
        raise NotTestable("the session has no messages within a package (E9)")
    return {point.pair: point for point in found}


INSIDE = Group("a message within a package, without the engine,", _inside, "ordered pair")

CLAIMS = (
    Claim(
        id="mpi-engine-below-50",
        statement="Messages of MPI that go by engine stay below 50 GB/s, over any link.",
        document="paper",
        where="V.C and figure 10",
        rule="no pair is above 50 GB/s, 1 % allowed, by which the paper's own copies of that level "
        "are above it; pairs of several links are among them",
        requires=needs.tiers,
        judge=_engine_ceiling,
        experiments=("E9",),
        records=(
            "paper-mpi-sdma-ceiling",
            "paper-mpi-sdma-dual-util",
            "paper-mpi-sdma-quad-util",
            "lab-sdma-max",
        ),
        built_in="a message takes one engine, of the 50 GB/s that AMD's lab notes state",
    ),
    Claim(
        id="mpi-below-direct-access",
        statement="Messages of MPI without the engine are 10 to 15 % below direct access by "
        "kernel.",
        document="paper",
        where="V.C and figure 10",
        rule="the median over ordered pairs of what a message lacks of a read by kernel of the "
        "same pair is in that range, 2 points either way as the paper's own like values differ; "
        "of 1 GiB, the document's size, where the session has it; smaller ones lack more, which "
        "then decides nothing",
        requires=needs.tiers,
        judge=_below_direct_access,
        experiments=("E8", "E9"),
        records=("paper-mpi-vs-direct-low", "paper-mpi-vs-direct-high"),
    ),
    Claim(
        id="mpi-faster-without-engine",
        statement="Over dual and quad links MPI is faster without the engine.",
        document="paper",
        where="V.C and figure 10",
        rule="each ordered pair whose widest path has several links is faster without it, the "
        "intervals apart, by one program and of one size",
        requires=needs.tiers,
        judge=_faster_without,
        experiments=("E9",),
        records=("lab-osubw-sdma0-01", "lab-osubw-sdma1-01"),
        built_in="kernels are limited by the links alone, engines by their peak too",
    ),
    Claim(
        id="mpi-non-neighbours",
        statement="From device 0 messages of MPI to devices that are no neighbours are as fast as "
        "to neighbours.",
        document="paper",
        where="V.C and figure 10",
        rule="of pairs from device 0, which the figure has, the medians of each width with and "
        "without a direct link differ by 5 % at most, with the engine and without: the paper gives "
        "no number, and tells 10 % as a difference; of 1 GiB, its size; smaller ones that lack "
        "more decide nothing (mpi-two-hops-slower is of 16 MiB)",
        requires=needs.tiers,
        judge=_non_neighbours,
        experiments=("E9",),
        built_in="a path of several hops is as fast as its narrowest hop",
    ),
    Claim(
        id="mpi-two-hops-slower",
        statement="Over two hops messages without the engine are slightly slower than over one.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="of each width the median of pairs over two hops is 2.5 to 15 % below that of direct "
        "ones; the document's own are 5.3 to 10.2 %; of 16 MiB, its size, where the session has it",
        requires=needs.tiers,
        judge=_two_hops_slower,
        experiments=("E9",),
        records=(
            "lab-osubw-sdma0-02",
            "lab-osubw-sdma0-03",
            "lab-osubw-sdma0-06",
            "lab-osubw-sdma0-07",
        ),
        built_in="a path of several hops is as fast as its narrowest hop",
    ),
    Claim(
        id="mpi-70-percent",
        statement="Messages without the engine reach about 70 % of the links' peak within a "
        "package.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="the median within packages is 70 % of the peak, 5 points either way for about; the "
        "document's own is 71.1 %, its values of other links are 76 to 78 %; of 16 MiB, its size, "
        "where the session has it",
        requires=needs.tiers,
        judge=rules.part_of_peak(INSIDE, rules.LINKS, ("lab-eff",), AROUND_POINTS),
        experiments=("E9",),
        records=("lab-eff", "lab-osubw-sdma0-01"),
        rests_on=("simulation.message_us",),
    ),
)
