"""Claims on collectives of MPI (E10, E12) and of RCCL or NCCL (E11), and on MPI's data."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import latencies
from fabricheck.papers.claims.groups import (
    WHOLE,
    Group,
    Values,
    by_subject,
    combined,
    group,
    measured,
)
from fabricheck.papers.claims.kinds import Limits, absent, at_least, at_most, level, order, ratio
from fabricheck.papers.claims.model import (
    Claim,
    Finding,
    NotTestable,
    computed,
    number,
    value,
    verdict,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

#: Collectives of one pass, and of two passes: one that gathers, one that distributes.
ONE_PASS, TWO_PASSES = ("reduce", "bcast"), ("allreduce", "reduce_scatter", "allgather")
EVERY = (*ONE_PASS, *TWO_PASSES)
#: The document gives no number for "close to the bound"; a fifth is used.
CLOSE = 0.20
#: The smallest part that remains of a size rounded down for the ranks.
ROUNDED = 0.99

#: An operation and the devices that take part, in ascending order.
Key = tuple[str, tuple[int, ...]]
Times = dict[Key, Series]


def _rccl(observed: Observed) -> Times:
    """Return RCCL's times of one size by set of devices.

    Out-of-place times and one thread per device are preferred, as in the paper.
    """
    what = f"collectives of RCCL of {about(_size())}"
    points = needs.series(observed, what, _is_of_size, experiment="E11", unit="us", role="single")
    return _by_set(sorted(points, key=lambda point: (bool(point.in_place), not point.in_threads)))


def _mpi(observed: Observed) -> Times:
    """Return MPI's times of one size by set of devices.

    OSU's times are preferred, as in the paper; the program ``mpi`` supplies the sets that OSU
    lacks. The smallest of several times counts, as with the engines and without.
    """
    points = needs.series(
        observed,
        f"collectives of MPI of {about(_size())} on memory of devices",
        _is_of_size,
        experiment="E10",
        unit="us",
        role="single",
        source_memory="device",
    )
    return _by_set(sorted(points, key=lambda point: (point.program != "osu", point.value)))


def _is_of_size(point: Series) -> bool:
    """Whether a series is of the paper's size, which RCCL's tests round down for the ranks."""
    return ROUNDED * _size() <= point.bytes <= _size()


def _by_set(points: Iterable[Series]) -> Times:
    sets = grouped(((point.operation, tuple(sorted(point.devices))), point) for point in points)
    return {key: first for key, (first, *_) in sets.items()}


def _by_count(times: Times) -> dict[tuple[str, int], Series]:
    """Return one time per number of devices, that of the first devices as in the paper's script.

    If the first devices have no time, another set of the same size is used.
    """
    ordered = sorted(times, key=lambda key: key[1] != tuple(range(len(key[1]))))
    counts = grouped(((name, len(devices)), times[name, devices]) for name, devices in ordered)
    return {key: first for key, (first, *_) in counts.items()}


def _size() -> int:
    return int(value("paper-coll-size"))


def _mpi_over_rccl(*, broadcast: bool) -> Group:
    """Return MPI's time over RCCL's by collective, medians over the sets of devices of both."""

    def choose(observed: Observed) -> Values:
        rccl, mpi = _rccl(observed), _mpi(observed)
        keys = {name: [key for key in rccl if key in mpi and key[0] == name] for name in EVERY}
        lacking = [name for name in EVERY if not keys[name]]
        if lacking:
            raise NotTestable(
                f"the session has no times of both MPI (E10) and RCCL (E11) of "
                f"{listed(lacking)} on the same devices"
            )
        return {
            name: combined(
                statistics.median(mpi[key].value / rccl[key].value for key in keys[name]),
                "ratio",
                [measured(times[key]) for key in keys[name] for times in (rccl, mpi)],
            )
            for name in EVERY
            if (name == "bcast") == broadcast
        }

    which = "broadcast" if broadcast else "all collectives but broadcast"
    return Group(f"MPI's time over RCCL's of {which}", choose, "collective", "each")


def _require(
    times: Collection[tuple[str, int]], keys: Sequence[tuple[str, int]], what: str
) -> None:
    lacking = dict.fromkeys(name for name, count in keys if (name, count) not in times)
    if lacking:
        raise NotTestable(f"the session has no RCCL with {what} devices of {listed(lacking)} (E11)")


def _rccl_of(devices: int) -> Group:
    """Return RCCL's times of the three collectives that fall at eight devices."""
    names = (*ONE_PASS, "allreduce")

    def choose(observed: Observed) -> Values:
        times = _by_count(_rccl(observed))
        _require(times, [(name, n) for name in names for n in (7, 8)], "seven and with eight")
        return by_subject({name: times[name, devices] for name in names})

    return Group(f"RCCL's times with {devices} devices", choose, "collective", "each")


