"""The base of checks of the program ``mpi``: messages and collectives between ranks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reframe.core.exceptions import SanityError

from fabricheck.results.model import ResultDocument
from fabricheck.rfm.base import RESULT
from fabricheck.rfm.metrics import Figure, Metric, MetricError, Population
from fabricheck.rfm.ranks import RanksCheck

#: The collectives that are timed.
COLLECTIVES = ("reduce", "bcast", "allreduce", "reduce_scatter", "allgather")

#: What holds of all messages: another convention is a factor of two.
CONVENTION = {"engine": "mpi", "bytes_counted": "once"}


class Unverified(Metric):
    """The number of operations, types and sizes that a trial of MPI did not verify."""

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Count what lacks of every operation, type and number of elements.

        :param population: ``operations`` and ``types`` that must be there, each with the same
            numbers of elements, at least two of them.
        :raises MetricError: when nothing was verified.
        """
        found = {
            (one["operation"], one.get("datatype"), one["bytes"])
            for one in document["series"]
            if one["experiment"] == "E12" and one["verification"]["bytes_checked"]
        }
        if not found:
            node = document["host"]["hostname"]
            raise MetricError(f"Metric {self}: nothing was verified on node {node}.")
        numbers = {
            (operation, datatype): sum(key[:2] == (operation, datatype) for key in found)
            for operation in population["operations"]
            for datatype in population["types"][0 if operation == "exchange" else 1]
        }
        most = max(max(numbers.values()), 2)
        return Figure(self, float(sum(most - number for number in numbers.values())), (), ())


class MpiCheck(RanksCheck, special=True):  # type: ignore[call-arg]
    """Runs ``mpi`` on buffers of devices where MPI takes them, else on buffers of the host."""

    program = "mpi"

    @property
    def buffers(self) -> str:
        """Where messages lie: ``device`` or ``host``."""
        return "device" if "gpu_aware_mpi" in self.current_environ.features else "host"

    @property
    def without(self) -> tuple[str, ...]:
        """The collectives that this MPI is known not to do on these buffers."""
        return tuple(self.current_environ.extras.get("mpi_without", ()))

    @property
    def collectives(self) -> Sequence[str]:
        """The collectives that are to be done."""
        return [name for name in COLLECTIVES if name not in self.without]

    def program_arguments(self) -> Sequence[str]:
        """Return the buffers, the noise limit, and what this MPI is known not to do."""
        limit = ("--noise-limit", str(self.extra("noise_limit")))
        left_out = ("--without", ",".join(self.without)) if self.without else ()
        own = super().program_arguments()
        return ("--buffers", self.buffers, *own, *left_out, *limit)

    def simulated_host(self, device: int) -> str:
        """Return the host of a rank whose messages lie on a device."""
        return f"device{device}"

    def check_sanity(self) -> None:
        """Say what MPI did not do before saying how the launch ended.

        :raises SanityError: as the base does.
        """
        try:
            super().check_sanity()
        except SanityError as error:
            raise SanityError("\n".join([str(error), *self._not_reached()])) from None

    def _not_reached(self) -> Iterator[str]:
        skipped: list[dict[str, str]] = []
        for name in (RESULT, f"{RESULT}.partial"):  # a crash may leave either
            with contextlib.suppress(OSError, ValueError):
                found = json.loads((Path(self.stagedir) / name).read_text())
                skipped = skipped or found.get("skipped") or []
        names = [one["operation"] for one in skipped if one["operation"] not in self.without]
        if names:
            yield (
                f"MPI did not come to its end with {', '.join(names)} on buffers of the "
                f"{self.buffers}. If it does not take them, state them as mpi_without in the "
                f"extras of environment {self.current_environ.name}: what remains is tested then."
            )


class MpiPairsCheck(MpiCheck, special=True):  # type: ignore[call-arg]
    """All ordered pairs alone, and in rounds of disjoint pairs at once.

    operations: what is measured: by operation its unit.
    """

    operations: Mapping[str, str] = {"bandwidth": "GB/s", "latency": "us"}

    def program_arguments(self) -> Sequence[str]:
        """Return the pairs and the message size of the partition."""
        only = ("--collectives", "none", "--types", "none")
        asked = ("--operations", ",".join(self.operations))
        sizes = ("--sizes", str(self.extra("mpi_bytes")))
        return (*super().program_arguments(), *asked, *only, *sizes)

    def groups(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return ordered pairs of ranks by the link class of their devices; one without classes."""
        ranks = range(len(self.rank_devices))
        if self.node is None or self.buffers == "host":
            return {"": [(a, b) for a in ranks for b in ranks if a != b]}
        return {
            one.name: [*pairs, *((b, a) for a, b in pairs)]
            for one, pairs in self.node.link_classes.items()
        }

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the worst and the median of each group, alone and with other pairs at once."""
        return [
            self._metric(operation, role, name, pairs, reduce)
            for operation in self.operations
            for role in self._roles(operation)
            for name, pairs in self.groups().items()
            for reduce in ("worst", "median")
        ]

    def _roles(self, operation: str) -> Sequence[str]:
        """Return how pairs are measured: latencies alone, and two pairs at once need four ranks."""
        together = operation != "latency" and len(self.rank_devices) > 3
        return ("single", "share") if together else ("single",)

    def _metric(
        self, operation: str, role: str, group: str, pairs: Sequence[tuple[int, int]], reduce: str
    ) -> Metric:
        words = [operation, "together" if role == "share" else "", group, reduce]
        where = {"experiment": "E9", "operation": operation, "role": role, **CONVENTION}
        among = tuple((list(pair),) for pair in pairs)
        name = "_".join(filter(None, words))
        unit = self.operations[operation]
        return Metric(name, where, ("ranks",), reduce, unit, among)  # type: ignore[arg-type]
