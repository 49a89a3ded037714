"""Drawn systems of 16 to 48 nodes: what an attribution names, and what it does not."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

import factories
from fabric import member
from fabric.drawn import NICS, Faults, System
from fabricheck.core.errors import InvalidDocument, NotFoundError
from fabricheck.judge.fabric import attribute, attribution
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


def test_what_was_not_measured_again_is_not_named():
    measured = drawn(nic(3, 2, 0.95))
    first = [one for one in measured.rounds if one.phase == 1]
    found = attribute(replace(measured, rounds=first))
    assert found.named == ()
    assert any("was measured again with 0 proven ones" in said for said in found.open)


def test_what_was_low_in_phase_one_only_is_not_named():
    system = System(16, random.Random(3))
    measured = system.measured(nic(3, 2, 0.9))
    calm = Faults()
    rounds = [
        one
        if one.phase == 1
        else system.measure(2, [(pair.one, pair.other) for pair in one.pairs], calm)
        for one in measured.rounds
    ]
    found = attribute(replace(measured, rounds=rounds))
    assert found.named == ()
    assert any("when it was measured again: it is not named" in said for said in found.open)


def test_three_nodes_name_nobody():
    found = attribute(drawn(nic(1, 2, 0.5), nodes=3))
    assert found.named == ()
    assert "an attribution needs 4 nodes" in found.notes[0]


def test_four_nodes_name_a_nic_at_half_rate():
    assert names(attribute(drawn(nic(1, 2, 0.5), nodes=4, seed=4))) == ["nid000001:cxi2"]


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
    measured = drawn(nic(3, 2, 0.95))
    document = parse(json.dumps(member.document(measured)))
    assert attribution(document).named == attribute(member.rounded(measured)).named


def test_what_is_missing_from_a_document_is_said(healthy):
    content = member.document(healthy)
    rounds = content["rounds"]
    rounds["planned"] += 2
    rounds["left_out"] = [{"node": "nid000099", "round": 3, "reason": "nid000099: is gone."}]
    for one in rounds["rounds"]:
        for (first, second), out, back in zip(one["pairs"], one["out"], one["back"], strict=True):
            if 6 in (first, second):
                out[1] = back[1] = None
    rounds["failed"] = [{"round": 0, "nodes": [5, 6], "nic": 1, "reason": "It is down."}]
    found = attribution(parse(json.dumps(content)))
    assert found.named == ()
    assert found.open == (
        "nid000099: is gone.",
        "15 of 17 rounds were measured.",
        "nid000006:cxi1 has no rate: It is down.",
    )


def test_a_document_without_rounds_is_refused():
    with pytest.raises(NotFoundError, match="of the program stream and has no rounds"):
        attribution(factories.document())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["nodes"][1].update(node="nid000000"), "nid000000 is there twice"),
        (lambda r: r["nodes"][1].update(ranks=[0, 5, 6, 7]), "rank 0 is there twice"),
        (lambda r: r["nodes"][1]["nics"].pop(), "has 3 for 4"),
        (lambda r: r["rounds"][0]["pairs"][0].__setitem__(0, 99), "node 99 is not among"),
        (lambda r: r["rounds"][0]["out"].pop(), "has 7 lists for 8 pair"),
        (lambda r: r["rounds"][0]["out"][0].append(1.0), "has 5 rates"),
        (lambda r: r.update(planned=3), "is 3, but phase 1 has 15 rounds"),
        (lambda r: r.update(suspects=[{"node": 3, "nic": 4}]), "is not among the nodes"),
        (lambda r: r.update(low_pairs=[[3, 16]]), "has a node that is not among"),
    ],
)
def test_rounds_that_contradict_themselves_are_refused(healthy, change, said):
    content = member.document(healthy)
    change(content["rounds"])
    with pytest.raises(InvalidDocument, match=said):
        parse(json.dumps(content))
