"""Collectives of RCCL or NCCL, by rccl-tests or nccl-tests (E11)."""

import reframe as rfm

from fabricheck.rfm.benchmarks import RcclCheck


class CollectivesCheck(RcclCheck):
    """Devices with links between them, at the size of the paper's figures."""

    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+rccl-tests", "+nccl-tests"]
    sizes = (1 << 20, 1 << 20)


@rfm.simple_test
class rccl_collectives(CollectivesCheck):
    """Five collectives on all devices."""

    descr = "Collectives of RCCL or NCCL on all devices, 1 MiB (E11)"
    tags = {"E11", "node", "full"}


@rfm.simple_test
class rccl_scaling(CollectivesCheck):
    """The same on 2, 3 ... devices, without the set of all: each set starts a new process."""

    descr = "Collectives of RCCL or NCCL on 2 to all devices but one, 1 MiB (E11)"
    tags = {"E11", "full"}

    def device_sets(self):
        """Return the best sets of the node, except the set of all devices."""
        sets = [members for members in self.growing_sets() if len(members) < self.device_count]
        self.skip_if(not sets, f"There is no set between 2 and all of {self.device_count} devices.")
        return sets


@rfm.simple_test
class rccl_in_order(CollectivesCheck):
    """The same on the first 2, 3 ... devices, not the best ones, as in the paper's script."""

    descr = "Collectives of RCCL or NCCL on the first 2, 3 ... devices, 1 MiB (E11)"
    tags = {"E11", "full"}

    def device_sets(self):
        """Return the sets of the first devices that are not among the best sets."""
        return self.first_sets()


@rfm.simple_test
class rccl_threads(CollectivesCheck):
    """On the first 2, 3 ... all devices with a thread for each, as the paper's text states."""

    descr = "Collectives of RCCL or NCCL with a thread for each of 2 to all devices, 1 MiB (E11)"
    tags = {"E11", "full"}
    thread_each = True

    def device_sets(self):
        """Return the sets of the first 2, 3 ... all devices."""
        return [tuple(range(count)) for count in range(2, self.device_count + 1)]


@rfm.simple_test
class rccl_scan(CollectivesCheck):
    """Message sizes on all devices; the document keeps both placements of every size."""

    descr = "Collectives of RCCL or NCCL over message sizes, all devices (E11)"
    tags = {"E11", "full"}
    sizes = (8, 1 << 30)
    stated_sizes = "scan_sizes"
    values = {"GB/s": "busbw"}
