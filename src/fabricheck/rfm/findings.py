"""Checks that examine a node without measuring: their metric is the number of findings.

One of them is the check of a node's topology (E13), which counts differences from the node model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricheck.core.text import first_of
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.rfm.base import FABRICHECK, RESULT, MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, MetricError
from fabricheck.rfm.on_partition import PLATFORM

if TYPE_CHECKING:
    from fabricheck.rfm.run_match import Requested


class Findings:
    """The part of a check that counts and describes findings."""

    stagedir: Any

    def findings(self, document: ResultDocument) -> Iterable[str]:
        """Return a sentence for each finding.

        :raises LookupError: with the reason, when the document lacks the data to examine.
        """
        raise NotImplementedError

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return the number of findings.

        :raises MetricError: when there is nothing to examine.
        """
        try:
            return Figure(metric, float(len(list(self.findings(document)))), (), ())
        except LookupError as error:
            raise MetricError(f"Metric {metric}: {error.args[0]}") from None

    def _failures(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        return first_of(list(self.findings(document)))


class TopologyCheck(Findings, MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Reads the topology with the node's own tools, and reports differences from the partition's
    model.
    """

    program = "topology"
    metrics = (Metric("differences", over=(), unit="count"),)

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        source = ("--simulated", PLATFORM) if self.simulated else ()
        model = str(self.extra("node"))
        part = ("--devices", str(self.device_count)) if self.required_node.part_of else ()
        return ("topology", "record", model, *part, "--runtime", self.runtime, *source)

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself."""
        return FABRICHECK

    def requested(self) -> Requested:
        """Return the request with the devices that were found, because finding them is the task."""
        devices = load(Path(self.stagedir) / RESULT)["devices"]
        found = [device["arch"].split(":")[0] for device in devices]
        return replace(super().requested(), architectures=found)

    def findings(self, document: ResultDocument) -> Iterable[str]:
        """Return the differences between the node and its model."""
        node = document["host"]["hostname"]
        differences = document.get("differences")
        if differences is None:
            raise LookupError(f"node {node} was not compared with a node model.")
        return [f"Node {node}: {sentence}" for sentence in differences]

    def _failures(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        return [
            f"Node {document['host']['hostname']} differs from its node model "
            f"{self.required_node.name} (differences: {len(list(self.findings(document)))}).",
            *super()._failures(),
        ]
