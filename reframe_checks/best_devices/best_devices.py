"""The best k devices of a node (experiment E14)."""

import reframe as rfm

from fabricheck.rfm.pairs import BestDevicesCheck, pair_arguments


@rfm.simple_test
class best_devices(BestDevicesCheck):
    """The best 2, 3 and 4 devices by the node model, against all sets as measured by kernel."""

    descr = "The best devices by the node model are the best measured (E14)"
    tags = {"E14", "node", "full"}
    program = "p2p"
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+p2p"]
    # A copy engine levels what it reaches to its own peak; a kernel shows the links.
    where = {
        "operation": "write",
        "role": "single",
        "engine": "kernel",
        "bytes_counted": "once",
        "source.memory": "device",
        "destination.memory": "peer",
    }
    set_sizes = (2, 3, 4)

    def program_arguments(self):
        """Return the operation, and what the partition decides: array size and noise limit."""
        return ["--operations", self.where["operation"], *pair_arguments(self)]
