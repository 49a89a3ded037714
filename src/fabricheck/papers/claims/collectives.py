"""Claims on collectives of MPI (E10, E12) and of RCCL or NCCL (E11), and on MPI's data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from fabricheck.core.amounts import about
from fabricheck.core.text import count
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import latencies
from fabricheck.papers.claims.judging import above, high, low, median_of
from fabricheck.papers.claims.model import (
    Claim,
    Finding,
    NotTestable,
    computed,
    counted,
    number,
    verdict,
)
from fabricheck.papers.claims.published import value
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

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
    found = _of_size(observed.select(experiment="E11", unit="us", role="single"))
    needs.some(found, f"collectives of RCCL of {about(_size())}", "E11")
    return _by_set(sorted(found, key=lambda one: (bool(one.in_place), not one.in_threads)))


def _mpi(observed: Observed) -> Times:
    """Return MPI's times of one size by set of devices.

    OSU's times are preferred, as in the paper; the program ``mpi`` supplies the sets that OSU
    lacks. Of several times, as with the engines and without, the smallest counts.
    """
    found = [
        one
        for one in _of_size(observed.select(experiment="E10", unit="us", role="single"))
        if one.source_memory == "device"
    ]
    needs.some(found, f"collectives of MPI of {about(_size())} on memory of devices", "E10")
    return _by_set(sorted(found, key=lambda one: (one.program != "osu", one.value)))


def _of_size(points: Iterable[Series]) -> list[Series]:
    """Return the series of the paper's size, which RCCL's tests round down for the ranks."""
    size = _size()
    return [one for one in points if ROUNDED * size <= one.bytes <= size]


def _by_set(points: Iterable[Series]) -> Times:
    found: Times = {}
    for one in points:
        found.setdefault((one.operation, tuple(sorted(one.devices))), one)
    return found


def _by_count(times: Times) -> dict[tuple[str, int], Series]:
    """Return one time per number of devices, that of the first devices as in the paper's script.

    If the first devices have no time, another set of the same size is used.
    """
    found: dict[tuple[str, int], Series] = {}
    for operation, devices in sorted(times, key=lambda key: key[1] != tuple(range(len(key[1])))):
        found.setdefault((operation, len(devices)), times[operation, devices])
    return found


def _size() -> int:
    return int(value("paper-coll-size"))


def _rccl_faster(observed: Observed) -> Finding:
    rccl, mpi = _rccl(observed), _mpi(observed)
    both = [key for key in rccl if key in mpi]
    lacking = [name for name in EVERY if name not in {operation for operation, _ in both}]
    if lacking:
        raise NotTestable(
            f"the session has no times of both MPI (E10) and RCCL (E11) of {', '.join(lacking)} "
            f"on the same devices"
        )
    of_name = {name: [key for key in both if key[0] == name] for name in EVERY}
    ratios = {
        name: statistics.median(mpi[key].value / rccl[key].value for key in keys)
        for name, keys in of_name.items()
    }
    sets = sorted({devices for _, devices in both}, key=lambda one: (len(one), one))
    listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    programs = " and ".join(sorted({mpi[key].program for key in both}))
    return verdict(
        all((ratio > 1) == (name != "bcast") for name, ratio in ratios.items()),
        f"MPI's time ({programs}) over that of {rccl[both[0]].program} is {listed}, the median "
        f"over {count(len(sets), 'set')} of {_counts(sets)} devices; published is that RCCL is "
        "faster in all but bcast.",
        *(
            computed(
                f"{name}, MPI over RCCL",
                ratios[name],
                "ratio",
                *(times[key] for key in keys for times in (rccl, mpi)),
            )
            for name, keys in of_name.items()
        ),
    )


def _counts(sets: Sequence[tuple[int, ...]]) -> str:
    """Return the numbers of devices, as "2 to 8"."""
    return " to ".join(dict.fromkeys(str(len(one)) for one in (sets[0], sets[-1])))


def _falls_at_eight(observed: Observed) -> Finding:
    rccl = _by_count(_rccl(observed))
    names = (*ONE_PASS, "allreduce")
    lacking = [name for name in names for n in (7, 8) if (name, n) not in rccl]
    if lacking:
        raise NotTestable(
            f"the session has no RCCL with seven and with eight devices of "
            f"{', '.join(dict.fromkeys(lacking))} (E11)"
        )
    falls = [name for name in names if above(rccl[name, 7], rccl[name, 8])]
    texts = [f"{name} {rccl[name, 7].value:.1f} to {rccl[name, 8].value:.1f}" for name in names]
    return verdict(
        len(falls) == len(names),
        f"From seven to eight devices RCCL's times go from {', '.join(texts)} us.",
        *(number(f"{name}, {n} devices", rccl[name, n]) for name in names for n in (7, 8)),
    )


def _grows_beyond_two(observed: Observed) -> Finding:
    rccl = _by_count(_rccl(observed))
    more = [key for key in rccl if key[0] in TWO_PASSES and key[1] > 2 and (key[0], 2) in rccl]
    lacking = [name for name in TWO_PASSES if name not in {operation for operation, _ in more}]
    if lacking:
        raise NotTestable(
            f"the session has no RCCL with two and with more devices of {', '.join(lacking)} (E11)"
        )
    not_slower = [key for key in more if not above(rccl[key], rccl[key[0], 2])]
    texts = [
        f"{name} {rccl[name, 2].value:.1f} with two and at least "
        f"{min(rccl[key].value for key in more if key[0] == name):.1f} with more"
        for name in TWO_PASSES
    ]
    return verdict(
        not not_slower,
        f"RCCL's times in us: {', '.join(texts)}.",
        *(number(f"{name}, two devices", rccl[name, 2]) for name in TWO_PASSES),
        *(number(f"{name}, {n} devices", rccl[name, n]) for name, n in sorted(more)),
    )


def _not_below_bound(observed: Observed) -> Finding:
    known = latencies(observed)
    least = min(known.values(), key=median_of)
    points: list[Series] = []
    for read in (_mpi, _rccl):
        try:
            points += read(observed).values()
        except NotTestable:
            continue
    needs.some(points, f"collectives of {about(_size())} on memory of devices", "E10, E11")
    over = [one.value / (_passes(one.operation) * least.value) for one in points]
    fast = [one for one in points if high(one) < _passes(one.operation) * low(least)]
    if not fast and {_passes(one.operation) for one in points} != {1, 2}:
        raise NotTestable(
            f"the session has collectives of {about(_size())} of one pass or of two only, "
            f"{', '.join(sorted({one.operation for one in points}))} (E10, E11)"
        )
    most = max(one.taking_part or 0 for one in points)
    if fast and len(known) < most * (most - 1):
        raise NotTestable(
            f"the session has latencies of {len(known)} of {most * (most - 1)} ordered pairs "
            "(E7), which may not include the least"
        )
    nearest = points[over.index(min(over))]
    told = ", ".join(f"{one.operation} {one.value:.1f} us ({one.program})" for one in fast[:3])
    return verdict(
        not fast,
        f"The least latency of a copy is {least.value:.2f} us, so collectives of one pass take "
        f"that and others {2 * least.value:.2f}; of {len(points)} times {len(fast)} are below "
        f"their bound{': ' + told if told else ''}; nearest to it is {nearest.operation} by "
        f"{nearest.program} with {nearest.value:.1f} us.",
        number("bound of one pass", least),
        computed("bound of two passes", 2 * least.value, "us", least),
        number(
            f"nearest to its bound, {nearest.operation}, {nearest.taking_part} devices", nearest
        ),
    )


def _close_to_bound(observed: Observed) -> Finding:
    least = min(latencies(observed).values(), key=median_of)
    rccl = _by_count(_rccl(observed))
    two = [rccl[name, 2] for name in TWO_PASSES if (name, 2) in rccl]
    needs.some(two, "RCCL's collectives of two passes with two devices", "E11")
    bound, lowest = 2 * least.value, min(two, key=median_of)
    return verdict(
        abs(lowest.value / bound - 1) <= CLOSE,
        f"With two devices RCCL's {lowest.operation} takes {lowest.value:.1f} us, the least of "
        f"{len(two)}; twice the least latency of a copy is {bound:.1f}.",
        number(f"{lowest.operation}, two devices", lowest),
        computed("twice the least latency", bound, "us", least),
    )


def _passes(operation: str) -> int:
    return 1 if operation in ONE_PASS else 2


def _right_data(observed: Observed) -> Finding:
    # All series, because `Observed` leaves out those with wrong data.
    found = [
        one
        for one in observed.series
        if one.experiment == "E12"
        and one.source_memory == "device"
        and not one.document["faults_injected"]
    ]
    needs.some(found, "messages of MPI whose data were compared on devices", "E12")
    wrong = [one for one in found if one.errors]
    operations = sorted({one.operation for one in found})
    skipped = {
        entry["operation"]
        for one in found
        for entry in one.document.get("skipped") or ()
        if entry["operation"] not in operations
    }
    most = max(one.taking_part or 0 for one in found)
    told = sorted({f"{one.operation} of {about(one.bytes)}" for one in wrong})
    beside = f"; not tested: {', '.join(sorted(skipped))}" if skipped else ""
    checked = sum(one.bytes_checked for one in found)
    clock = found[0].clock
    return verdict(
        not wrong,
        f"Of {len(found)} series of {', '.join(operations)} on {most} devices {len(wrong)} had "
        f"wrong data{': ' + ', '.join(told[:3]) if told else ''}{beside}.",
        counted("series", len(found), "series", clock),
        counted("with wrong data", len(wrong), "series", clock),
        counted("compared", checked, "B", clock),
    )


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
        judge=_rccl_faster,
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
        judge=_falls_at_eight,
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
        judge=_grows_beyond_two,
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
        judge=_close_to_bound,
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
        judge=_right_data,
        experiments=("E12",),
        built_in="its MPI moves data within one process, which says nothing of another MPI",
    ),
)
