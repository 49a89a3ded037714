"""Claims on a kernel that computes while its device copies (E2, E3, E7, E8)."""

from __future__ import annotations

import statistics

from fabricheck.core.vocabulary import COMPUTE
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, Number, computed, verdict
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The fraction of its own rate that an undisturbed operation keeps: the two may start 5 % of their
#: time apart.
KEPT = 0.95
#: By destination of the copies, the experiments of copy-engine transfers and of kernel copies.
TARGETS = {"a peer": ("E7", "E8"), "host memory": ("E2", "E3")}


def _kept(observed: Observed, experiment: str) -> list[Number]:
    """Return the rates that the kernel and the copies keep, in percent, as medians of the devices.

    The result is empty when there are none. Kernel copies do not count as copy-engine transfers,
    even where the environment replaces engines by kernels.
    """
    mover = "copy-engine" if experiment in ("E2", "E7") else "kernel"
    points = observed.select(experiment=experiment, program="overlap")
    kernels = [one for one in points if one.operation == COMPUTE]
    copies = [one for one in points if one.operation != COMPUTE and one.engine == mover]
    numbers = []
    for what, own in (("the kernel", kernels), ("the copies", copies)):
        beside, alone = (
            {one.device: one for one in own if one.role == role} for role in ("beside", "single")
        )
        common = [device for device in beside if device in alone]
        if not common:
            return []
        parts = [100 * _rate(beside[device]) / _rate(alone[device]) for device in common]
        of = [by_device[device] for by_device in (beside, alone) for device in common]
        numbers.append(computed(what, statistics.median(parts), "percent", *of))
    return numbers


def _rate(point: Series) -> float:
    return 1 / point.value if point.better == "lower" else point.value


def _leave_compute_free(observed: Observed) -> Finding:
    needs.devices(observed)
    if observed.simulated:
        raise NotTestable("computing of devices is not simulated")
    holds, texts, numbers = True, [], []
    for where, (engine, kernel) in TARGETS.items():
        by_engine, by_kernel = _kept(observed, engine), _kept(observed, kernel)
        if not by_engine or not by_kernel:
            continue
        holds &= all(one.value >= 100 * KEPT for one in by_engine)
        holds &= min(one.value for one in by_kernel) < 100 * KEPT
        for way, kept in (("engine", by_engine), ("kernel", by_kernel)):
            said = " and ".join(f"{one.what} {one.value:.1f} %" for one in kept)
            texts.append(f"beside each other, with copies to {where} by {way}, {said}")
            numbers += kept
    if not texts:
        raise NotTestable(
            "the session has no kernel beside copies by copy engine and by kernel (the checks "
            "overlap_*)"
        )
    return verdict(holds, f"Of their own rates keep, {'; '.join(texts)}.", *numbers)


CLAIMS = (
    Claim(
        id="engines-leave-compute-free",
        statement="Copy-engine transfers overlap computations without affecting the kernel; "
        "kernel copies take compute units from it.",
        document="paper",
        where="V.A.2 and V.C; of kernels AMD's lab notes, GPU-to-GPU communication options",
        rule="beside each other the kernel and copy-engine transfers keep 95 % of their own "
        "rates, as they may start 5 % of their time apart, and of the kernel and kernel "
        "copies one keeps less; medians of the devices",
        judge=_leave_compute_free,
        experiments=("E2", "E3", "E7", "E8"),
    ),
)
