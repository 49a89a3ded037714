"""Third-party benchmarks between nodes (E17): OSU Micro-Benchmarks, rccl-tests and nccl-tests.

The launch that describes the nodes is one of this suite's programs over the same nodes, so that the
document has their devices. Before OSU it is ``mpi``, which also proves what MPI's messages leave a
node by; RCCL and NCCL report the network that they use.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fabricheck.core.lines import doubled
from fabricheck.core.text import first_of
from fabricheck.node import placement
from fabricheck.node.placement import Placement
from fabricheck.results.model import ResultDocument
from fabricheck.rfm import launchers, slurm
from fabricheck.rfm.benchmarks import CONVENTION, ITERATIONS, WARM_UP, OsuCheck, RcclCheck
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.nodes import SeveralNodes
from fabricheck.rfm.ranks import BINDING
from fabricheck.tools.benchmarks import FACTS, NCCL_TESTS, OSU, Launch

#: The words by which RCCL and NCCL name a fabric's network, by its provider: the one of libfabric
#: in "NET/OFI Selected Provider is cxi", else those of "Using network IB".
NETWORKS = {"cxi": "cxi", "verbs": "IB", "tcp": "Socket"}

#: The seconds of the launch that describes the nodes.
FACTS_S = 50


class OfNodes(SeveralNodes):
    """The part of a check of a benchmark that starts it on several nodes."""

    device_count: Any
    environment: Any
    programs_folder: Any
    rank_launcher: Any

    def line(self, placed: Placement | None, ranks: int) -> str:
        """Return the launcher of ranks on all nodes.

        :param placed: of the ranks of a node; the launcher chooses without one.
        :param ranks: of a node.
        """
        devices = placed.devices if placed else range(ranks)
        launcher = self.rank_launcher(devices, self.node_count)
        line = launchers.line(self.job, launcher, ranks * self.node_count, self.node_count)
        binding = BINDING.get(launcher.registered_name)
        if placed is None or binding is None:
            return line
        return f"{line.replace(f' {slurm.ALL_CORES}', '')} {binding.format(placed.map_cpu)}"

    def on_all_nodes(self, devices: Sequence[int]) -> list[int]:
        """Return devices of a node on all nodes, as documents number them."""
        return [
            node * self.device_count + device
            for node in range(self.node_count)
            for device in devices
        ]


class OsuNodesCheck(OfNodes, OsuCheck, special=True):  # type: ignore[call-arg]
    """One pair of ranks beside the first NIC of two nodes, and all such pairs at the same time."""

    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    valid_prog_environs = ["+osu +mpi"]
    sizes = (1 << 20, 4 << 20)
    programs = ("osu_bw", "osu_bibw", "osu_mbw_mr", "osu_latency")

    #: Bytes of the messages whose latency is judged, and of the largest in that scan.
    latency_sizes = (8, 8192)

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each program."""
        found: list[Launch] = []
        for program in self.programs:
            every = program in OSU.at_once
            own = self.node_devices if every else self.node_devices[:1]
            on_devices = self.runtime != "host"
            devices = self.on_all_nodes(own) if on_devices else ()
            ranks = self.node_count * len(own) if every else 2
            sizes = self.latency_sizes if program == "osu_latency" else self.judged_sizes()
            found += self.twice(program, devices, ranks, sizes)
        return found

    def mpi_line(self, devices: Sequence[int], ranks: int) -> str:
        """Return the launcher of ranks beside the first NICs, and the prefix of each program."""
        each = ranks // self.node_count
        placed = self.beside_nics
        own = placed.first(each) if placed else None
        shown = devices[:each]
        return " ".join(filter(None, [self.line(own, each), self.environment(shown)]))

    def facts_command(self) -> str:
        """Return the command of ``mpi`` that describes the nodes and proves what MPI uses."""
        placed = self.beside_nics
        buffers = "device" if "gpu_aware_mpi" in self.current_environ.features else "host"
        command = [
            *(str(self.programs_folder / "mpi"), "--buffers", buffers, "--pairs", "counterparts"),
            *("--together", "none", "--operations", "latency", "--collectives", "none"),
            *("--types", "none", "--places", self.places, "--series-time", "0.1"),
        ]
        if placed:
            for option, each in (("--map", placed.devices), ("--bind", placed.cores)):
                command += [option, ",".join(map(str, self.node_count * each))]
        command += ["--time-limit", str(FACTS_S), "--output", FACTS]
        return f"{self.line(placed, len(self.node_devices))} {shlex.join(command)}"

    def wrong_settings(self, document: ResultDocument) -> Sequence[str]:
        """Return a sentence for each rank whose messages left by something else than required."""
        return first_of(self.unproven_of(document))

    def expected_metrics(self) -> Sequence[Metric]:
        """Return a rate of each program at the last size, and the latency at the first."""
        last, first = self.judged_sizes()[1], self.latency_sizes[0]
        return [
            self._metric("bw", "bandwidth", last),
            self._metric("bibw", "bandwidth-both", last),
            *([self._metric("mbw_mr", "bandwidth", last, "sum")] * (len(self.node_devices) > 1)),
            self._metric("latency", "latency", first),
        ]

    def _metric(self, name: str, operation: str, size: int, role: str = "single") -> Metric:
        where: Mapping[str, Any] = {
            **CONVENTION,
            "experiment": "E17",
            "operation": operation,
            "role": role,
            "bytes": size,
        }
        return Metric(name, where, (), unit="us" if operation == "latency" else "GB/s")


