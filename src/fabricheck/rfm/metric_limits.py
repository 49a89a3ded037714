"""What limits a metric of a partition: its reference, else the metric's rule, else a floor.

On ``local:gpu`` other users may share the host, and no file of references knows the machine. What
they decide is judged by a record of the machine itself only (`shared_host` in ``rules.yaml``). A
record of ``local:gpu`` is of machines of one kind. It holds as it stands on the machines that it
was made of; on others it allows for the difference between machines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from fabricheck.node import NodeModel
from fabricheck.references import entries, rules
from fabricheck.references.calibrated import STEP, Record
from fabricheck.references.rules import Rule, TransferKind
from fabricheck.rfm.metrics import Metric, MetricError
from fabricheck.rfm.relative import PeerRatio, kind_of_metric
from fabricheck.site import this_machine

#: STREAM copy on a device's own memory, far beyond the caches.
_MEMORY = {
    "engine": "kernel",
    "operation": "copy",
    "role": "single",
    "regime": "memory",
    "source.memory": "device",
    "destination.memory": "device",
}

#: A kernel that reads from a peer or writes to it, one way.
_PEER = {"engine": "kernel", "role": "single", "bytes_counted": "once"}

#: A copy between a device and pinned memory, one way.
_HOST = {"engine": "copy-engine", "role": "single", "experiment": "E2"}


#: How often the difference between the machines of a record another machine may be away from them.
_TIMES_BETWEEN = 1.5


@dataclass(frozen=True)
class MetricLimits:
    """The rules of the metrics of a partition.

    node: the node model, healthy; a draft has the unique ids of its devices. record: the
    calibration of the partition, on ``local:gpu`` of machines of this kind; None where there is
    none.
    """

    partition: str
    node: NodeModel | None
    record: Record | None

    def rule(self, check: str, metric: Metric, stated: Any, why_open: str | None) -> Rule | None:
        """Return the rule that limits a metric; None where its reference holds, or nothing does.

        :param stated: the reference, of the record or of a file; None where there is none.
        :param why_open: the reason that stands beside a reference that is report only; None where
            it has none itself.
        """
        if why_open is not None and not entries.required(stated):
            return None
        if self.partition == this_machine.NAME:
            return self._on_a_shared_host(check, metric, stated)
        if entries.required(stated):
            return None
        if metric.rule is not None:
            return metric.rule
        # A metric that no file has is a mistake, which a floor would hide.
        return None if stated is None else floor(metric, self.node)

    def _on_a_shared_host(self, check: str, metric: Metric, stated: Any) -> Rule | None:
        required = entries.required(stated)
        if self._measured_here and required:
            return None
        kind = _kind(metric, self.node)
        if rules.left_to_a_shared_host(kind):
            why = "other users of the host decide it, and no record of this machine has a limit"
            return Rule(entries.report_only(metric.unit), why)
        tolerance = rules.allowed_on_a_shared_host(kind) / 100
        if required:
            tolerance = max(tolerance, self._between_machines(check, metric))
            return _wider(
                entries.plain(stated), tolerance, "a reference of other machines of its kind"
            )
        rule = metric.rule or floor(metric, self.node)
        if rule is None or not entries.requires(rule.entry):
            return rule
        wider = _wider(rule.entry, tolerance, f"{rule.why}, on a host that others may use")
        return rule if wider is None else replace(wider, is_peak=rule.is_peak)

    @property
    def _measured_here(self) -> bool:
        """Whether the record has sessions of the very devices of this machine."""
        if self.record is None or self.node is None:
            return False
        ids = {device.unique_id for device in self.node.devices}
        if None in ids:
            return False
        return any(ids <= set(measured) for measured in self.record.device_sets.values())

    def _between_machines(self, check: str, metric: Metric) -> float:
        """Return what machines that are not in the record may differ by, as a part of the value."""
        calibrated = None if self.record is None else self.record.checks.get(check, {})
        known = (calibrated or {}).get(metric.name)
        if known is None or known.by_devices is None or not known.median:
            return 0.0
        medians = [group.median for group in known.by_devices.values()]
        return _TIMES_BETWEEN * (max(medians) - min(medians)) / known.median


def _wider(entry: Any, tolerance: float, why: str) -> Rule | None:
    """Return a limit with at least this tolerance; None where it has it already."""
    value, lower, upper, unit = entry
    if unit == "count" or tolerance <= max(-(lower or 0), upper or 0):
        return None
    rounded = math.ceil(round(tolerance / STEP, 6)) * STEP
    bounds = (None if lower is None else -rounded, None if upper is None else rounded)
    return Rule((value, *bounds, unit), f"{why}, with {100 * rounded:.3g} %")


def _kind(metric: Metric, node: NodeModel | None) -> TransferKind | None:
    """Return the kind of transfer, of all ways together where a metric has several."""
    try:
        kind = kind_of_metric(metric, node)
    except MetricError:
        return None  # nothing tells it, as of the collectives of a tool
    if isinstance(metric, PeerRatio) and metric.ways:
        return rules.ALL_WAYS[kind]
    return kind


def floor(metric: Metric, node: NodeModel | None) -> Rule | None:
    """Return what every healthy node reaches of the node's peak; None where nothing is known.

    The rule of a peak that is assumed or unknown requires nothing.

    :param node: the healthy node model.
    """
    if node is None or metric.reduce != "worst" or metric.unit != "GB/s":
        return None
    if _on_own_memory(metric):
        doubt = node.doubt("devices.memory_peak_gbs")
        if doubt is not None:
            return rules.without_limit(metric.unit, doubt)
        peak = node.device(0).memory_peak_gbs
        assert peak is not None  # an unknown one is doubtful
        return rules.memory_floor(node.architecture, peak)
    pairs = _directly_linked(metric, node)
    if pairs:
        doubt = node.doubt(*node.link_facts)
        if doubt is not None:
            return rules.without_limit(metric.unit, doubt)
        return rules.direct_link_floor(min(node.peer_peak_gbs(*pair) for pair in pairs))
    if _over_the_host_link(metric, node):
        doubt = node.doubt("host_link.peak_gbs")
        if doubt is not None:
            return rules.without_limit(metric.unit, doubt)
        return rules.host_link_floor(node.device(0).host_link_gbs)
    return None


def _memories(metric: Metric) -> set[str | None]:
    return {metric.where.get("source.memory"), metric.where.get("destination.memory")}


def _on_own_memory(metric: Metric) -> bool:
    return _MEMORY.items() <= metric.where.items()


def _directly_linked(metric: Metric, node: NodeModel) -> list[tuple[int, int]]:
    """Return the pairs of a kernel's transfers with a peer; none if one has no direct link."""
    if not _PEER.items() <= metric.where.items() or _memories(metric) != {"device", "peer"}:
        return []
    pairs = [(a, b) for ((a, b),) in metric.among or ()]
    return pairs if all(node.link_class(*pair).direct for pair in pairs) else []


def _over_the_host_link(metric: Metric, node: NodeModel) -> bool:
    """Whether a metric is of copies of pinned memory near a device, over a link between the two."""
    # Where host and device share their memory, a copy crosses no link.
    return (
        _HOST.items() <= metric.where.items()
        and _memories(metric) == {"device", "host-pinned"}
        and not node.shares_memory
    )
