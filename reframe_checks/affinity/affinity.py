"""Where the ranks of a launch sit (experiment E15)."""

import reframe as rfm

from fabricheck.rfm.binding import AffinityCheck


@rfm.simple_test
class affinity(AffinityCheck):
    """Each rank on the core, NUMA domain and device that the launcher was asked for."""

    descr = "Cores, NUMA domain and device of each rank, against what was asked for (E15)"
    tags = {"E15", "smoke", "node", "full"}
    valid_prog_environs = ["+affinity"]
    reference = {"$ref": "affinity.yaml"}
