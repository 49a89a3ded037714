"""Hunter: nodes with four AMD MI300A, by PBS and PALS. Nothing here was tried on the machine.

Sources at github.com: [runbook] IronmanAOY/IMPACT of October 2026, docs/HLRS_HUNTER_RUNBOOK.md,
which quotes HLRS's knowledge base as read on 2026-09-27; [hello] jordan-hlrs/hello-cluster, an
example of HLRS's staff; [jobs] public job scripts for node_type=mi300a.
"""

from fabricheck.site import clusters

site_configuration = {
    "systems": [
        {
            "name": "hunter",
            "descr": "Hunter",
            # hunter.hww.hlrs.de is hunter-login03 to 05 [runbook], section 2; x1001c1s1b0n0 is a
            # compute node [hello]. Others' nodes have such names, so those are known by what the
            # site calls itself, which is assumed.
            "hostnames": [
                r"hunter-login\d+(\.hww\.hlrs\.de)?(\s|$)",
                r"\S+ (.*\s)?hunter(\s|$)",
            ],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI300A",
                    "environs": ["rocm"],
                    # A job has whole nodes and 24 hours at most; the server chooses the queue, and
                    # FABRICHECK_QUEUE=test has 25 minutes [runbook], sections 10 and 15.
                    **clusters.reached("", "node_type=mi300a", by="pbs"),
                    **clusters.node(
                        "mi300a",
                        fabric="slingshot-11",
                        # [runbook], section 9.3, and [jobs].
                        site_binding=[
                            "--cpu-bind list:0-23:24-47:48-71:72-95",
                            "--gpu-bind list:0:1:2:3",
                        ],
                    ),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["hunter"],
            # [runbook], section 5.1: the default stack. Assumed: that PrgEnv-gnu and gcc-native/14
            # go with it; PALS is loaded with Cray MPICH.
            "modules": ["HLRS/APU/2026.1", "PrgEnv-gnu", "gcc-native/14"],
            "env_vars": [clusters.CRAY_MPICH_ON_DEVICES],
            # No document names a plug-in by which RCCL reaches Slingshot.
            **clusters.programs("rocm", "hunter"),
        }
    ],
}
