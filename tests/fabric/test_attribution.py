"""Drawn systems of 16 to 48 nodes: what an attribution names, and what it does not."""

from __future__ import annotations

import copy
import json
import random

import pytest

from fabric.drawn_fabrics import NICS, Faults, System, nics
from fabricheck.core.errors import InvalidFile
from fabricheck.judge.fabric.attributing import attribute
from fabricheck.results.document import parse


def drawn(faults=None, nodes=16, seed=1):
    return System(nodes, random.Random(seed)).measured(faults or Faults())


def names(found):
    return [one.name for one in found.named]


@pytest.fixture(scope="module")
def healthy():
    return drawn()


def nic(node, position, factor):
    faults = Faults()
    faults.nic(node, position, factor)
    return faults


def test_of_a_healthy_system_with_slow_positions_nothing_is_named(healthy):
    found = attribute(healthy)
    assert (found.named, found.switches, found.pairs, found.open) == ((), (), (), ())
    assert (found.nodes, found.nics) == (16, 64)
    assert found.least < 0.05


def test_a_nic_five_per_cent_low_is_named_with_its_loss():
    found = attribute(drawn(nic(3, 2, 0.95)))
    assert names(found) == ["nid000003:cxi2"]
    (one,) = found.named
    assert one.low < 0.05 < one.high
    assert one.direction == "both"
    assert one.partners == 15
    assert one.score > 1
    assert "nid000003:cxi2 sends and receives" in one.sentence
    assert "15 partners, 8 of them proven" in one.sentence


def test_a_nic_that_only_sends_slowly_is_named_so():
    faults = Faults(sending={(7, 0): 0.9})
    (one,) = attribute(drawn(faults)).named
    assert (one.name, one.direction) == ("nid000007:cxi0", "sending")


def test_a_node_of_which_all_nics_are_low_is_one_name():
    faults = Faults()
    for position in range(NICS):
        faults.nic(4, position, 0.94)
    (one,) = attribute(drawn(faults)).named
    assert (one.node, one.nic) == ("nid000004", None)
    assert "all of its 4 NICs are low" in one.sentence


def test_a_node_that_is_low_with_all_nics_at_once_is_named():
    (one,) = attribute(drawn(Faults(together={9: 0.5}))).named
    assert (one.node, one.nic) == ("nid000009", None)
    assert "with all its NICs at once" in one.sentence
    assert one.loss == pytest.approx(0.5, abs=0.02)


def test_a_switch_of_which_most_nics_are_low_is_one_name():
    faults = Faults()
    for node in range(16):
        faults.nic(node, 1, 0.9)
    found = attribute(drawn(faults, nodes=48))
    assert [one.name for one in found.switches] == ["switch 1 of group 0"]
    assert found.named == ()


def test_a_bad_pair_blames_no_node():
    found = attribute(drawn(Faults(pairs={frozenset((2, 11)): 0.7})))
    assert found.named == ()
    assert [one.nodes for one in found.pairs] == [("nid000002", "nid000011")]
    (said,) = found.open
    assert "neither node is named" in said


def test_pairs_that_are_measured_again_do_not_outweigh_other_partners():
    # A node that is low with six of its partners: each is measured four times.
    faults = Faults(pairs={frozenset((2, other)): 0.8 for other in range(6, 12)})
    found = attribute(drawn(faults))
    assert found.named == ()
    assert len(found.pairs) == 6


def test_an_unsteady_nic_is_said_and_not_named():
    found = attribute(drawn(Faults(noise={(5, 3): 0.12})))
    assert found.named == ()
    (said,) = found.open
    assert said.startswith("nid000005:cxi3 is unsteady")


def test_partners_that_send_slowly_make_no_nic_unsteady():
    faults = Faults(sending={(node, nic): 0.7 for node in range(7) for nic in range(NICS)})
    assert not [said for said in attribute(drawn(faults)).open if "is unsteady" in said]


def test_what_was_not_measured_again_is_not_named():
    content = drawn(nic(3, 2, 0.95))
    rounds = content["rounds"]
    rounds["rounds"] = [one for one in rounds["rounds"] if one["phase"] == 1]
    found = attribute(content)
    assert found.named == ()
    assert any("was measured again with 0 proven ones" in said for said in found.open)


def test_what_was_low_in_phase_one_only_is_not_named():
    system = System(16, random.Random(3))
    content = system.measured(nic(3, 2, 0.9))
    rounds = content["rounds"]
    rounds["rounds"] = [
        one if one["phase"] == 1 else system.measure(2, one["pairs"], Faults())
        for one in rounds["rounds"]
    ]
    found = attribute(content)
    assert found.named == ()
    assert any("when it was measured again: it is not named" in said for said in found.open)


