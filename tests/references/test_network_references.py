"""The references of the network checks: every metric by every set, and a reason for each."""

from __future__ import annotations

import functools

import pytest

from fabricheck.references import listing
from fabricheck.references.entries import requires
from fabricheck.references.listing import CheckMetrics
from fabricheck.references.published import OWN_FOLDER
from fabricheck.references.stated import References

FILE = "network.yaml"
SLINGSHOT = ("lumi", "frontier", "dardel")


@functools.cache
def stated() -> References:
    return References(OWN_FOLDER)


CHECKS = [check for check, file in stated().file_of.items() if file == FILE]
KEYS = list(stated().tables[CHECKS[0]])


def rows(key: str, partition: str | None = None) -> list[listing.Row]:
    """Return what `fabricheck limits show` prints of the network checks of a partition or set."""
    on = partition or key
    told = [
        CheckMetrics(check, on, "", {metric: {"entry": entry, "unit": entry[3]}
                             for metric, entry in stated().entries(check, on, key).items()})
        for check in CHECKS
    ]  # fmt: skip
    return list(listing.rows(told, stated(), {on: key}, {}))


def test_every_set_has_all_metrics_of_each_check():
    assert len(CHECKS) == 8
    for check in CHECKS:
        metrics = stated().entries(check, "any").keys()
        for key in KEYS:
            assert stated().entries(check, key).keys() == metrics, f"{check} of {key}"


@pytest.mark.parametrize("key", KEYS)
def test_every_metric_has_a_limit_or_the_reason_why_there_is_none(key):
    found = rows(key)
    assert [f"{one.check} {one.metric}" for one in found if not one.how] == []
    assert sum(requires(one.entry) for one in found) >= 5  # unproven and named


@pytest.mark.parametrize("key", SLINGSHOT)
def test_a_nic_of_slingshot_is_held_to_what_lumi_states(key):
    found = {(one.check, one.metric): one for one in rows(key, f"{key}:gpu")}
    across = found["mpi_nodes", "bandwidth_other_group_worst"]
    within = found["mpi_nodes", "bandwidth_same_group_worst"]
    for one, least in ((across, 20.87), (within, 21.44)):
        value, lower, upper, _ = one.entry
        assert (round(value * (1 + lower), 2), upper) == (least, None)
    assert across.kind == within.kind == "derived"
    assert within.sources[0].limit and not across.sources[0].limit
    assert "eight" not in within.how and "thesis-lumi-bw-gcd0 .. thesis-lumi-bw-gcd7" in across.how
    loopback = found["nic_loopback", "loopback_worst"]
    assert loopback.entry == (22.5, 0, None, "GB/s") and loopback.sources[0].limit
    tolerance = found["osu_nodes", "bw"].entry[1]
    assert tolerance == (-0.05 if key == "lumi" else -0.1)
    # No processor node tells what leaves the memory of the host of an accelerator's node.
    host = found["mpi_nodes_host", "bandwidth_worst"]
    assert "deic-lumi-native-bw-hh" in host.how and host.entry[:2] == (22.58, -0.1)


@pytest.mark.parametrize("key", SLINGSHOT)
def test_latency_across_groups_has_no_limit_without_a_record_of_it(key):
    found = {(one.check, one.metric): one for one in rows(key, f"{key}:gpu")}
    for statistic in ("worst", "median"):
        assert requires(found["mpi_nodes", f"latency_same_group_{statistic}"].entry)
        assert not requires(found["mpi_nodes", f"latency_other_group_{statistic}"].entry)
