"""The checks of rccl-tests and nccl-tests: collectives of RCCL or NCCL (E11)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.lines import doubled
from fabricheck.core.vocabulary import Unit
from fabricheck.rfm import launchers
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.tool import ToolCheck, sets_of
from fabricheck.tools.plan import NCCL_OPERATIONS, Launch, Plan

#: Operations in a mean, and before it, each time.
ITERATIONS, WARM_UP = 50, 5


class RcclCheck(ToolCheck, special=True):  # type: ignore[call-arg]
    """One process with all devices of a set; the tool verifies what it measures.

    sizes: the first and the last message size in bytes; those between double.
    stated_sizes: what the partition calls them among its extras of ``rccl``.
    values: the figures of a collective, by unit their name in that of a metric.
    """

    sizes: tuple[int, int]
    stated_sizes: str | None = None
    values: Mapping[Unit, str] = {"us": "latency", "GB/s": "busbw"}

    @property
    def program(self) -> str:  # type: ignore[override]
        """Which of the two tools the environment has."""
        features = self.current_environ.features
        return next(name for name in ("rccl-tests", "nccl-tests") if name in features)

    def plan(self) -> Plan:
        """Return the launches, and the versions that the environment requires."""
        required = self.current_environ.extras
        return Plan.model_validate(
            {
                "tool": self.program,
                "buffers": "device",
                "facts": self.facts_command(),
                "library": required.get("rccl_version"),
                "network": required.get("rccl_network"),
                "launches": list(self.launches()),
            }
        )

    def processes(self, plan: Plan) -> int:
        """One process has all devices."""
        return 1

    def tool_path(self, program: str) -> Path:
        """Return the file of one of the tool's programs."""
        return self.folder("rccl_folder", f"that of {self.program}") / f"{program}_perf"

    def device_sets(self) -> Sequence[tuple[int, ...]]:
        """Return the sets of devices; overridden where only some are meant."""
        return sets_of(self.node, self.device_count)

    def judged_sizes(self) -> tuple[int, int]:
        """Return the first and the last size, as the partition states them or the check does."""
        stated = self.stated("rccl").get(self.stated_sizes) if self.stated_sizes else None
        first, last = stated or self.sizes
        return int(first), int(last)

    def launches(self) -> Sequence[Launch]:
        """Return one launch for each collective and set of devices."""
        sizes = self.judged_sizes()
        return [
            Launch(
                name="-".join([program, *map(str, devices)]),
                program=program,
                command=self._command(program, devices, sizes),
                ranks=len(devices),
                devices=list(devices),
                sizes=list(doubled(*sizes)),
                batch=ITERATIONS,
                limit_s=self.launch_seconds,
            )
            for program in NCCL_OPERATIONS
            for devices in self.device_sets()
        ]

    def _command(self, program: str, devices: Sequence[int], sizes: tuple[int, int]) -> str:
        first, last = map(str, sizes)
        options = ["-b", first, "-e", last, "-f", "2", "-g", str(len(devices))]
        options += ["-n", str(ITERATIONS), "-w", str(WARM_UP), "-c", "1"]
        started = shlex.join([str(self.tool_path(program)), *options])
        # Older tests do not tell the library's version; the library does where it is asked.
        line = launchers.line(self.job, self.job.launcher, 1)
        environment = self.environment(devices, "NCCL_DEBUG=VERSION")
        return " ".join(filter(None, [line, environment, started]))

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the figures of each collective and set, out of place, at the largest size."""
        return [
            Metric(
                f"{operation}_{len(devices)}_devices_{value}",
                self._where(operation, unit, devices),
                (),
                unit=unit,
            )
            for operation in NCCL_OPERATIONS.values()
            for devices in self.device_sets()
            for unit, value in self.values.items()
        ]

    def _where(self, operation: str, unit: str, devices: Sequence[int]) -> dict[str, Any]:
        return {
            "experiment": "E11",
            "operation": operation,
            "unit": unit,
            "bytes_counted": "bus" if unit == "GB/s" else "once",
            "device_set": list(devices),
            "in_place": False,
            "bytes": LARGEST,
        }
