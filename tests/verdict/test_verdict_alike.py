"""What differs among the nodes of one verdict: kernel, driver, VBIOS, firmware."""

import pytest

import factories
from fabricheck.judge.verdict import evidence
from session_builder import SessionBuilder, good_case, kept_on_gpus


def document(node, driver="580.159.04", kernel="Linux 6.1.0", vbios="96.00.A5.00.1A", name=None):
    """Build a document of one H200 on a node."""
    own = factories.on_h200(1, versions={"runtime": "13.0", "driver": driver})
    own["host"] |= {"scheduler_node": node, "kernel": kernel}
    for snapshot in (own["state"]["before"], own["state"]["after"]):
        snapshot["devices"] = [factories.device_state(vbios=vbios)]
    if name is not None:
        own["devices"][0]["name"] = name
    return own


def verdicts(tmp_path, **by_node):
    """Return the verdicts on nodes by what differs of each, and the verdict on all."""
    cases = [
        (good_case(node=node) | kept_on_gpus(), document(node, **change))
        for node, change in by_node.items()
    ]
    found = SessionBuilder(tmp_path).each(cases).verdicts()
    return found, evidence.session_verdict("run-0", found.values())


def differing(verdict):
    """Return the caveats of a node that say how it differs."""
    return [one for one in verdict.caveats if "that of others is" in one]


def test_nodes_that_are_alike_have_no_note(tmp_path):
    found, total = verdicts(tmp_path, node1={}, node2={})
    assert total.notes == []
    assert not any(differing(one) for one in found.values())
    assert found["node1"].versions.vbios == ["96.00.A5.00.1A"]
    assert found["node1"].versions.firmware == {"inforom": ["G520.0282.02.02"]}
    assert found["node1"].versions.kernel == ["Linux 6.1.0"]


def test_one_node_differs_from_none(tmp_path):
    found, total = verdicts(tmp_path, node1={"driver": "570.86"})
    assert total.notes == [] and not differing(found["node1"])


@pytest.mark.parametrize(
    ("what", "change", "usual"),
    [
        ("driver", {"driver": "590.44"}, "580.159.04"),
        ("kernel", {"kernel": "Linux 5.14.0"}, "Linux 6.1.0"),
        ("VBIOS", {"vbios": "96.00.99.00.01"}, "96.00.A5.00.1A"),
    ],
)
def test_rarer_value_is_named_with_its_nodes(tmp_path, what, change, usual, wording):
    rare = {"node2": change, "node3": change}
    found, total = verdicts(tmp_path, node1={}, node4={}, node5={}, **rare)
    (value,), (note,) = change.values(), total.notes
    assert all(part in note for part in (what, f"{value} on node[2-3]", f"{usual} on"))
    wording(note)
    said = [f"Its {what} is {value}; that of others is {usual} on 3 nodes."]
    assert {node: differing(one) for node, one in found.items()} == {
        "node1": [], "node2": said, "node3": said, "node4": [], "node5": [],
    }  # fmt: skip
    assert found["node2"].status == "PASS"


def test_firmware_of_devices_is_compared_by_its_name(tmp_path, wording):
    odd = document("node2")
    for snapshot in (odd["state"]["before"], odd["state"]["after"]):
        snapshot["devices"][0]["firmware"] = {"inforom": "G520.0282.02.01", "gsp": "580"}
    cases = [(good_case(node=f"node{number}"), document(f"node{number}")) for number in (1, 3)]
    found = SessionBuilder(tmp_path).each(cases).passed(node="node2", document=odd).verdicts()
    wording(evidence.session_verdict("run-0", found.values()).notes)


def test_as_many_nodes_of_each_value_are_all_named(tmp_path, wording):
    found, total = verdicts(tmp_path, node1={}, node2={"driver": "570.86"})
    wording(total.notes)
    assert all(differing(one) for one in found.values())


def test_nodes_of_other_devices_may_differ(tmp_path):
    _, total = verdicts(tmp_path, node1={}, node2={"driver": "6.8", "name": "AMD Instinct MI250X"})
    assert total.notes == []


def test_note_is_printed(command, tmp_path):
    verdicts(tmp_path, node1={}, node2={"driver": "570.86"})
    said = command("verdict", tmp_path)
    assert "Note: The nodes differ in driver: 570.86 on node2" in said.words
