"""Provisional statuses: those that depend on limits of a partition without its own calibration."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fabricheck.judge.verdict.rules import NodeStatus
from fabricheck.references import calibrated
from fabricheck.references.published import folder

#: The statuses that depend on limits. The other statuses hold, or prove nothing, whatever the
#: limits are.
_ON_LIMITS = ("PASS", "PERF-FAIL")


def partitions_of(
    status: NodeStatus,
    partitions: Collection[str],
    missed: Collection[str],
    rules: Collection[str],
) -> list[str]:
    """Return the partitions without their own calibration on whose limits a status depends.

    Returns none if a limit of a calibrated partition was missed, or a member is far behind its
    peers (`peers`), because that is enough proof.

    :param partitions: the partitions that measured.
    :param missed: the partitions of which a metric missed its reference.
    :param rules: those of the node's reasons.
    """
    if status not in _ON_LIMITS or "peers" in rules:
        return []
    resting = missed if status == "PERF-FAIL" else partitions
    found = [one for one in resting if not calibrated.has_own(folder(), one)]
    return [] if status == "PERF-FAIL" and len(found) < len(resting) else found


def told(status: NodeStatus, provisional: object) -> str:
    """Return a status as printed: ``provisional PASS``."""
    return f"provisional {status}" if provisional else status


def sentence(partitions: Iterable[str]) -> str:
    """Return the sentence on partitions without a calibration; empty if there are none."""
    names = sorted(set(partitions))
    if not names:
        return ""
    has = "has no calibration of its own" if len(names) == 1 else "have no calibration of their own"
    return (
        f"{', '.join(names)} {has}: a status that depends on its limits is provisional and "
        "drains no node. fabricheck calibrate makes a calibration from repeated sessions."
    )
