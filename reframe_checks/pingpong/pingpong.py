"""Host to device and back by one rank per device, all at once, by placement (experiment E6)."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.ranks import RanksCheck

#: The end of an operation that is the host's: the source, where it goes both ways.
HOST_END = {"h2d": "source", "d2h": "destination", "both": "source"}


class PingpongCheck(RanksCheck):
    """One launch in one placement; the metrics are over its ranks."""

    program = "pingpong"
    valid_prog_environs = ["+pingpong"]
    tags = {"E6", "full"}
    memory = ("pageable", "pinned")
    env_vars = ENGINES_ON
    arguments = ("--series-time", "0.5")

    def program_arguments(self):
        """Return the memory, message size, noise limit and placement, and where the ranks are."""
        size = self.sizes()
        noise = str(self.host_noise_limit)
        own = ["--memory", ",".join(self.memory), "--sizes", size, "--noise-limit", noise]
        named = ["--placement", self.placement] if self.placement else []
        return [*own, *named, *super().program_arguments()]

    def sizes(self):
        """Return the sizes of the messages."""
        return str(self.extra("pingpong_bytes"))

    def expected_metrics(self):
        """Return the worst and the median rank of each operation and kind of memory."""
        ranks = tuple(([rank],) for rank in range(len(self.rank_devices)))
        return [
            Metric(
                f"{operation}_{memory}_{reduce}",
                {"operation": operation, f"{end}.memory": f"host-{memory}", "bytes": LARGEST},
                ("ranks",),
                reduce,
                among=ranks,
                alike=self.placement == "right",
            )
            for operation, end in HOST_END.items()
            for memory in self.memory
            for reduce in ("worst", "median")
        ]


class PlacedPingpong(PingpongCheck):
    """In a placement of the node model, which the launcher is asked for."""

    valid_systems = ["+devices +several_devices +ranks +placements"]


@rfm.simple_test
class pingpong(PingpongCheck):
    """Ranks where the launcher puts them: for a node that no model describes."""

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
    """In a placement that only a node has with a NUMA domain that no device is near."""

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
