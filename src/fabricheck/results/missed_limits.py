"""Sentences about metrics that missed their references, in the failure reason of a report.

ReFrame's own text comes first (all metrics, sixteen digits, no place), then one line for each
sentence of the check.
"""

from __future__ import annotations

from fabricheck.results.run_report import Judged


def sentence(
    metric: str,
    where: str,
    value: float,
    unit: str,
    judged: Judged,
    compared: str = "",
) -> str:
    """Return the sentence of a check about one metric.

    :param where: pairs, devices and node.
    :param judged: what it was compared with.
    :param compared: for a metric that compares measurements, its value with these.
    """
    above = judged.most is not None and value > judged.most
    limit = f"at most {judged.most:g}" if above else f"at least {judged.least:g}"
    if compared:
        return f"Metric {metric}: {where} measured {compared}; {limit} {unit} is required."
    return (
        f"Metric {metric}: {where} measured {value:g} {unit}; {limit} {unit} is required "
        f"(reference {judged.reference:g} {unit})."
    )


def sentences(reason: str) -> list[str]:
    """Return the check's own sentences; ReFrame's are the first line and the indented ones."""
    lines = reason.splitlines()[1:]
    return [line for line in lines if line.strip() and not line[0].isspace()]
