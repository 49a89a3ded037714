"""Tuolumne and El Capitan: nodes with four AMD MI300A, by Flux. Nothing here was tried on them.

Sources at github.com: [spack] LLNL/radiuss-spack-configs of December 2025, with its GitLab
pipeline; [warpx] BLAST-WarpX/warpx of July 2026, Docs/source/install/hpc/tuolumne.rst and
Tools/machines/tuolumne-llnl; [plexus], [sw4] public job scripts for Tuolumne.
"""

from fabricheck.site import clusters

site_configuration = {
    "systems": [
        {
            "name": "tuolumne",
            "descr": "Tuolumne and El Capitan",
            # tuolumne.llnl.gov [warpx]; tuolumne1848 is a compute node [sw4]. Assumed: El Capitan's
            # names, and that login nodes have a number, too.
            "hostnames": [r"(tuolumne|elcap)\d*(\.llnl\.gov)?(\s|$)"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI300A",
                    "environs": ["rocm"],
                    # Queues pbatch and pdebug [warpx].
                    **clusters.reached("pbatch", by="flux"),
                    # The system keeps three of the 24 cores of each package for itself [warpx]. No
                    # document says which: the node model has all, and ranks are bound to the first.
                    **clusters.node("mi300a", fabric="slingshot-11"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["tuolumne"],
            # The programs have the paths of [spack] in them; ROCm's module is that of [warpx]. The
            # wrappers of Cray MPICH are LLNL's own, which need no module.
            "modules": ["rocm/6.4.1"],
            "env_vars": [clusters.CRAY_MPICH_ON_DEVICES],
            # No document names a plug-in of the site by which RCCL reaches Slingshot.
            **clusters.programs("rocm", "tuolumne"),
        }
    ],
}
