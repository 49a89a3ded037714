"""What a check tells of itself in a dry run, for `fabricheck site sets` and `limits show`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.references import entries
from fabricheck.references.rules import Rule
from fabricheck.rfm.metrics import Metric


def append(
    about: Mapping[str, Any],
    metrics: Sequence[Metric],
    by_metric: Mapping[str, Any],
    rules: Mapping[str, Rule],
) -> None:
    """Append a check's metrics as a line of JSON to the file named by a variable, if it names one.

    Only a check whose partition is known can list its metrics.

    :param about: the other members of the line.
    :param by_metric: the references, as in `CheckLimits`.
    :param rules: the rules of metrics without another limit.
    """
    file = os.environ.get(ENV_METRICS)
    if not file:
        return
    listed: dict[str, Any] = {}
    for metric in metrics:
        rule = rules.get(metric.name)
        listed[metric.name] = {
            "unit": metric.unit,
            "independent": metric.independent,
            "entry": entries.plain(by_metric.get(metric.name)),
            "rule": None if rule is None else rule.why,
        }
    with Path(file).open("a", encoding="utf-8") as out:
        out.write(json.dumps({**about, "metrics": listed}) + "\n")
