"""Metrics in Prometheus' text format, as the textfile collector of its node exporter reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

#: Of a label's value and of a help text.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass
class Family:
    """A family of metrics. kind: gauge or counter. samples: labels and value of each."""

    name: str
    kind: str
    meaning: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float, **labels: str | None) -> None:
        """Add a sample; a label without a value is empty, which Prometheus takes for none."""
        self.samples.append(({name: text or "" for name, text in labels.items()}, value))


def text(families: Iterable[Family]) -> str:
    """Return the families that have samples as text."""
    lines = []
    for family in families:
        if not family.samples:
            continue
        lines += [
            f"# HELP {family.name} {family.meaning.translate(_ESCAPES)}",
            f"# TYPE {family.name} {family.kind}",
        ]
        for labels, value in family.samples:
            shown = ",".join(
                f'{name}="{each.translate(_ESCAPES)}"' for name, each in labels.items()
            )
            lines.append(f"{family.name}{{{shown}}} {value:.15g}")
    return "\n".join([*lines, ""])
