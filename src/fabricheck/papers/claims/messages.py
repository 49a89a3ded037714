"""Claims on messages of MPI between two devices (E9): of the paper, AMD's lab notes, and JSC."""

from __future__ import annotations

import statistics
from dataclasses import replace

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import (
    DUAL,
    QUAD,
    SINGLE,
    accesses,
    by_engine,
    by_pair,
    every_pair,
    over,
    wide,
)
from fabricheck.papers.claims.groups import (
    LINKS,
    MEMORY,
    WHOLE,
    Group,
    Value,
    Values,
    by_subject,
    combined,
    group,
)
from fabricheck.papers.claims.kinds import (
    Limits,
    at_most,
    both,
    equal,
    level,
    order,
    ratio,
)
from fabricheck.papers.claims.model import Claim, NotTestable, value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Pair, Series, largest

#: The sizes of the messages in the paper, in AMD's lab notes, and in JSC's document.
PAPER, LAB, LARGE, SMALL = 1 << 30, 16 << 20, 64 << 20, 4 << 20


def _device_messages(observed: Observed, engine: bool | None) -> list[list[Series]]:
    """Return the bandwidths of messages between two devices, those of program mpi before OSU's.

    :param engine: with the copy engines or without; None for either, as on NVIDIA.
    :raises NotTestable: when there are none.
    """
    words = {None: "", True: " with the copy engines", False: " without the copy engines"}
    messages = needs.series(
        observed,
        f"messages of MPI between devices{words[engine]}",
        lambda point: point.pair is not None and engine in (None, by_engine(point)),
        experiment="E9",
        operation="bandwidth",
        role="single",
        source_memory="device",
        destination_memory="device",
    )
    by_program = [
        [series for series in messages if series.program == name] for name in ("mpi", "osu")
    ]
    return [points for points in by_program if points]


def _candidates(observed: Observed, engine: bool | None, size: int) -> list[dict[Pair, Series]]:
    """Return sets of messages of one program by ordered pair, the set nearest to a document first.

    Messages of the document's size come first, then the largest messages of a program that has
    larger ones, then the largest of the others. Messages of program mpi come before OSU's.

    :raises NotTestable: when no message has at least `needs.LARGE` bytes.
    """
    by_program = _device_messages(observed, engine)
    needs.large([point for points in by_program for point in points], "messages of MPI", "E9")
    by_program = [
        [point for point in points if point.bytes >= needs.LARGE] for points in by_program
    ]
    exact = [[point for point in points if point.bytes == size] for points in by_program]
    above = [points for points in by_program if any(point.bytes > size for point in points)]
    return [by_pair(points) for points in (*exact, *above, *by_program) if points]


def messages(*, engine: bool | None, size: int) -> Group:
    """Return the message of each ordered pair nearest to a document's size, of one program."""
    words = {None: "", True: " with the engine", False: " without the engine"}
    return Group(
        f"messages{words[engine]}",
        lambda observed: by_subject(_candidates(observed, engine, size)[0]),
        "ordered pair",
    )


@group("messages with the engine, over several links among them", "ordered pair", "each")
def _engine_messages(observed: Observed) -> Values:
    values = messages(engine=True, size=PAPER).choose(observed)
    wide(messages(engine=True, size=PAPER), "E9").choose(observed)
    return values


def _alike(*, engine: bool) -> Group:
    """Return messages of pairs with several links, by pair, program and size."""
    group = wide(messages(engine=engine, size=PAPER), "E9")

    def choose(observed: Observed) -> Values:
        return {
            (*pair, point.series[0].program, about(point.series[0].bytes)): point
            for pair, point in group.choose(observed).items()
        }

    return Group(group.name, choose, "ordered pair")


def _indirect(
    observed: Observed,
    engine: bool,
    size: int,
    *,
    hops: int | None = None,
    source: int | None = None,
) -> dict[str, Value]:
    """Return by link width by how much messages of indirect pairs differ from direct ones, in %.

    :param hops: the number of hops of the indirect pairs; None for any.
    :param source: the sending device; None for any.
    """
    node = needs.node(observed)
    by_class = grouped(
        (node.link_class(*pair), point)
        for pair, point in messages(engine=engine, size=size).choose(observed).items()
        if source in (None, pair[0])
    )
    values = {}
    for direct in (kind for kind in by_class if kind.direct):
        indirect: list[Value] = []
        for kind, some in by_class.items():
            if kind.links == direct.links and not kind.direct and hops in (None, kind.hops):
                indirect += some
        if indirect:
            rates = [
                statistics.median(point.value for point in some)
                for some in (indirect, by_class[direct])
            ]
            change = 100 * (rates[0] / rates[1] - 1)
            words = "with the engine" if engine else "without it"
            values[f"{direct.name} links {words}"] = combined(
                change, "percent", [*indirect, *by_class[direct]]
            )
    return values


@group("messages from device 0 to others than neighbours, relative to neighbours", "width", "each")
def _non_neighbours(observed: Observed) -> Values:
    values: dict[str, Value] = {}
    for engine in (True, False):
        try:
            values |= _indirect(observed, engine, PAPER, source=0)
        except NotTestable:
            continue
    if not values:
        raise NotTestable(
            "the session has no messages from device 0 to neighbours and to others (E9)"
        )
    return values


@group("messages over two hops, relative to one", "width", "each")
def _two_hops(observed: Observed) -> Values:
    values = _indirect(observed, False, LAB, hops=2)
    if not values:
        raise NotTestable("the session has no messages of neighbours and over two hops (E9)")
    return values


