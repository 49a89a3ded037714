"""Sentences about metrics that missed their references, in the failure reason of a report.

ReFrame's own text comes first (all metrics, sixteen digits, no place), then one line for each
sentence of the check.
"""

from __future__ import annotations

import math

from fabricheck.results.run_report import MetricResult


def sentence(
    metric: str, where: str, recorded: MetricResult, compared: str = "", reached: str = ""
) -> str:
    """Return the sentence of a check about one metric.

    :param where: pairs, devices and node.
    :param compared: for a metric that compares measurements, its value with these.
    :param reached: how many samples reached the limit, where that is said.
    """
    value, unit = math.nan if recorded.value is None else recorded.value, recorded.unit
    required = "its limit is not recorded"
    if recorded.least is not None:
        required = f"at least {recorded.least:g} {unit} is required"
    if recorded.most is not None and (recorded.least is None or value > recorded.most):
        required = f"at most {recorded.most:g} {unit} is required"
    if compared:
        return f"Metric {metric}: {where} measured {compared}; {required}{reached}."
    stated = recorded.reference
    reference = "" if stated is None else f" (reference {stated:g} {unit})"
    return f"Metric {metric}: {where} measured {value:g} {unit}; {required}{reference}{reached}."


def sentences(reason: str) -> list[str]:
    """Return the check's own sentences; ReFrame's are the first line and the indented ones."""
    lines = reason.splitlines()[1:]
    return [line for line in lines if line.strip() and not line[0].isspace()]
