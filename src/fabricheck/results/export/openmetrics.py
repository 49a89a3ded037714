"""Metrics as OpenMetrics text, for GitLab's merge requests and for Prometheus.

GitLab compares two files by name and labels, and values as texts: so no label names the session,
and values have five digits. The unit is a label, as in the reference files: GB/s, not the bytes per
second that OpenMetrics prefers.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fabricheck.core.amounts import number
from fabricheck.core.grouping import grouped
from fabricheck.results.export.table import Cells
from fabricheck.results.session import PASSED, SKIPPED
from fabricheck.results.table import LOST

Labels = tuple[tuple[str, str], ...]

_CHECK = ("system", "partition", "environment", "check")

#: Families in the order of the text: name, labels from columns, help, and how several values are
#: combined.
_METRIC = "fabricheck_metric"
_PASSED = "fabricheck_check_passed"
_PRESENT = "fabricheck_node_present"
_FAMILIES: dict[str, tuple[tuple[str, ...], str, Callable[[Sequence[float]], float]]] = {
    _METRIC: (
        (*_CHECK, "metric", "unit", "clock", "overlay"),
        "Value of a metric of a check, in the unit of its label; the median of several.",
        statistics.median,
    ),
    _PASSED: (
        (*_CHECK, "overlay"),
        "1 where the check passed, 0 where it did not; skipped checks are left out.",
        min,
    ),
    _PRESENT: (
        ("system", "partition"),
        "1 where a requested node has results, 0 where it has none.",
        min,
    ),
}


@dataclass
class OpenMetricsBuffer:
    """The values kept of a table's rows, by family and labels."""

    _values: dict[str, list[tuple[Labels, float]]] = field(
        default_factory=lambda: {name: [] for name in _FAMILIES}
    )
    _several_nodes: bool = False

    def watch(self, rows: Iterable[Cells]) -> Iterator[Cells]:
        """Yield the rows unchanged, and keep the values that the text needs."""
        nodes: set[str] = set()
        for row in rows:
            if row["kind"] in ("check", "node") and row.get("node"):
                nodes.add(row["node"])
                self._several_nodes |= len(nodes) > 1
            match row["kind"]:
                case "metric" if row["value"] is not None:
                    self._keep(_METRIC, row, row["value"])
                case "check" if row["result"] not in SKIPPED:
                    self._keep(_PASSED, row, float(row["result"] in PASSED))
                case "node":
                    self._keep(_PRESENT, row, float(row["result"] != LOST))
            yield row

    def _keep(self, family: str, row: Cells, value: float) -> None:
        names = (*_FAMILIES[family][0], "node")
        labels = tuple((name, row[name]) for name in names if row.get(name))
        self._values[family].append((labels, value))

    @property
    def text(self) -> str:
        """Return the text; the node is a label where there are several nodes, and for lost ones."""
        lines = []
        for name, (_, said, together) in _FAMILIES.items():
            with_node = name == _PRESENT or self._several_nodes
            alike = grouped(
                (tuple(label for label in labels if with_node or label[0] != "node"), value)
                for labels, value in self._values[name]
            )
            if alike:
                lines += [f"# TYPE {name} gauge", f"# HELP {name} {said}"]
            for labels, values in sorted(alike.items()):
                shown = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
                lines.append(f"{name}{{{shown}}} {number(together(values))}")
        return "\n".join([*lines, "# EOF"]) + "\n"


def _escaped(value: str) -> str:
    # GitLab takes what follows a # for a comment, wherever it is.
    return value.replace("\\", r"\\").replace('"', r"\"").replace("#", "_")