def _parts(group: Group, *, direct: bool) -> Group:
    """Return the parts of their path's peak that messages of direct or of other pairs reach."""
    name = f"{group.name} between {'neighbours' if direct else 'others'}"
    chosen = group.where(lambda node, pair: node.link_class(*pair).direct == direct, name, "E9")
    return chosen.part_of(LINKS)


_JSC = messages(engine=False, size=LARGE)


def _of_both_sizes(size: int) -> Group:
    """Return the messages of one of JSC's sizes, of the first program that has both of a pair."""

    def choose(observed: Observed) -> Values:
        for points in _device_messages(observed, engine=False):
            of_size = {
                each: by_pair(series for series in points if series.bytes == each)
                for each in (LARGE, SMALL)
            }
            pairs = [pair for pair in of_size[LARGE] if pair in of_size[SMALL]]
            if pairs:
                return by_subject({pair: of_size[size][pair] for pair in pairs})
        raise NotTestable("the session has no messages of both 4 and 64 MiB of a pair (E9)")

    return Group(f"messages of {about(size)}", choose, "ordered pair")


def _change(*, direct: bool) -> Group:
    """Return the change of the part of the peak from 64 to 4 MiB, in percentage points."""

    def choose(observed: Observed) -> Values:
        many, few = (
            _parts(_of_both_sizes(size), direct=direct).choose(observed) for size in (LARGE, SMALL)
        )
        change = statistics.median(point.value for point in few.values()) - statistics.median(
            point.value for point in many.values()
        )
        return {WHOLE: combined(change, "percentage points", [*many.values(), *few.values()])}

    which = "neighbours" if direct else "others"
    return Group(f"the change from 64 to 4 MiB between {which}, of the links' peak", choose, WHOLE)


_ALL_MESSAGES = every_pair(
    Group(
        "messages of MPI",
        lambda observed: by_subject(max(_candidates(observed, None, LARGE), key=len)),
        "ordered pair",
    ),
    "E9",
)


def _within_devices(observed: Observed) -> Values:
    """Return by device the messages between two ranks on it, of JSC's size or larger.

    OSU's messages come first, as in the document.
    """
    points = needs.series(
        observed,
        "messages of MPI between two ranks on one device",
        lambda point: point.source_device == point.destination_device,
        experiment="E9",
        operation="bandwidth",
        role="single",
        source_memory="device",
    )
    of_tool = [point for point in points if point.program == "osu"] or points
    exact = [point for point in of_tool if point.bytes == LARGE]
    large = exact or [point for point in of_tool if point.bytes > LARGE]
    needs.some(large, f"such messages of {about(LARGE)} or more", "E9")
    return by_subject(largest(large, lambda point: point.source_device))


WITHIN = Group("messages between two ranks on one device", _within_devices)

CLAIMS = (
    Claim(
        id="mpi-engine-below-50",
        statement="Messages of MPI that go by engine stay below 50 GB/s, over any link.",
        document="paper",
        where="V.C and figure 10",
        rule="no pair is above 50 GB/s, 1 % allowed, by which the paper's own copies of that level "
        "are above it; pairs of several links are among them",
        requires=needs.tiers,
        judge=level((_engine_messages, at_most("paper-mpi-sdma-ceiling", part=0.01))),
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
        judge=level(
            (
                replace(
                    messages(engine=False, size=PAPER).over(accesses("read"), change=True),
                    statistic="median",
                ),
                Limits(
                    lambda: -value("paper-mpi-vs-direct-high"),
                    lambda: -value("paper-mpi-vs-direct-low"),
                    points=2.0,
                ),
            ),
            size=PAPER,
            held=False,
        ),
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
        judge=order(_alike(engine=False), _alike(engine=True)),
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
        judge=level((_non_neighbours, Limits(-5.0, 5.0)), size=PAPER),
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
        judge=level((_two_hops, Limits(-15.0, -2.5))),
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
        judge=level(
            (
                over(messages(engine=False, size=LAB), QUAD, "E9").part_of(LINKS),
                Limits("lab-eff", points=5.0),
            )
        ),
        experiments=("E9",),
        records=("lab-eff", "lab-osubw-sdma0-01"),
        rests_on=("simulation.message_us",),
    ),
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
        judge=level(
            *(
                (over(messages(engine=False, size=LARGE), kind, "E9"), Limits(record, part=0.10))
                for kind, record in {
                    QUAD: "jsc-samegpu",
                    DUAL: "jsc-dual",
                    SINGLE: "jsc-single",
                }.items()
            ),
            size=LARGE,
        ),
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
        judge=both(
            level(
                (_parts(_JSC, direct=True), Limits("jsc-util-direct", points=10.0)),
                (_parts(_JSC, direct=False), Limits("jsc-util-indirect", points=10.0)),
                size=LARGE,
            ),
            ratio(_parts(_JSC, direct=False), _parts(_JSC, direct=True), at_most(1.0)),
        ),
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
        judge=level(
            (_change(direct=True), Limits("jsc-util-small-direct", part=0.5)),
            (_change(direct=False), Limits("jsc-util-small-indirect", part=0.5)),
        ),
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
        judge=equal(_ALL_MESSAGES, _ALL_MESSAGES.whole("least"), at_most(1.0, part=0.02)),
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
        judge=level((_ALL_MESSAGES.part_of(LINKS), Limits("jsc-a100-util", points=3.0))),
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
        judge=level((WITHIN.part_of(MEMORY), Limits("jsc-a100-self-util", points=3.0))),
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
        judge=level(
            (
                WITHIN,
                Limits(lambda: value("jsc-a100-self") - value("jsc-a100-vs-mi250-self"), part=0.10),
            )
        ),
        experiments=("E9",),
        records=("jsc-a100-self", "jsc-a100-vs-mi250-self"),
    ),
)