class RcclNodesCheck(OfNodes, RcclCheck, special=True):  # type: ignore[call-arg]
    """One process for each device of all nodes, each near its device.

    The tests must be built with MPI, which starts the processes.
    """

    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    valid_prog_environs = ["+rccl-tests +mpi", "+nccl-tests +mpi"]
    sizes = (8 << 20, 1 << 30)
    programs = ("all_reduce", "sendrecv")

    @property
    def ranks_of_node(self) -> Placement | None:
        """One rank near each device."""
        node = self.node
        return None if node is None else placement.right(node, tuple(range(self.device_count)))

    def conditions(self, launches: Sequence[Launch]) -> Mapping[str, Any]:
        """Return the versions that the environment requires, and the network of the fabric."""
        found = super().conditions(launches)
        provider = self.fabric.file.provider
        network = found["network"] or NETWORKS[provider]
        return {**found, "network": network, "provider": provider}

    def processes(self, plan: Any) -> int:
        """One process for each device."""
        return int(self.device_count * self.node_count)

    def facts_command(self) -> str:
        """Return the command that describes the devices of all nodes."""
        command = [str(self.programs_folder / "affinity"), "--time-limit", str(FACTS_S)]
        return f"{self.line(None, 1)} {shlex.join([*command, '--output', FACTS])}"

    def launches(self) -> Sequence[Launch]:
        """Return one launch for each test."""
        devices = range(self.device_count)
        first, last = self.judged_sizes()
        options = ["-b", str(first), "-e", str(last), "-f", "2", "-g", "1"]
        options += ["-n", str(ITERATIONS), "-w", str(WARM_UP), "-c", "1"]
        line = self.line(self.ranks_of_node, self.device_count)
        return [
            Launch(
                name=f"{program}-{self.node_count}nodes",
                program=program,
                command=" ".join(
                    [
                        line,
                        # The library names its version and its network.
                        self.environment(devices, "NCCL_DEBUG=INFO"),
                        shlex.join([str(self.tool_path(program)), *options]),
                    ]
                ),
                ranks=self.processes(None),
                devices=self.on_all_nodes(devices),
                sizes=list(doubled(first, last)),
                batch=ITERATIONS,
                nodes=self.node_count,
                limit_s=self.launch_seconds,
            )
            for program in self.programs
        ]

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the bus bandwidth of each test at the largest size, out of place."""
        return [
            Metric(
                f"{NCCL_TESTS.operations[program]}_bus",
                {
                    "experiment": "E17",
                    "operation": NCCL_TESTS.operations[program],
                    "unit": "GB/s",
                    "bytes_counted": "bus",
                    "in_place": False,
                    "bytes": LARGEST,
                },
                (),
            )
            for program in self.programs
        ]