def _two_passes(*, more: bool) -> Group:
    """Return RCCL's times of two passes by collective and number of devices beyond two.

    :param more: with that number of devices, or with two.
    """

    def choose(observed: Observed) -> Values:
        times = _by_count(_rccl(observed))
        keys = [
            key for key in times if key[0] in TWO_PASSES and key[1] > 2 and (key[0], 2) in times
        ]
        there = {(name, 3) for name, _ in keys}
        _require(there, [(name, 3) for name in TWO_PASSES], "two and with more")
        return by_subject({key: times[key if more else (key[0], 2)] for key in sorted(keys)})

    which = "more than two" if more else "two"
    return Group(f"RCCL's times of two passes with {which} devices", choose, "collective", "each")


@group("RCCL's collectives of two passes with two devices", "collective")
def _with_two(observed: Observed) -> Values:
    times = _by_count(_rccl(observed))
    two = {name: times[name, 2] for name in TWO_PASSES if (name, 2) in times}
    needs.some([*two.values()], "RCCL's collectives of two passes with two devices", "E11")
    return by_subject(two)


@group("twice the least latency of a copy", WHOLE)
def _bound(observed: Observed) -> Values:
    least = measured(min(latencies(observed).values(), key=lambda latency: latency.value))
    return {WHOLE: combined(2 * least.value, least.unit, [least])}


def _not_below_bound(observed: Observed) -> Finding:
    known = latencies(observed)
    least = min(known.values(), key=lambda value: value.value)
    points: list[Series] = []
    for read in (_mpi, _rccl):
        try:
            points += read(observed).values()
        except NotTestable:
            continue
    needs.some(points, f"collectives of {about(_size())} on memory of devices", "E10, E11")
    over = [point.value / (_passes(point.operation) * least.value) for point in points]
    fast = [
        point
        for point in points
        if measured(point).high < _passes(point.operation) * measured(least).low
    ]
    if not fast and {_passes(point.operation) for point in points} != {1, 2}:
        raise NotTestable(
            f"the session has collectives of {about(_size())} of one pass or of two only, "
            f"{listed(sorted({point.operation for point in points}))} (E10, E11)"
        )
    most = max(point.taking_part or 0 for point in points)
    if fast and len(known) < most * (most - 1):
        raise NotTestable(
            f"the session has latencies of {len(known)} of {most * (most - 1)} ordered pairs "
            "(E7), which may not include the least"
        )
    nearest = points[over.index(min(over))]
    below = listed(
        f"{series.operation} {series.value:.1f} us ({series.program})" for series in fast[:3]
    )
    return verdict(
        not fast,
        f"The least latency of a copy is {least.value:.2f} us, so collectives of one pass take "
        f"that and others {2 * least.value:.2f}; of {len(points)} times {len(fast)} are below "
        f"their bound{': ' + below if below else ''}; nearest to it is {nearest.operation} by "
        f"{nearest.program} with {nearest.value:.1f} us.",
        number("bound of one pass", least),
        computed("bound of two passes", 2 * least.value, "us", least),
        number(
            f"nearest to its bound, {nearest.operation}, {nearest.taking_part} devices", nearest
        ),
    )


