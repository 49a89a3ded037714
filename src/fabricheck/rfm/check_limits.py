"""The limits of a check's metrics on a partition, and what its references lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.show import listed
from fabricheck.node import NodeModel
from fabricheck.references import entries, published, stated
from fabricheck.references.rules import Rule
from fabricheck.references.stated import References
from fabricheck.rfm.metric_limits import MetricLimits
from fabricheck.rfm.metrics import Metric
from fabricheck.site import this_machine


@dataclass(frozen=True)
class CheckLimits:
    """What limits the metrics of a check.

    entries: by metric, its reference as ReFrame reads it. rules: by metric, the rule of those that
    no reference limits. faults: a sentence for each metric without a usable reference.
    """

    entries: dict[str, Any]
    rules: dict[str, Rule]
    faults: list[str]


def of_check(
    check: str, partition: Any, node: NodeModel | None, metrics: Sequence[Metric]
) -> CheckLimits:
    """Return what limits the metrics of a check on a partition.

    :param check: the name of its class.
    :param partition: of ReFrame; its extras may name a set of references.
    :raises InvalidInputError: when no file has references of the check, or one cannot be read.
    """
    references = stated.references_in(published.folder())
    where = partition.fullname
    if check not in references.file_of:
        raise InvalidInputError(f"No file in {references.folder} has references of {check}.")
    named = partition.extras.get("references")
    by_metric: dict[str, Any] = {}
    if where == this_machine.NAME:
        # No file can have the link classes of any node: what it leaves out is report only here.
        by_metric = {metric.name: entries.report_only(metric.unit) for metric in metrics}
    stated_entries = references.entries(check, where, named)
    by_metric |= stated_entries
    limits = MetricLimits(where, node, references.record(where))
    used: dict[str, Rule] = {}
    for metric in metrics:
        why_open = references.why_open(check, where, metric.name, named)
        rule = limits.rule(check, metric, stated_entries.get(metric.name), why_open)
        if rule is not None:
            used[metric.name] = rule
            by_metric[metric.name] = list(rule.entry)
    faults = _missing(check, where, metrics, by_metric, references, named)
    for metric in metrics:
        entry = entries.plain(by_metric.get(metric.name))
        if entry is not None:
            faults += entries.faults(metric.name, metric.unit, entry)
    if faults and named is not None and named not in references.sets:
        faults.append(f"No file has its references '{named}': there are {listed(references.sets)}.")
    return CheckLimits(by_metric, used, faults)


def _missing(
    check: str,
    where: str,
    metrics: Sequence[Metric],
    by_metric: dict[str, Any],
    references: References,
    named: str | None,
) -> list[str]:
    """Return a sentence for each metric without a reference, and what is to be stated where.

    :param named: the set of references that the partition names.
    """
    missing = [metric for metric in metrics if entries.plain(by_metric.get(metric.name)) is None]
    if not missing:
        return []
    key = references.key(check, where, named) or where
    file = references.folder / references.file_of[check]
    return [
        *(f"Metric {metric.name} has no reference on {where}." for metric in missing),
        f"State what is missing in {file}, under {check} and {key}: a limit with its source, or "
        f"[0, null, null, {missing[0].unit}] for report only.",
    ]
