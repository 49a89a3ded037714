"""The metrics for Prometheus: status, ages, worst metric and counters, each with its node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fabricheck.core.prometheus import Family, text
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.judge.verdict.health import Health
from fabricheck.judge.verdict.history import NodeHistory
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.judge.verdict.rules import FAILED

Worst = dict[str, tuple[float, Mapping[str, str]]]
"""By node its worst metric: the share of its limit, and the labels that name it."""


def of_nodes(nodes: Iterable[NodeHistory], worst: Worst) -> str:
    """Return the metrics of nodes by their verdicts.

    :param worst: the worst metric of each node, of the sessions that were read.
    """
    status = _status_families("fabricheck_node", "The verdict on the last session of a node")
    began = Family(
        "fabricheck_node_session_timestamp_seconds", "gauge", "When its last session began."
    )
    passed = Family(
        "fabricheck_node_pass_timestamp_seconds",
        "gauge",
        "When its last session began that passed.",
    )
    ratio = Family(
        "fabricheck_node_worst_metric_ratio",
        "gauge",
        "The worst metric as a share of its limit; below 1 it missed it.",
    )
    for node in nodes:
        # A node without a session is as old as can be, so that its age raises an alert.
        began.add(0 if node.began is None else node.began.timestamp(), node=node.node)
        if node.last is not None:
            _add_status(status, node.last)
        if node.passed is not None:
            passed.add(node.passed.timestamp(), node=node.node)
        if node.node in worst:
            share, labels = worst[node.node]
            ratio.add(share, node=node.node, **labels)
    return text((*status, began, passed, ratio))


def of_health(health: Health) -> str:
    """Return the metrics of a node by a passive look."""
    status = _status_families("fabricheck_health", "The health of a node at its last look")
    _add_status(status, health.verdict)
    node = health.verdict.node
    looked = Family("fabricheck_health_timestamp_seconds", "gauge", "When the node was looked at.")
    if health.verdict.start is not None:
        looked.add(health.verdict.start.timestamp(), node=node)
    errors = Family(
        "fabricheck_device_errors_total",
        "counter",
        "Errors of a device since its driver was loaded.",
    )
    for address, counted in health.counters.items():
        for what, number in counted.items():
            errors.add(number, node=node, device=address, what=what)
    return text((*status, looked, errors))


def watch(rows: Iterable[dict[str, Any]], worst: Worst) -> Iterator[dict[str, Any]]:
    """Yield rows unchanged, and keep the worst metric of each node."""
    for row in rows:
        share = _share(row) if row["row_type"] == "metric" else None
        node = row.get("node")
        if share is not None and node and (node not in worst or share < worst[node][0]):
            worst[node] = share, {name: row[name] for name in ("check", "metric", "partition")}
        yield row


def _share(row: Mapping[str, Any]) -> float | None:
    """Return a value as a share of its limit, better above 1; None without a limit."""
    value, least, most = row["value"], row.get("least"), row.get("most")
    if value is None:
        return None
    if row.get("better") == "lower" and most is not None:
        if most == 0 or value == 0:
            return 1.0 if value <= most else 0.0
        return float(most / value)
    return float(value / least) if least else None


def _status_families(name: str, meaning: str) -> tuple[Family, Family]:
    return (
        Family(f"{name}_status", "gauge", f"{meaning}: 1 with its status, rule and next step."),
        Family(f"{name}_exit_code", "gauge", f"{meaning}: 0 passed, 12 failed, 13 nothing proven."),
    )


def _add_status(families: tuple[Family, Family], verdict: NodeVerdict) -> None:
    status, code = families
    first = verdict.reasons[0] if verdict.reasons else None
    status.add(
        1,
        node=verdict.node,
        status=verdict.status,
        rule=None if first is None else first.rule,
        component=None if first is None else first.component,
        next_step=None if first is None else first.next_step,
        drain="yes" if verdict.drain is not None and verdict.drain.live else "no",
    )
    if verdict.status in FAILED:
        value = EXIT_NODE_FAILED
    else:
        value = EXIT_GOOD if verdict.status == "PASS" else EXIT_NODE_OPEN
    code.add(value, node=verdict.node)
