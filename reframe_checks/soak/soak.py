"""Everything at once for minutes: memory, compute units, links and host links of all devices."""

from itertools import permutations

import reframe as rfm
from reframe.core.builtins import run_after, variable

from fabricheck.core.vocabulary import ENGINES_ON, OF_DEVICES
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Metric
from fabricheck.rfm.pairs import one_each

#: Passes of a simulated load: each is counted, however long it is.
SIMULATED_PASSES = 30

#: Seconds that the program may take besides the load: arrays of most of the memory are filled.
BESIDE_THE_LOAD_S = 300


@rfm.simple_test
class soak_all(MeasuringCheck):
    """One round of a soak; `fabricheck soak` runs many and judges what changes.

    load_s: seconds of load, set by ``-S load_s=N``.
    """

    descr = "All devices at work in their memory, compute units, links and host links at once"
    tags = {"soak"}
    only_if_requested = True
    program = "soak"
    valid_systems = ["+devices"]
    valid_prog_environs = ["+soak"]
    env_vars = ENGINES_ON
    load_s = variable(float, value=120.0)

    @run_after("init")
    def _allow_the_load(self):
        self.seconds = BESIDE_THE_LOAD_S + int(2 * self.load_s)

    def pairs(self):
        """Return the ordered pairs with links of their own; all pairs without such links."""
        direct = self.node.links if self.node else {}
        if direct:
            return [*direct, *((b, a) for a, b in direct)]
        return list(permutations(range(self.device_count), 2))

    def program_arguments(self):
        """Return the time, the sizes and the pairs of the partition."""
        size = self.current_partition.extras.get("peer_bytes") or self.extra("array_bytes")
        pairs = ",".join(f"{a}-{b}" for a, b in self.pairs()) or "none"
        arguments = ["--load-time", f"{self.load_s:g}", "--size", str(size), "--pairs", pairs]
        if self.runtime in OF_DEVICES:
            arguments += ["--memory", "0.8"]
        if self.simulated:
            arguments += ["--pass-time", f"{self.load_s / SIMULATED_PASSES:g}"]
        return arguments

    def expected_metrics(self):
        """Return the worst device or pair of each kind of work."""
        each = {
            "memory": {"operation": "copy", "experiment": "E1"},
            "to_device": {"operation": "h2d"},
            "from_device": {"operation": "d2h"},
        }
        metrics = [
            Metric(f"{name}_worst", {"role": "beside", **where}) for name, where in each.items()
        ]
        if not self.simulated:
            computed = {"role": "beside", "operation": "compute"}
            metrics.append(Metric("compute_worst", computed, unit="us"))
        if self.pairs():
            copied = {"role": "beside", "operation": "engine"}
            among = one_each(self.pairs())
            metrics.append(Metric("peers_worst", copied, ("device_set",), among=among))
        return metrics
