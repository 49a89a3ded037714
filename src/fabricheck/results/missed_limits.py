"""Sentences about metrics that missed their references, in the failure reason of a report.

ReFrame's own text comes first (all metrics, sixteen digits, no place), then one line for each
sentence of the check.
"""

from __future__ import annotations

from fabricheck.results.run_report import ReferenceCheck


def sentence(
    metric: str,
    where: str,
    value: float,
    unit: str,
    judged: ReferenceCheck,
    compared: str = "",
) -> str:
    """Return the sentence of a check about one metric.

    :param where: pairs, devices and node.
    :param judged: what it was compared with.
    :param compared: for a metric that compares measurements, its value with these.
    """
    required = "its limit is not recorded"
    if judged.least is not None:
        required = f"at least {judged.least:g} {unit} is required"
    if judged.most is not None and (judged.least is None or value > judged.most):
        required = f"at most {judged.most:g} {unit} is required"
    if compared:
        return f"Metric {metric}: {where} measured {compared}; {required}."
    reference = "" if judged.reference is None else f" (reference {judged.reference:g} {unit})"
    return f"Metric {metric}: {where} measured {value:g} {unit}; {required}{reference}."


def sentences(reason: str) -> list[str]:
    """Return the check's own sentences; ReFrame's are the first line and the indented ones."""
    lines = reason.splitlines()[1:]
    return [line for line in lines if line.strip() and not line[0].isspace()]
