"""Binding of the ranks of a launch (experiment E15)."""

import reframe as rfm

from fabricheck.rfm.findings import AffinityCheck, SiteAffinityCheck


@rfm.simple_test
class affinity(AffinityCheck):
    """Each rank on the core, NUMA domain and device that was requested of the launcher."""

    descr = "Cores, NUMA domain and device of each rank, compared with the requested ones (E15)"
    tags = {"E15", "smoke", "node", "full"}
    valid_prog_environs = ["+affinity"]


@rfm.simple_test
class affinity_site(SiteAffinityCheck):
    """Each rank with one device of its own and the cores near it, by the site's own options."""

    descr = "Cores and device of each rank, bound by the site's recommended options (E15)"
    tags = {"E15", "smoke", "node", "full"}
    valid_systems = ["+devices +several_devices +ranks +site_binding"]
    valid_prog_environs = ["+affinity"]
