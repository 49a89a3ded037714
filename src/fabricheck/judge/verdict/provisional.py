"""Provisional statuses: those that depend on limits of a partition without its own calibration."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fabricheck.judge.verdict.rules import NodeStatus
from fabricheck.references import calibrated
from fabricheck.references.published import folder

#: The statuses that rest on limits: what proves the others holds whatever these are, or is nothing.
_ON_LIMITS = ("PASS", "PERF-FAIL")


def partitions_of(
    status: NodeStatus, partitions: Collection[str], missed: Collection[str]
) -> list[str]:
    """Return the partitions without a calibration of their own on whose limits a status rests.

    None where a limit of a calibrated one was missed: that is enough.

    :param partitions: those that measured. missed: those of which a metric missed its reference.
    """
    if status not in _ON_LIMITS:
        return []
    resting = missed if status == "PERF-FAIL" else partitions
    found = [one for one in resting if not calibrated.has_own(folder(), one)]
    return [] if status == "PERF-FAIL" and len(found) < len(resting) else found


def told(status: NodeStatus, provisional: object) -> str:
    """Return a status as it is shown: ``provisional PASS``."""
    return f"provisional {status}" if provisional else status


def sentence(partitions: Iterable[str]) -> str:
    """Return what to do about partitions without a calibration; empty where there is none."""
    names = sorted(set(partitions))
    if not names:
        return ""
    has = "has no calibration of its own" if len(names) == 1 else "have no calibration of their own"
    return (
        f"{', '.join(names)} {has}: a status that depends on its limits is provisional and "
        "drains no node. fabricheck calibrate makes a calibration from repeated sessions."
    )
