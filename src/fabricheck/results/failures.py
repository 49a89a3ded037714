"""Sentences about metrics that missed their references, in the failure reason of a report.

ReFrame's own text comes first (all metrics, sixteen digits, no place), then one line for each
sentence of the check.
"""

from __future__ import annotations


def sentence(
    metric: str,
    where: str,
    value: float,
    limit: str,
    unit: str,
    reference: float,
    compared: str = "",
) -> str:
    """Return the sentence of a check about one metric.

    :param where: pairs, devices and node. limit: ``at least 10`` or ``at most 10``. compared: for a
        metric that compares measurements, its value with these.
    """
    if compared:
        return f"Metric {metric}: {where} measured {compared}; {limit} {unit} is required."
    return (
        f"Metric {metric}: {where} measured {value:g} {unit}; {limit} {unit} is required "
        f"(reference {reference:g} {unit})."
    )


def sentences(reason: str) -> list[str]:
    """Return the check's own sentences; ReFrame's are the first line and the indented ones."""
    lines = reason.splitlines()[1:]
    return [line for line in lines if line.strip() and not line[0].isspace()]


def of_metric(reason: str, metric: str) -> str | None:
    """Return the check's sentence about one metric; None where it has none."""
    start = f"Metric {metric}: "
    return next((one for one in sentences(reason) if one.startswith(start)), None)


def where_of(reason: str, metric: str) -> str:
    """Return where the check's sentence says that a metric was missed; empty without a sentence."""
    told = of_metric(reason, metric) or ""
    where, measured, _ = told.removeprefix(f"Metric {metric}: ").partition(" measured ")
    return where if measured else ""