def test_three_nodes_name_nobody(wording):
    found = attribute(drawn(nic(1, 2, 0.5), nodes=3))
    assert found.named == ()
    wording(found.open[0])


def in_another_group(system, nodes):
    """Put nodes into a group of their own, each NIC at a switch of its own."""
    move(system, nodes, "1", 0)


def move(system, nodes, group, first):
    """Put nodes into a group, their NICs at its switches from a first one on."""
    for node in nodes:
        system.nodes[node]["nics"] = nics(group, first)


@pytest.mark.parametrize(("nodes", "far"), [(6, [4, 5]), (8, [7]), (12, [11])])
def test_nodes_that_alone_are_far_are_not_named_for_their_distance(nodes, far):
    faults = Faults(
        pairs={
            frozenset((one, other)): 0.95
            for one in far
            for other in range(nodes)
            if other not in far
        }
    )
    said: list[str] = []
    for seed in range(5):
        system = System(nodes, random.Random(seed))
        in_another_group(system, far)
        found = attribute(system.measured(faults))
        assert found.named == ()
        said += found.open
    assert any("NIC and distance cannot be told apart, and it is not" in one for one in said)


def test_a_node_that_alone_is_far_and_slow_is_said():
    # Its rates are the only ones of their distance, and so their median.
    faults = Faults()
    for position in range(NICS):
        faults.nic(15, position, 0.5)
    system = System(16, random.Random(1))
    in_another_group(system, [15])
    found = attribute(system.measured(faults))
    assert found.named == ()
    assert any(said.startswith("nid000015:cxi2 is 49.9 % low") for said in found.open)


def test_where_one_node_is_far_a_slow_nic_of_another_one_is_named():
    system = System(8, random.Random(1))
    in_another_group(system, [7])
    found = attribute(system.measured(nic(2, 1, 0.8)))
    assert names(found) == ["nid000002:cxi1"]


def test_switches_of_one_number_in_two_groups_are_far_from_each_other():
    # Eight nodes at either half of a group's switches, four at the first half of another group's.
    system = System(20, random.Random(1))
    move(system, range(8, 16), "0", NICS)
    in_another_group(system, range(16, 20))
    far = {frozenset((one, other)): 0.8 for one in range(16) for other in range(16, 20)}
    found = attribute(system.measured(Faults(pairs=far)))
    assert (found.named, found.pairs, found.open) == ((), (), ())
    assert found.least < 0.05


@pytest.mark.parametrize(("factor", "named"), [(0.5, ["nid000001:cxi2"]), (0.95, [])])
def test_four_nodes_name_a_nic_at_half_rate_and_none_five_per_cent_low(factor, named):
    assert names(attribute(drawn(nic(1, 2, factor), nodes=4, seed=4))) == named


def test_of_six_nodes_with_two_slow_nics_most_pairs_are_slow_and_both_are_named():
    faults = nic(0, 3, 0.8)
    faults.nic(1, 3, 0.8)
    found = attribute(drawn(faults, nodes=6, seed=0))
    said = " ".join(found.open)
    assert all(f"nid00000{node}:cxi3" in [*names(found), *said.split()] for node in (0, 1))
    assert "On most nodes" not in said


def test_a_position_that_is_low_on_most_nodes_is_said_and_not_named():
    faults = Faults()
    for node in range(16):
        faults.nic(node, 2, 0.9)
    found = attribute(drawn(faults))
    assert found.named == ()
    (said,) = found.open
    assert said.startswith("On most nodes NIC cxi2 is 17 % slower than their other NICs")


def test_rates_that_vary_too_much_are_said_to_tell_little():
    found = attribute(drawn(Faults(noise={(n, k): 0.2 for n in range(16) for k in range(NICS)})))
    assert any("a NIC is named only from" in said for said in found.open)


def test_a_document_says_the_same_as_its_rates():
    drawn_rates = drawn(nic(3, 2, 0.95))
    (one,) = attribute(parse(json.dumps(drawn_rates))).named
    assert one == attribute(drawn_rates).named[0]


