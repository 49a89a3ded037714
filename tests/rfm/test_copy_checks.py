"""Sessions of the checks of host-device copies and managed memory, with composed documents."""

from __future__ import annotations

import pytest

CHECKS = (
    "memcpy_near$",
    "memcpy_near_pageable",
    "memcpy_numa$",
    "memcpy_numa_pageable",
    "memcpy_scan",
    "managed_zero_copy",
    "managed_migration",
)

pytestmark = pytest.mark.slow


@pytest.fixture
def simulated(suite):
    """The suite on the simulated node, with stand-ins for its programs."""
    suite.variables["RFM_SYSTEM"] = "local:sim-mi250x"
    suite.variables["FABRICHECK_SIM_PROGRAMS"] = str(suite.programs)
    return suite


def session(suite, *checks, fault=""):
    suite.topics = ("managed", "memcpy")
    suite.variables["FAKE_COPIES"] = fault
    return suite("-r", *(part for check in checks for part in ("-n", check)))


def test_a_healthy_node_passes(simulated):
    outcome = session(simulated, *CHECKS)
    assert outcome.status == 0, outcome
    assert "Ran 7/7 test case(s)" in outcome
    assert "P: h2d_pinned_far_worst: 28.300 GB/s" in outcome
    assert "P: h2d_pageable_near_median: 25.280 GB/s" in outcome
    said = "managed_migration: report only, without a limit on local:sim-mi250x: write_worst"
    assert said in outcome
    folder = simulated.results / "output"
    scripts = {file.parent.name: file.read_text() for file in folder.rglob("rfm_job.sh")}
    assert "export HSA_XNACK=0" in scripts["managed_zero_copy"]
    assert "export HSA_XNACK=1" in scripts["managed_migration"]
    assert "--time-limit 600" in scripts["managed_migration"]
    assert "--devices 0,2,4,6 --domains each --memory pinned " in scripts["memcpy_numa"]
    pageable = "--devices each --domains each --memory pageable --operations h2d,d2h --series-time"
    assert pageable in scripts["memcpy_numa_pageable"]
    assert "--devices 0 --domains near --memory pinned,pageable " in scripts["memcpy_scan"]
    assert "--sizes 256:8GiB" in scripts["memcpy_scan"]


def test_a_slow_domain_is_named(simulated):
    outcome = session(simulated, "memcpy_numa$", fault="domain-2-slow")
    assert outcome.status == 1
    missed = "at least 26.885 GB/s is required (reference 28.3 GB/s)."
    near = "device 6 and NUMA domain 2 of node node1"
    far = "devices 0, 2 and 4 and NUMA domain 2 of node node1"
    for metric, where in (("near", near), ("far", far)):
        sentence = f"Metric h2d_pinned_{metric}_worst: {where} measured 25.6 GB/s; {missed}"
        assert sentence in outcome
    both = "both_pinned_far_worst: devices 0, 2 and 4 and NUMA domain 2 of node node1"
    assert f"Metric {both} measured 25.6 GB/s; at least 38.4 GB/s is required" in outcome


@pytest.mark.parametrize(
    ("fault", "checks", "sentences"),
    [
        (
            "cell-lost",
            ["memcpy_numa$", "memcpy_numa_pageable"],
            [
                "Metric h2d_pinned_far_worst has no series for",
                "Metric h2d_pageable_far_worst has no series for",
                "source.numa_domain 3 in the result of device 4 and NUMA domain 3 of node node1.",
            ],
        ),
        (
            "unproved",
            ["memcpy_numa$"],
            [
                "Metric h2d_pinned_far_worst has no series for",
                "source.numa_domain 0 in the result",
            ],
        ),
        (
            "other-label",
            ["memcpy_near$", "memcpy_numa$"],
            ["h2d_pinned_near_worst has no series for", "experiment E2,", "experiment E4,"],
        ),
        (
            "other-movement",
            ["managed_zero_copy"],
            ["Metric read_worst has no series for", "movement zero-copy"],
        ),
        (
            "no-movement",
            ["managed_zero_copy"],
            ["Metric read_worst has no series for", "movement zero-copy"],
        ),
    ],
)
def test_a_program_that_does_it_wrong_fails_the_check(simulated, fault, checks, sentences):
    outcome = session(simulated, *checks, fault=fault)
    assert outcome.status == 1
    assert f"{len(checks)} failure(s)" in outcome
    for sentence in sentences:
        assert sentence in outcome


def test_what_the_first_partition_measures_is_the_machine_s(suite):
    outcome = session(suite, "memcpy")
    assert outcome.status == 0, outcome
    said = "memcpy_near: report only, without a limit on local:host: h2d_pinned_near_worst"
    assert said in outcome
