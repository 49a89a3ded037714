"""Checks that compare a node with its node model: the number of findings is their metric.

They are those of its topology (E13) and of its NICs (E16), of which one also runs a vendor's
loopback on each NIC.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reframe.core import runtime
from reframe.core.builtins import run_before

from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import first_of
from fabricheck.core.vocabulary import EXIT_NOT_FOUND
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.rfm import slurm
from fabricheck.rfm.base import FABRICHECK, RESULT, MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, MetricError
from fabricheck.tools.topology import inventory

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


class _ByCommand(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Compares a node with its node model by ``fabricheck GROUP record``."""

    command_group: str

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        model = str(self.extra("node"))
        part = ("--devices", str(self.device_count)) if self.required_node.part_of else ()
        return (self.command_group, "record", model, *part, "--runtime", self.runtime)

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself."""
        return FABRICHECK

    def requested(self) -> Requested:
        """Return the request with the devices that were found: none are required here."""
        devices = load(Path(self.stagedir) / RESULT)["devices"]
        found = [device["arch"].split(":")[0] for device in devices]
        return replace(super().requested(), architectures=found)


class _Differences(Findings):
    """Counts the differences between a node and its model."""

    required_node: Any
    metrics: Sequence[Metric] = (Metric("differences", over=(), unit="count"),)

    def findings(self, document: ResultDocument) -> Sequence[str]:
        """Return the differences between the node and its model."""
        differences = document.get("differences")
        if differences is None:
            node = document["host"]["hostname"]
            raise LookupError(f"node {node} was not compared with a node model.")
        return [difference["sentence"] for difference in differences]

    def _failures(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        return [
            f"Node {document['host']['hostname']} differs from its node model "
            f"{self.required_node.name} (differences: {len(self.findings(document))}).",
            *super()._failures(),
        ]


class TopologyCheck(_Differences, _ByCommand, special=True):  # type: ignore[call-arg]
    """Reports how a node's drivers differ from the partition's model, and from earlier sessions."""

    program = "topology"
    command_group = "node"

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the setting that the site makes a note."""
        noted = self.current_partition.extras.get("numa_balancing") == "note"
        results = Path(runtime.runtime().output_prefix).parents[1]
        return (
            *super().program_arguments(),
            *("--programs", str(self.programs_folder), "--results", str(results)),
            *(["--note-numa-balancing"] if noted else []),
        )

    def started_programs(self) -> Sequence[Path]:
        """Return also the program that asks the drivers."""
        return (*super().started_programs(), self.programs_folder / inventory.PROGRAM)

    def findings(self, document: ResultDocument) -> Sequence[str]:
        """Return the differences, each with the name of the node."""
        node = document["host"]["hostname"]
        return [f"Node {node}: {sentence}" for sentence in _Differences.findings(self, document)]


class _OfNics(_ByCommand, special=True):  # type: ignore[call-arg]
    """Reads a node's NICs from its kernel."""

    program = "nics"
    command_group = "network"

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the partition's fabric if it names one."""
        fabric = self.current_partition.extras.get("fabric")
        return (*super().program_arguments(), *(("--fabric", str(fabric)) if fabric else ()))


class NicCheck(_Differences, _OfNics, special=True):  # type: ignore[call-arg]
    """Reports how a node's NICs differ from the partition's node model and fabric."""


class NicLoopbackCheck(_OfNics, special=True):  # type: ignore[call-arg]
    """Runs a vendor's loopback on each NIC of the node model; its worst value is the metric.

    Skipped on a node without the tool, unless the environment states one.

    The tools compare no data, so no series is made of their values. Differences from the model are
    those of the inventory, and are not judged again.
    """

    metrics = (Metric("loopback_worst", over=(), unit="GB/s"),)
    #: Sites have it inside an allocation only: a session from a login node has not lost it.
    depends_on_place = True
    seconds = 300

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``, with the stated tool or that of the NICs."""
        # Here and below: listing the checks takes as long as what they import.
        from fabricheck.tools.nic_loopback import loopback_of

        tool = self.current_environ.extras.get("loopback") or loopback_of(self._provider)
        self.skip_if(
            tool is None,
            f"Partition {self.current_partition.fullname} names no fabric with a known loopback.",
        )
        return (*super().program_arguments(), "--loopback", str(tool))

    @property
    def _provider(self) -> str | None:
        from fabricheck.node.fabric import load_fabric

        fabric = self.current_partition.extras.get("fabric")
        return load_fabric(str(fabric)).provider if fabric else None

    def _keep_to_its_nodes(self) -> None:
        super()._keep_to_its_nodes()
        launcher = self.job.launcher
        if self._provider == "cxi" and launcher.registered_name == slurm.STEP_LAUNCHER:
            launcher.options = [*launcher.options, slurm.CXI_SERVICE]

    @run_before("sanity")  # type: ignore[untyped-decorator]
    def _skip_without_tool(self) -> None:
        if self.current_environ.extras.get("loopback"):
            return
        with contextlib.suppress(FabricheckError):  # the base judges and reports this
            outcome = load(Path(self.stagedir) / RESULT)["outcome"]
            self.skip_if(outcome["exit_code"] == EXIT_NOT_FOUND, outcome["message"])

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return the worst value, and the NIC that has it.

        :raises MetricError: when a NIC of the model has none, or one beyond its peak.
        """
        measured = {
            node_nic["name"]: node_nic.get("loopback_gbs")
            for node_nic in document.get("nics") or ()
        }
        values: dict[str, float] = {}
        for nic in self.required_node.nics:
            where = f"{document['host']['hostname']}:{nic.name}"
            value = measured.get(nic.name)
            if value is None:
                raise MetricError(f"Metric {metric}: {where} has no value.")
            if value > nic.peak_gbs:
                raise MetricError(
                    f"Metric {metric}: {where} reported {value:g} GB/s, above the physical bound "
                    f"of {nic.peak_gbs:g} GB/s of the NIC ({self.required_node.name})."
                )
            values[nic.name] = value
        worst = min(values, key=lambda name: values[name])
        value = values[worst]
        return Figure(metric, value, (), (), f"{value:g} GB/s at {worst}")
