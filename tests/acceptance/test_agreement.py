"""The file of an agreement: what it may say, and what is refused with the nearest name."""

import pytest
from agreed_nodes import SYSTEM, WAIVER, Machine, content

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidFile
from fabricheck.references import agreement as agreements
from fabricheck.references.agreement import Measured

MEMORY = content()["criteria"][0]

#: What is wrong with an agreement, by the sentence that refuses it.
WRONG = {
    "criterias: this key is unknown; the nearest is criteria": {"criterias": []},
    "criteria[0].at_leat: this key is unknown; the nearest is at_least": {
        "criteria": [{"at_leat": 1, **MEMORY}]
    },
    "waivers[0].untill: this key is unknown; the nearest is until": {
        "waivers": [{**WAIVER, "untill": "soon"}]
    },
    "sets: there is no set 'smok'; the nearest is smoke": {"sets": ["smok"]},
    "sets: 'smoke' is there twice": {"sets": ["smoke", "smoke"]},
    "waivers[0].node: 'node71' is none of the nodes; the nearest is node7": {
        "waivers": [{**WAIVER, "node": "node71"}]
    },
    "waivers[0].criterion: there is no criterion 'memry'; the nearest is memory": {
        "waivers": [{**WAIVER, "criterion": "memry"}]
    },
    "nodes: 'node[1-' is not a list of nodes": {"nodes": "node[1-"},
    "criteria[memory]: state one limit": {"criteria": [{**MEMORY, "limit": "calibrated"}]},
    "criteria[memory]: at_least and at_most need a unit": {
        "criteria": [{key: MEMORY[key] for key in MEMORY if key != "unit"}]
    },
    "criteria[memory]: at_least is above at_most": {"criteria": [{**MEMORY, "at_most": 1}]},
    "criteria: 'memory' is there twice": {"criteria": [MEMORY, MEMORY]},
    "commit: this-checkout is for a simulated system only": {
        "commit": "this-checkout",
        "simulated": False,
    },
    "commit: this is not a name of its kind": {"commit": "0a1b2c3d4e5f-dirty"},
    "signers: ": {"signers": []},
    "signers[centre].key: this is not a name of its kind": {
        "signers": [{"name": "centre", "role": "the centre", "key": "a key"}]
    },
    "may_fail_at_first: ": {"may_fail_at_first": -1},
    "soak_hours: ": {"soak_hours": "ten"},
    "waivers[0].until: ": {"waivers": [{**WAIVER, "until": "soon"}]},
}

#: What nothing measures, by the sentence that refuses it.
UNMEASURED = {
    f"criteria[0].check: {SYSTEM} has no check 'stream_locl'; the nearest is stream_local": {
        "check": "stream_locl"
    },
    "criteria[0].metric: stream_local measures no 'copy_wurst'; the nearest is copy_worst": {
        "metric": "copy_wurst"
    },
    "criteria[0].check: stream_scan is in none of the sets smoke, but in full: nothing": {
        "check": "stream_scan"
    },
    "criteria[0].unit: copy_worst is in GB/s, not us": {"unit": "us"},
    "criteria[0]: of copy_worst in GB/s more is better: use at_least": {
        "at_least": None,
        "at_most": 1400,
    },
    "criteria[0].percent_of_peak: latency has no peak in us": {
        "metric": "latency",
        "at_least": None,
        "unit": None,
        "percent_of_peak": 80.0,
    },
}

CHECKS = {
    "stream_local": Measured(["smoke", "full"], {"copy_worst": "GB/s", "latency": "us"}),
    "stream_scan": Measured(["full"], {"copy_worst": "GB/s"}),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_wrong_is_refused_with_its_place_and_the_nearest_name(tmp_path, sentence):
    file = Machine(tmp_path).agree(**WRONG[sentence])
    with pytest.raises(InvalidFile) as refused:
        agreements.read(file)
    assert str(refused.value).startswith(f"{file}: {sentence}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sentence", UNMEASURED)
def test_what_nothing_measures_is_refused(tmp_path, sentence):
    changed = {**MEMORY, **UNMEASURED[sentence]}
    changed = {key: value for key, value in changed.items() if value is not None}
    agreement = agreements.read(file := Machine(tmp_path).agree(criteria=[changed]))
    with pytest.raises(InvalidFile) as refused:
        agreements.require_measured(file, agreement, CHECKS)
    assert str(refused.value).startswith(f"{file}: {sentence}")


def test_an_agreement_has_a_column_for_each_set_the_soak_and_each_metric(tmp_path):
    file = Machine(tmp_path).agree(soak_hours=8.0, waivers=[WAIVER])
    agreement = agreements.read(file)
    assert [column.name for column in agreement.columns] == ["set-smoke", "soak", "memory"]
    assert len(agreement.node_names) == 40
    assert agreement.waiver("node19", "memory").by == "the board"
    assert agreement.waiver("node19", "set-smoke") is None


@pytest.mark.parametrize("most", [1300, 1500])
def test_a_value_may_have_limits_on_both_sides(tmp_path, most):
    file = Machine(tmp_path).agree(criteria=[{**MEMORY, "at_most": most}])
    (criterion,) = agreements.read(file).criteria
    assert (criterion.at_least, criterion.at_most) == (1300, most)


def test_a_system_that_no_site_has_is_refused_with_the_nearest(tmp_path, command, wording):
    machine = Machine(tmp_path)
    file = machine.agree(system="local:sim-mi250")
    ended = command("acceptance", "status", file, "--results", machine.results, code=4)
    wording(ended.stderr)
    file = machine.agree(simulated=False)
    ended = command("acceptance", "status", file, "--results", machine.results, code=4)
    wording(ended.stderr)


def test_the_example_is_an_agreement_on_forty_simulated_nodes():
    agreement = agreements.read(ROOT / "config" / "agreements" / "forty-simulated-nodes.yaml")
    assert (len(agreement.node_names), agreement.simulated) == (40, True)
    assert [column.name for column in agreement.columns] == ["set-smoke", "memory", "links"]
    assert agreement.waiver("node33", "links").until < agreement.waiver("node19", "memory").until
