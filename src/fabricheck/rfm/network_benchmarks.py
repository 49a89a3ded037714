"""Third-party benchmarks between nodes (E17): OSU Micro-Benchmarks, rccl-tests and nccl-tests.

The launch that describes the nodes is one of this suite's programs over the same nodes, so that the
document has their devices. Before OSU it is ``mpi``, which also proves what MPI's messages leave a
node by; RCCL and NCCL report the network that they use.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from reframe.core.builtins import run_after

from fabricheck.core.lines import doubled
from fabricheck.node import placement
from fabricheck.node.placement import Placement
from fabricheck.rfm import jobs, launchers
from fabricheck.rfm.benchmarks import CONVENTION, ITERATIONS, WARM_UP, OsuCheck, RcclCheck
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.nodes import MpiBesideNics, SeveralNodes
from fabricheck.schedulers import table
from fabricheck.tools.benchmarks import FACTS, LIBRARY_LOG, NCCL_TESTS, OSU, Launch

#: The words by which RCCL and NCCL name a fabric's network, by its provider: the one of libfabric
#: in "NET/OFI Selected Provider is cxi", else those of "Using network IB".
NETWORKS = {"cxi": "cxi", "verbs": "IB", "tcp": "Socket"}

#: The seconds of the launch that describes the nodes.
FACTS_S = 50


class OfNodes(SeveralNodes):
    """The part of a check of a benchmark that starts it on several nodes."""

    modules: Any
    env_vars: Any

    def line(self, devices: Sequence[int], binding: Mapping[str, str], *options: str) -> str:
        """Return the launcher of ranks on all nodes.

        :param devices: of the ranks of a node.
        :param binding: by launcher, the option that binds these; another launcher chooses.
        :param options: further ones, of the launcher of steps.
        """
        launcher = self.rank_launcher(devices, self.node_count)
        ranks = len(devices) * self.node_count
        line = launchers.line(self.job, launcher, ranks, self.node_count)
        name = launcher.registered_name
        row = jobs.starting(launcher)
        if name in binding:
            if row is not None:
                line = line.replace(f" {row.all_cores}", "")
            line = f"{line} {binding[name]}"
        return " ".join([line, *(() if row is None else options)])

    def near_line(self, placed: Placement | None, ranks: int) -> str:
        """Return the launcher of ranks on all nodes, each on one core near its device.

        :param placed: of the ranks of a node; the launcher chooses without one.
        :param ranks: of a node.
        """
        if placed is None:
            return self.line(range(ranks), {})
        binding = {name: option.to(placed.cores) for name, option in table.binding().items()}
        return self.line(placed.devices, binding)

    def on_all_nodes(self, devices: Sequence[int]) -> list[int]:
        """Return devices of a node on all nodes, as documents number them."""
        return [
            node * self.device_count + device
            for node in range(self.node_count)
            for device in devices
        ]


class OsuNodesCheck(MpiBesideNics, OfNodes, OsuCheck, special=True):  # type: ignore[call-arg]
    """One pair of ranks beside the first NIC of two nodes, and all such pairs at the same time."""

    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    valid_prog_environs = ["+osu +mpi"]
    sizes = (1 << 20, 4 << 20)
    programs = ("osu_bw", "osu_bibw", "osu_mbw_mr", "osu_latency")

    #: Bytes of the messages whose latency is judged, and of the largest in that scan.
    latency_sizes = (8, 8192)

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each program."""
        launches: list[Launch] = []
        for program in self.programs:
            on_all = program in OSU.at_once
            devices_of_node = self.node_devices if on_all else self.node_devices[:1]
            on_devices = self.runtime != "host"
            devices = self.on_all_nodes(devices_of_node) if on_devices else ()
            ranks = self.node_count * len(devices_of_node) if on_all else 2
            sizes = self.latency_sizes if program == "osu_latency" else self.judged_sizes()
            launches += self.twice(program, devices, ranks, sizes)
        return launches

    def mpi_line(self, devices: Sequence[int], ranks: int) -> str:
        """Return the launcher of ranks beside the first NICs, and the prefix of each program."""
        each = ranks // self.node_count
        placed = self.beside_nics
        placement = placed.first(each) if placed else None
        shown = devices[:each]
        return " ".join(filter(None, [self.near_line(placement, each), self.environment(shown)]))

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
        return f"{self.near_line(placed, len(self.node_devices))} {shlex.join(command)}"

    def expected_metrics(self) -> Sequence[Metric]:
        """Return a rate of each program at the last size, and the latency at the first."""
        last, first = self.judged_sizes()[1], self.latency_sizes[0]
        metrics = [
            self._metric("bw", "bandwidth", last),
            self._metric("bibw", "bandwidth-both", last),
        ]
        if len(self.node_devices) > 1:
            metrics.append(self._metric("mbw_mr", "bandwidth", last, "sum"))
        metrics.append(self._metric("latency", "latency", first))
        return metrics

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
    """One process for each device of all nodes, on the cores near its device.

    Several cores each, as the library has threads for the network. The tests must be built with
    MPI, which starts the processes.
    """

    valid_systems = ["+devices +several_nodes +ranks -simulated"]
    valid_prog_environs = ["+rccl-tests +mpi", "+nccl-tests +mpi"]
    sizes = (8 << 20, 1 << 30)
    programs = ("all_reduce", "sendrecv")

    keep_files = [*RcclCheck.keep_files, f"*{LIBRARY_LOG}"]

    @property
    def _stated(self) -> Mapping[str, Any]:
        """What the library needs between the nodes of this site, and no other check has."""
        stated: Mapping[str, Any] = self.current_environ.extras.get("rccl_nodes", {})
        return stated

    @run_after("setup")  # type: ignore[untyped-decorator]
    def _load_network(self) -> None:
        self.modules = [*self.modules, *self._stated.get("modules", ())]
        self.env_vars = {**self.env_vars, **self._stated.get("variables", {})}

    def _ranks_line(self) -> str:
        node = self.node
        binding = {} if node is None else table.masks(placement.near_masks(node))
        return self.line(range(self.device_count), binding, *self._stated.get("srun", ()))

    def conditions(self, launches: Sequence[Launch]) -> Mapping[str, Any]:
        """Return the versions that the environment requires, and the network of the fabric."""
        of_collectives = super().conditions(launches)
        provider = self.fabric.provider
        network = self.current_environ.extras.get("rccl_network") or NETWORKS[provider]
        return {**of_collectives, "network": network, "provider": provider}

    def processes(self, plan: Any) -> int:
        """One process for each device."""
        return int(self.device_count * self.node_count)

    def facts_command(self) -> str:
        """Return the command that describes the devices of all nodes."""
        command = [str(self.programs_folder / "affinity"), "--time-limit", str(FACTS_S)]
        line = self.line(range(1), {}, *self._stated.get("srun", ()))
        return f"{line} {shlex.join([*command, '--output', FACTS])}"

    def launches(self) -> Sequence[Launch]:
        """Return one launch for each test."""
        devices = range(self.device_count)
        first, last = self.judged_sizes()
        options = ["-b", str(first), "-e", str(last), "-f", "2", "-g", "1"]
        options += ["-n", str(ITERATIONS), "-w", str(WARM_UP), "-c", "1"]
        names = {program: f"{program}-{self.node_count}nodes" for program in self.programs}
        return [
            Launch(
                name=names[program],
                program=program,
                command=" ".join(
                    [
                        self._ranks_line(),
                        # The library names its version and its network, in a file of each rank:
                        # in one stream the lines of several may mix.
                        self.environment(
                            devices,
                            "NCCL_DEBUG=INFO",
                            f"NCCL_DEBUG_FILE={names[program]}.%h.%p{LIBRARY_LOG}",
                        ),
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
