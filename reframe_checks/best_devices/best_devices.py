"""The best k devices of a node (experiment E14)."""

import reframe as rfm

from fabricheck.rfm.pairs import BestDevicesCheck, pair_arguments


@rfm.simple_test
class best_devices(BestDevicesCheck):
    """The best 2, 3 and 4 devices by the node model, compared with all measured sets."""

    descr = "Best devices by the node model, compared with the best measured ones (E14)"
    tags = {"E14", "node", "full"}
    program = "p2p"
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+p2p"]
    # Copy engines limit all pairs to their own peak; a kernel shows the links.
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
        """Return the operation, and the partition's array size and noise limit."""
        return ["--operations", self.where["operation"], *pair_arguments(self)]
