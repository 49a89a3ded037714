"""Host-device round trips by one rank per device, all at once, by placement (experiment E6)."""

import dataclasses
import math

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.ranks import RanksCheck

#: The ends of an operation, the host's first: its source, if it goes there and back.
ENDS = {
    "h2d": ("source", "destination"),
    "d2h": ("destination", "source"),
    "there-and-back": ("source", "destination"),
}


class PingpongCheck(RanksCheck):
    """One launch in one placement; the metrics are over its ranks."""

    program = "pingpong"
    valid_prog_environs = ["+pingpong"]
    tags = {"E6", "full"}
    memory = ("pageable", "pinned")
    env_vars = ENGINES_ON
    arguments = ("--series-time", "0.5")

    def program_arguments(self):
        """Return memory, message size, noise limit and placement, and the ranks' map."""
        size = self.sizes()
        noise = str(self.host_noise_limit)
        arrays = ["--memory", ",".join(self.memory), "--sizes", size, "--noise-limit", noise]
        named = ["--placement", self.placement] if self.placement else []
        return [*arrays, *named, *super().program_arguments()]

    def sizes(self):
        """Return the sizes of the messages."""
        return str(self.extra("pingpong_bytes"))

    def expected_metrics(self):
        """Return the worst and the median rank of each operation and kind of memory."""
        ranks = tuple(([rank],) for rank in range(len(self.rank_devices)))
        return [
            Metric(
                f"{operation.replace('-', '_')}_{memory}_{reduce}",
                {
                    "operation": operation,
                    f"{host}.memory": f"host-{memory}",
                    f"{other}.memory": "device",
                    "bytes": LARGEST,
                },
                ("ranks",),
                reduce,
                among=ranks,
                alike=self.placement == "right",
            )
            for operation, (host, other) in ENDS.items()
            for memory in self.memory
            for reduce in ("worst", "median")
        ]


class PlacedPingpong(PingpongCheck):
    """In a placement of the node model, requested of the launcher."""

    valid_systems = ["+devices +several_devices +ranks +placements"]


@rfm.simple_test
class pingpong(PingpongCheck):
    """Ranks where the launcher places them: for a node without a model."""

    descr = "Ping-pong of host and device, ranks as launched (E6)"
    tags = {"E6", "node", "full"}
    valid_systems = ["+devices +several_devices +ranks -placements"]


@rfm.simple_test
class pingpong_right(PlacedPingpong):
    """Each rank on a core near its device."""

    descr = "Ping-pong of host and device, ranks near their devices (E6)"
    tags = {"E6", "node", "full"}
    placement = "right"


@rfm.simple_test
class pingpong_scan(PlacedPingpong):
    """Message sizes from 4 B on in the right placement; the document keeps the full curves."""

    descr = "Ping-pong of host and device over message sizes, ranks near their devices (E6)"
    placement = "right"
    arguments = ("--max-samples", "15", "--batch-time", "0.003")

    def sizes(self):
        """Return a doubling range up to the size of the other checks."""
        return f"4:{super().sizes()}"


@rfm.simple_test
class pingpong_single(PlacedPingpong):
    """One rank near the first device: round trips by blocking copies, 4 B to 32 GiB.

    As in EPICURE's single task: a copy of pageable memory to the device, then one back, the bytes
    of both over the time of both. The largest size is a power of two that the device can store
    once, of 32 GiB at most, as on the published nodes; the host stores it twice. Up to 64 GiB one
    core took more than five minutes beside an H200, a third of the set.
    """

    descr = "Ping-pong of host and one device over message sizes, up to its memory (E6)"
    placement = "right"
    memory = ("pageable",)
    arguments = (
        *("--operations", "there-and-back", "--samples", "7", "--max-samples", "7"),
        *("--batch-time", "0.003", "--series-time", "1"),
    )
    seconds = 900

    @property
    def placed(self):
        """The placement of the first rank only."""
        placed = super().placed
        return dataclasses.replace(
            placed, devices=placed.devices[:1], cores=placed.cores[:1], local=placed.local[:1]
        )

    def sizes(self):
        """Return a doubling range up to the device's capacity, 32 GiB at most.

        SimGrid takes the address space of its ranks' memory from the machine: 1 GiB there.
        """
        free = 0.9 * self.required_node.device(self.rank_devices[0]).memory_bytes
        most = (1 << 30) if self.simulated else (32 << 30)
        return f"4:{min(most, 1 << int(math.log2(free)))}"

    def expected_metrics(self):
        """Return the rate of a round trip at the largest size."""
        fields = {"operation": "there-and-back", "source.memory": "host-pageable", "bytes": LARGEST}
        among = (([0],),)
        return [Metric("there_and_back", fields, ("ranks",), among=among, independent=True)]


@rfm.simple_test
class pingpong_in_order(PlacedPingpong):
    """The cores of the right placement in ascending order, as without a map."""

    descr = "Ping-pong of host and device, cores in order (E6)"
    placement = "in_order"


@rfm.simple_test
class pingpong_half_right(PlacedPingpong):
    """One device of each package, each rank near it."""

    descr = "Ping-pong of half of the devices, ranks near them (E6)"
    placement = "half_right"


@rfm.simple_test
class pingpong_half_rotated(PlacedPingpong):
    """One device of each package, each rank in another domain."""

    descr = "Ping-pong of half of the devices, ranks in other NUMA domains (E6)"
    placement = "half_rotated"


@rfm.simple_test
class pingpong_shared_device(PlacedPingpong):
    """Two ranks on one device."""

    descr = "Ping-pong of two ranks on one device (E6)"
    placement = "shared_device"


@rfm.simple_test
class pingpong_shared_domain(PlacedPingpong):
    """All ranks in one NUMA domain."""

    descr = "Ping-pong of all devices from one NUMA domain (E6)"
    placement = "shared_domain"


class FarPingpong(PlacedPingpong):
    """In a placement that needs a NUMA domain without a near device."""

    valid_systems = ["+devices +several_devices +ranks +placements +far_domain"]


@rfm.simple_test
class pingpong_far(FarPingpong):
    """All ranks in the domain without devices."""

    descr = "Ping-pong of host and device, ranks in a NUMA domain without devices (E6)"
    placement = "far"


@rfm.simple_test
class pingpong_spread(FarPingpong):
    """Half of the ranks near their devices, the others in the domain without devices."""

    descr = "Ping-pong of host and device, ranks spread over NUMA domains (E6)"
    placement = "spread"