def test_what_is_missing_from_a_document_is_said(healthy, wording):
    content = copy.deepcopy(healthy)
    rounds = content["rounds"]
    rounds["planned"] += 2
    rounds["left_out"] = [{"node": "nid000099", "round": 3, "reason": "nid000099: is gone."}]
    for one in rounds["rounds"]:
        for (first, second), out, back in zip(one["pairs"], one["out"], one["back"], strict=True):
            if 6 in (first, second):
                out[1] = back[1] = None
    rounds["failed"] = [{"round": 0, "nodes": [5, 6], "nic": 1, "reason": "It is down."}]
    content["outcome"].update(status="software", exit_code=4, message="It is down.")
    content["complete"] = False
    found = attribute(parse(json.dumps(content)))
    assert found.named == ()
    wording(found.open)


def test_messages_that_failed_are_said_although_others_arrived(healthy):
    content = copy.deepcopy(healthy)
    content["rounds"]["failed"] = [{"round": 0, "nodes": [5, 6], "nic": 1, "reason": "It failed."}]
    assert attribute(parse(json.dumps(content))).open == ("It failed.",)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        ("setting", 8, "The run ended with setting: MPI sends by TCP."),
        ("time-limit", 6, "The run did not finish: MPI sends by TCP."),
    ],
)
def test_a_run_that_ended_otherwise_is_said(healthy, status, code, said):
    content = copy.deepcopy(healthy)
    content["outcome"].update(status=status, exit_code=code, message="MPI sends by TCP.")
    content["complete"] = False
    assert attribute(parse(json.dumps(content))).open == (said,)


def test_a_direction_without_a_rate_is_said(healthy, wording):
    content = copy.deepcopy(healthy)
    for one in content["rounds"]["rounds"]:
        for (first, second), out, back in zip(one["pairs"], one["out"], one["back"], strict=True):
            for node, rates in ((first, out), (second, back)):
                if node == 5:
                    rates[1] = None
    found = attribute(parse(json.dumps(content)))
    wording(found.open)


def test_a_node_without_a_rate_of_all_its_nics_at_once_is_said(healthy, wording):
    content = copy.deepcopy(healthy)
    for one in content["rounds"]["rounds"]:
        for pair, *columns in zip(
            one["pairs"], one["together_out"], one["together_back"], strict=True
        ):
            for rates in columns if 5 in pair else ():
                rates[0] = None
    found = attribute(parse(json.dumps(content)))
    wording(found.open)


def test_without_any_rate_nothing_is_said_to_be_good(healthy, wording):
    content = copy.deepcopy(healthy)
    for one in content["rounds"]["rounds"]:
        for name in ("out", "back", "together_out", "together_back"):
            one[name] = [[None] * NICS for _ in one["pairs"]]
    found = attribute(parse(json.dumps(content)))
    assert found.spread is None
    wording(found.open[-1])


@pytest.mark.parametrize(
    ("transport", "provider", "used", "named"),
    [
        ("kernel", "tcp", "hsn2", False),
        ("within-node", None, None, False),
        # The document has a note on what cannot be told.
        (None, None, None, True),
        ("nic", None, "cxi2", True),
        ("within-node", "cxi", None, False),
    ],
)
def test_a_nic_is_not_named_for_messages_that_went_another_way(
    transport, provider, used, named, wording
):
    content = drawn(nic(3, 2, 0.5))
    for one in content["ranks"]:
        name = f"cxi{one['rank'] % NICS}"
        one["network"] = way("nic", "cxi", name)
    content["ranks"][14]["network"] = way(transport, provider, used)
    found = attribute(parse(json.dumps(content)))
    assert names(found) == (["nid000003:cxi2"] if named else [])
    wording(found.open)


def test_ways_that_cannot_be_told_are_not_those_of_most_ranks():
    content = drawn(nic(3, 2, 0.5))
    for one in content["ranks"]:
        known = one["rank"] < 2 * NICS
        one["network"] = way("nic", "cxi" if known else None, f"cxi{one['rank'] % NICS}")
    found = attribute(parse(json.dumps(content)))
    assert names(found) == ["nid000003:cxi2"]
    assert found.open == ()


def way(transport, provider, name):
    nics = [{"name": name, "part": 1.0}] if name else []
    return {"nics": nics, "transport": transport, "provider": provider, "place": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["rounds"][0]["pairs"][0].__setitem__(0, 99), r"pairs\[0\]: nodes 99 and "),
        (lambda r: r.update(suspects=[{"node": 3, "nic": 4}]), "is not among the nodes"),
    ],
)
def test_rounds_that_contradict_themselves_are_refused(healthy, change, said):
    content = copy.deepcopy(healthy)
    change(content["rounds"])
    with pytest.raises(InvalidFile, match=said):
        parse(json.dumps(content))
