"""The check of a node's topology (E13): what differs from its node model, and nothing measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.rfm.base import MOST_SENTENCES, PLATFORM, RESULT, MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, MetricError, Population

if TYPE_CHECKING:
    from fabricheck.rfm.asked import Asked


class Differences(Metric):
    """The number of differences between a node and its model."""

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Count the document's differences.

        :raises MetricError: when nothing was compared.
        """
        differences = document.get("differences")
        if differences is None:
            node = document["host"]["hostname"]
            raise MetricError(f"Metric {self}: node {node} was not compared with a node model.")
        return Figure(self, float(len(differences)), (), ())


DIFFERENCES = Differences("differences", over=(), unit="count")


class TopologyCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Asks the node's own tools on the node, and names what differs from the partition's model."""

    program = "topology"
    metrics = (DIFFERENCES,)

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        source = ("--simulated", PLATFORM) if self.simulated else ()
        runtime = str(self.current_environ.extras["runtime"])
        model = str(self.extra("node"))
        part = ("--devices", str(self.device_count)) if self.required_node.part_of else ()
        return ("topology", "record", model, *part, "--runtime", runtime, *source)

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself, beside the Python that runs ReFrame."""
        return Path(sys.executable).with_name("fabricheck")

    def _what_was_asked(self) -> Asked:
        # Which devices the node has is what this check finds, not a reason to disbelieve it.
        devices = load(Path(self.stagedir) / RESULT)["devices"]
        found = [device["arch"].split(":")[0] for device in devices]
        return replace(super()._what_was_asked(), architectures=found)

    def _missed(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        node = document["host"]["hostname"]
        found = document.get("differences") or []
        more = len(found) - MOST_SENTENCES
        return [
            f"Node {node} is not as its node model {self.required_node.name} (differences: "
            f"{len(found)}).",
            *(f"Node {node}: {sentence}" for sentence in found[:MOST_SENTENCES]),
            *([f"And {more} more."] if more > 0 else []),
        ]
