"""Checks of several nodes: what they ask of a launcher, what they judge, and what they do not."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_ins import script

import factories
from fabricheck.node import load
from fabricheck.node.fabric import load_fabric
from fabricheck.rfm.metrics import MetricError
from fabricheck.rfm.network_benchmarks import OsuNodesCheck
from fabricheck.rfm.nodes import BetweenNodes, FabricCheck, NicMedian, unproven
from fabricheck.rfm.pairs import one_each

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NODE, SLINGSHOT, ETHERNET = load("mi250x"), load_fabric("slingshot-11"), load_fabric("ethernet")


def ranks(*networks):
    """Return the ranks of two nodes, half of them on each."""
    each = len(networks) // 2
    return [
        {"rank": number, "host": f"n{number // each + 1}", "network": network}
        for number, network in enumerate(networks)
    ]


def used(*nics, transport="nic", provider="cxi", parts=(1.0,)):
    named = [{"name": name, "part": part} for name, part in zip(nics, parts, strict=bool(nics))]
    return {"nics": named, "transport": transport, "provider": provider, "place": None}


RIGHT = [used(f"cxi{number}") for number in range(4)]


def told(found, fabric=SLINGSHOT, node=NODE):
    return list(unproven(ranks(*found), fabric, node, NODE.nic_devices))


@pytest.mark.parametrize(
    ("fabric", "absent", "names"),
    [
        (SLINGSHOT, (), ["nic_same_switch_median", "nic_same_group_median",
                         "nic_other_group_median", "unproven"]),
        (SLINGSHOT, ("same-switch", "other-group"), ["nic_same_group_median", "unproven"]),
        (ETHERNET, (), ["nic_median", "unproven"]),
    ],
)  # fmt: skip
def test_the_fabric_has_a_metric_of_each_distance_and_one_where_places_are_unknown(
    fabric, absent, names
):
    check = SimpleNamespace(fabric=fabric, absent=absent)
    assert [metric.name for metric in FabricCheck.expected_metrics(check)] == names


def test_the_nearest_nics_and_the_fabrics_provider_are_proved():
    assert told([*RIGHT, *RIGHT]) == []
    lo = used("lo", transport="kernel", provider="tcp")
    assert told([lo, lo], ETHERNET, None) == []
    # Storage sends by the same NICs.
    beside = used("cxi1", "cxi2", parts=(1.0, 0.08))
    assert told([RIGHT[0], beside, *RIGHT[2:], *RIGHT]) == []


#: Ways of messages that are not those of RIGHT.
OTHER_WAYS = [
    used("cxi0"),
    used("cxi0", "cxi1", parts=(1.0, 0.95)),
    used("cxi1", "cxi0", parts=(0.6, 0.4)),
    used("hsn1", transport="kernel", provider="tcp"),
    used("cxi1", provider=None),
    used("cxi1", provider="verbs"),
    used(transport="within-node"),
    used(transport=None),
    None,
]


def test_another_way_of_messages_is_a_sentence(wording):
    sentences = []
    for network in OTHER_WAYS:
        (sentence,) = told([*RIGHT, RIGHT[0], network, *RIGHT[2:]])
        sentences.append(sentence)
    wording(sentences)


def test_nics_of_other_names_are_known_by_the_ranks_beside_them(wording):
    renamed = [used(name) for name in ("ensp1", "ensp2", "ensp3", "ensp4")]
    assert told([*RIGHT, *renamed]) == []
    wording(told([*RIGHT, *renamed[:3], renamed[0]]))
    # One name of the model, and the others are known too.
    wording(told([*RIGHT, RIGHT[0], renamed[1], *RIGHT[2:]]))


def message(ranks, **changes):
    """Build messages between the host memories of two ranks."""
    place = factories.place("host-pageable", None)
    ends = {"source": place, "destination": place, "device": None, "device_set": []}
    own = {"experiment": "E17", "engine": "mpi", "direction": "one-way", "ranks": ranks}
    return factories.series(**ends | own | changes)


def between(**options):
    """Build a metric of two pairs of ranks."""
    among = one_each([(0, 4), (1, 5)])
    return BetweenNodes("x", {"experiment": "E17"}, ("ranks",), among=among, **options)


def test_a_pair_whose_distance_is_unknown_is_named():
    series = [message([0, 4], distance="same-group"), message([1, 5], distance=None)]
    metric = between(distance="same-group")
    with pytest.raises(MetricError, match="the distance of ranks 1 and 5 of node node1 is unknown"):
        metric.figure(factories.document(series=series), {})


def test_the_longest_of_the_single_messages_of_all_pairs_counts():
    latency = {"operation": "latency", "unit": "us", "better": "lower"}
    series = [message([0, 4], **latency, p99=3.0), message([1, 5], **latency, p99=9.0)]
    metric = between(unit="us", p99=True)
    figure = metric.figure({"series": series}, {})
    assert figure.value == 9
    assert [one["ranks"] for one in figure.decisive] == [[1, 5]]


def test_what_is_measured_again_is_not_in_the_median_of_the_nics():
    """Phase 2 measures the slow NICs once more, and would count them twice."""
    nics = [[{"name": "hsn0", "place": {"group": "0", "switch": switch}}] for switch in "112"]
    rounds = [
        {"phase": phase, "pairs": [pair], "out": [[rate]], "back": [[rate]]}
        for phase, pair, rate in [
            (1, (0, 1), 24.0), (1, (0, 2), 20.0), (2, (0, 1), 1.0), (2, (0, 2), 2.0),
        ]
    ]  # fmt: skip
    document = {"rounds": {"nodes": [{"nics": own} for own in nics], "rounds": rounds}}
    values = [
        NicMedian("x", distance=one).figure(document, {}).value
        for one in ("same-switch", "same-group", None)
    ]
    assert values == [24, 20, 22]


@pytest.fixture
def two(suite):
    """The suite on two nodes whose programs are stand-ins."""
    suite.topics = ("network",)
    suite.own_site(HERE / "nodes_site.py")
    suite.variables |= {
        "RFM_REFERENCE_PREFIX": str(ROOT / "reference_values"),
        "FABRICHECK_ROCM_PROGRAMS": str(suite.programs),
        "PATH": f"{suite.folder / 'launchers'}:/usr/bin:/bin",
    }
    # Its first four words say how many ranks, and on which cores.
    script(suite.folder / "launchers" / "mpiexec", 'shift 4\nexec "$@"')
    script(suite.programs / "mpi", f'exec "{sys.executable}" "{HERE / "fake_nodes.py"}" "$@"')
    return suite


def session(two, *more):
    return two("--system=two", "-r", "-n", "^mpi_nodes$", *more)


def metrics(two):
    (case,) = two.report()["runs"][0]["testcases"]
    return {name.rsplit(":", 1)[-1]: found[0] for name, found in case["perfvalues"].items()}


def test_metrics_are_by_distance_and_those_that_do_not_occur_are_left_out(two):
    two.variables["FAKE_DISTANCES"] = "same-switch,same-group,same-group,same-group"
    outcome = session(two)
    assert outcome.status == 0, outcome
    found = metrics(two)
    assert not any("other_group" in name for name in found)
    # The pair of NIC 0, and the worst of the other three.
    assert found["bandwidth_same_switch_worst"] == pytest.approx(23.0)
    assert found["bandwidth_same_group_worst"] == pytest.approx(23.01)
    assert found["latency_same_group_worst"] == pytest.approx(2.57)
    assert found["latency_p99_same_group_worst"] == 4.0
    assert found["bandwidth_all_nics_worst"] == pytest.approx(92.0)
    assert found["bandwidth_both_all_nics_worst"] == pytest.approx(176.0)
    assert found["unproven"] == 0


@pytest.mark.parametrize("fault", ["tcp", "policy", "one-nic"])
def test_another_network_is_a_setting_and_judges_no_rate(two, fault, wording):
    two.variables["FAKE_NODES"] = fault
    outcome = session(two)
    assert outcome.status == 1
    (case,) = two.report()["runs"][0]["testcases"]
    assert case["fail_info"]["exc_type"] == "SettingError"
    wording(case["fail_reason"])
    assert {value for value, *_ in case["perfvalues"].values()} == {None}


def test_mpi_chooses_the_nics_near_the_ranks(two):
    assert session(two).status == 0
    (job,) = two.results.glob("output/*/two/gpu/*/mpi_nodes/rfm_job.sh")
    assert "export MPICH_OFI_NIC_POLICY=NUMA\n" in job.read_text()


def test_a_network_check_runs_only_if_requested(two, wording):
    outcome = two("--system=two", "-r")
    assert outcome.status == 1
    wording(outcome.lines_with("only if requested"))


@pytest.mark.parametrize("devices", [(0,), (0, 1)])
def test_pairs_at_the_same_time_are_judged_where_a_node_has_several_devices(devices):
    check = SimpleNamespace(
        judged_sizes=lambda: (1 << 20, 4 << 20),
        latency_sizes=(8, 8192),
        node_devices=devices,
        _metric=partial(OsuNodesCheck._metric, None),
    )
    names = [metric.name for metric in OsuNodesCheck.expected_metrics(check)]
    assert ("mbw_mr" in names) == (len(devices) > 1)
    assert names[:2] + names[-1:] == ["bw", "bibw", "latency"]