def _passes(operation: str) -> int:
    return 1 if operation in ONE_PASS else 2


_SIZE = "of 1 MiB, as each benchmark calls its size"

CLAIMS = (
    Claim(
        id="rccl-beats-mpi",
        statement="RCCL (NCCL on NVIDIA devices) is faster than MPI in all collectives but "
        "broadcast.",
        document="paper",
        where="VI and figure 11",
        rule="of each collective the median over the sets of devices that both have of MPI's time "
        "over RCCL's is above 1, of broadcast it is not; MPI's is OSU's, as in the document, where "
        "the session has it, and of engines on and off the lesser, since the document does not say "
        f"which; {_SIZE}; which is faster, so no tolerance",
        requires=needs.devices,
        judge=level(
            (_mpi_over_rccl(broadcast=False), at_least(1.0)),
            (_mpi_over_rccl(broadcast=True), at_most(1.0)),
        ),
        experiments=("E10", "E11"),
        records=("paper-coll-rccl-vs-mpi", "paper-coll-size"),
    ),
    Claim(
        id="rccl-falls-at-eight",
        statement="RCCL's reduce, broadcast and allreduce take less time with eight devices than "
        "with seven.",
        document="paper",
        where="VI and figure 12",
        rule=f"each of the three takes less, intervals apart where there are any; {_SIZE}; the "
        "document does not state the size of this figure",
        requires=needs.tiers,
        judge=order(_rccl_of(7), _rccl_of(8)),
        experiments=("E11",),
        records=("paper-coll-size",),
    ),
    Claim(
        id="rccl-grows-beyond-two",
        statement="RCCL's collectives of two passes take longer with more than two devices.",
        document="paper",
        where="VI and figure 12",
        rule=f"allreduce, reduce_scatter and allgather take longer with every greater number of "
        f"devices than with two; {_SIZE}; the document does not state the size of this figure",
        requires=needs.tiers,
        judge=order(_two_passes(more=True), _two_passes(more=False)),
        experiments=("E11",),
        records=("paper-coll-size",),
    ),
    Claim(
        id="collectives-bound",
        statement="A collective of one pass takes at least the least latency of a copy between two "
        "devices, one of two passes twice as long: 8.7 and 17.4 us.",
        document="paper",
        where="VI",
        rule=f"no time, by MPI or RCCL, is below the bound that this node's own least latency "
        f"gives, and there are times of both kinds; {_SIZE}; a bound, so no tolerance beside the "
        "intervals",
        requires=needs.devices,
        judge=_not_below_bound,
        experiments=("E7", "E10", "E11"),
        records=("paper-coll-bound-1", "paper-coll-bound-2", "paper-coll-size"),
        rests_on=("simulation.copy_start_us",),
    ),
    Claim(
        id="rccl-two-close-to-bound",
        statement="With two devices RCCL's collectives of two passes come close to the bound of "
        "17.4 us.",
        document="paper",
        where="VI and figure 12",
        rule=f"the least of their times is within a fifth of twice the node's own least latency; "
        f"the document has no number for close; {_SIZE}; it does not state that of this figure",
        requires=needs.tiers,
        judge=ratio(_with_two.whole("least"), _bound, Limits(1.0, part=CLOSE)),
        experiments=("E7", "E11"),
        records=("paper-rccl-2thr", "paper-coll-size"),
    ),
    Claim(
        id="mpi-right-data",
        statement="An MPI that takes buffers of devices moves right data between them.",
        document="lab-notes",
        where="GPU-aware MPI",
        rule="no message and no collective of E12 has a wrong byte; what was left out, as an MPI "
        "that crashes in it has it, is named and not judged",
        requires=needs.devices,
        judge=absent(
            "messages of MPI whose data were compared on devices",
            "E12",
            lambda observed, point: point.source_memory == "device",
        ),
        experiments=("E12",),
        built_in="its MPI moves data within one process, which says nothing of another MPI",
    ),
)
