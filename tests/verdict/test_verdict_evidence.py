"""A node is to be drained only on evidence of hardware, alone or in contrast with other runs."""

import itertools
import json
import shlex

import pytest

import factories
from fabricheck.judge.verdict import draining, evidence, model
from fabricheck.judge.verdict.evidence import Judged, Run
from fabricheck.judge.verdict.rules import FAILED, RULES, STATUSES
from fabricheck.references import calibrated
from fabricheck.report import scheduler
from fabricheck.results import observed
from fabricheck.results.other_devices import explained
from session_builder import (
    HOST,
    PARTITION,
    SessionBuilder,
    crashed_node,
    ended,
    failed,
    good_case,
    hung_node,
    judge,
    kept_on_gpus,
    missed,
    of_many,
    refused_node,
    rules,
    slow_node,
    sound_node,
    verdicts_of_sessions,
    versions,
)

CHECK = (PARTITION, "builtin", "stream_local")
SOFTWARE = evidence.Software(("0.3.0 abc",), ("6.12",), ("6.3",), ("6.12.12",))


def lines(verdicts):
    return scheduler.drain_lines(evidence.session_verdict("x", verdicts.values()).nodes)


def test_a_node_that_missed_its_limit_twice_and_alone_has_a_live_line(tmp_path):
    found = verdicts_of_sessions(tmp_path, of_many(slow_node()), of_many(slow_node()))
    assert found["node1"].drain == model.Drain(
        live=True, evidence="contrast", rule="reference", check="stream_local", doubts=[],
        arguments=draining.command(found["node1"]),
    )  # fmt: skip
    (line,) = lines(found)
    assert shlex.split(line) == found["node1"].drain.arguments
    assert line.startswith("scontrol update NodeName=node1 State=DRAIN ")
    assert found["node2"].drain is None


@pytest.mark.parametrize(
    ("sessions", "doubt"),
    [
        ([of_many(slow_node())], "failed-once"),
        ([of_many(slow_node(), 1), of_many(slow_node(), 1)], "no-contrast"),
        ([of_many(slow_node("7.0")), of_many(slow_node("7.0"))], "no-contrast"),
        (
            [of_many(slow_node("unknown")), of_many(slow_node("unknown"))],
            "unknown-software",
        ),
        (
            [
                {**of_many(slow_node()), **{f"node{n}": slow_node() for n in range(2, 5)}}
                for _ in range(2)
            ],
            "many-alike",
        ),
    ],
)
def test_what_is_missing_of_a_contrast_makes_the_line_a_comment(tmp_path, sessions, doubt):
    found = verdicts_of_sessions(tmp_path, *sessions)
    drain = found["node1"].drain
    assert not drain.live and doubt in drain.doubts and drain.evidence is None
    assert all(line.startswith("# ") for line in lines(found))
    assert scheduler.DOUBTS[doubt] in lines(found)[0]


def test_a_limit_without_a_calibration_is_a_doubt(tmp_path, references):
    calibrated.file_of(references, PARTITION).unlink()
    found = verdicts_of_sessions(tmp_path, of_many(slow_node()), of_many(slow_node()))
    assert found["node1"].drain.doubts == ["provisional"]


def test_an_earlier_pass_on_the_node_is_a_contrast(tmp_path):
    found = verdicts_of_sessions(
        tmp_path, {"node1": sound_node()}, {"node1": slow_node()}, {"node1": slow_node()}
    )
    assert (found["node1"].status, found["node1"].drain.live) == ("PERF-FAIL", True)
    # Once is a check that varies.
    once = verdicts_of_sessions(tmp_path / "once", {"node1": sound_node()}, {"node1": slow_node()})
    assert once["node1"].status == "UNSTABLE"


def test_a_retry_is_a_second_time(tmp_path):
    """ReFrame's retry leaves no document of the first attempt."""
    cases = [(good_case(node=f"node{n}"), sound_node()[1]) for n in (2, 3)]
    case = good_case() | missed()
    session = SessionBuilder(tmp_path).add(case).rerun().add(case, slow_node()[1])
    assert session.each(cases).verdicts()["node1"].drain.live


@pytest.mark.parametrize("end", [hung_node, crashed_node])
def test_what_hangs_or_crashes_twice_on_one_node_alone_is_isolated(tmp_path, end, wording):
    once = verdicts_of_sessions(tmp_path / "once", of_many(end()))
    assert once["node1"].status == "INCOMPLETE" and not lines(once)
    twice = verdicts_of_sessions(tmp_path / "twice", of_many(end()), of_many(end()))
    assert twice["node1"].status == "HW-FAIL" and twice["node1"].drain.live
    (reason,) = {one.rule: one for one in twice["node1"].reasons}.values()
    assert reason.rule == "isolated"
    wording(reason.sentence)


def test_a_refused_call_of_the_runtime_isolates_and_an_error_of_software_does_not(tmp_path):
    """A full disk twice on one node is no fault of its devices."""
    disk = refused_node(status="software", code=4)
    of_disk = verdicts_of_sessions(tmp_path / "disk", of_many(disk), of_many(disk))
    assert of_disk["node1"].status == "INCOMPLETE"
    call = refused_node()
    of_call = verdicts_of_sessions(tmp_path / "call", of_many(call), of_many(call))
    assert of_call["node1"].status == "HW-FAIL" and of_call["node1"].drain.live


def test_a_signal_from_outside_isolates_nothing(tmp_path):
    killed = failed("sanity", "ended by signal 9", job_exitcode=137), crashed_node()[1]
    found = verdicts_of_sessions(tmp_path, of_many(killed), of_many(killed))
    assert found["node1"].status == "INCOMPLETE"


def test_a_rolling_update_of_a_driver_over_forty_nodes_accuses_no_node(command, tmp_path, wording):
    nodes = {f"node{n}": slow_node("7.0") if n <= 20 else sound_node() for n in range(1, 41)}
    found = verdicts_of_sessions(tmp_path, nodes, nodes)
    assert not lines(found)
    SessionBuilder(tmp_path / "all").each(
        [(good_case(node=n) | case, d) for n, (case, d) in nodes.items()]
    ).write()
    said = command("verdict", tmp_path / "all", code=12)
    assert "scontrol" not in said.stdout
    wording(said.stdout.splitlines()[0])


def test_a_new_system_on_which_nothing_ever_passed_has_no_line(tmp_path):
    nodes = {f"node{n}": refused_node("7.0") for n in range(1, 9)}
    found = verdicts_of_sessions(tmp_path, nodes, nodes)
    assert {one.status for one in found.values()} == {"INCOMPLETE"} and not lines(found)
    (alike,) = found["node3"].all_alike
    assert (alike.check, alike.rule, alike.nodes) == ("stream_local", "refused", 8)


def test_positive_evidence_counts_even_where_all_nodes_have_it(tmp_path):
    broken = factories.device_state(memory_errors={"corrected": 0, "uncorrected": 2})
    document = factories.on_h200(1, state=factories.state([factories.device_state()], [broken]))
    found = verdicts_of_sessions(tmp_path, {f"node{n}": ({}, document) for n in range(1, 5)})
    assert {one.drain.evidence for one in found.values()} == {"positive"}
    assert len(lines(found)) == 4 and all(line.startswith("scontrol") for line in lines(found))
    assert not found["node1"].all_alike


def test_a_line_states_the_reason_that_is_the_evidence(tmp_path):
    """A first failure of another check does not hide it."""
    narrow = factories.device_state(
        pcie={"width": 8, "width_max": 16, "width_max_port": 16, "gt_per_s": 16.0,
              "gt_per_s_max": 16.0, "replays": 0}
    )  # fmt: skip
    document = factories.on_h200(1, state=factories.state([narrow], [narrow]))
    (line,) = lines(verdicts_of_sessions(tmp_path, {"node1": (missed(), document)}))
    assert line.startswith("scontrol") and "HW-FAIL" in line and "has 8 of 16 lanes" in line


def test_a_line_states_the_check_that_failed_twice_and_not_one_that_failed_once(tmp_path):
    folders = []
    for number, checks in enumerate((["stream_local", "memcpy_near"], ["memcpy_near"])):
        session = SessionBuilder(tmp_path / str(number), start=factories.SESSION_START + number)
        for check in checks:
            slow = missed(f"{check}_worst"), sound_node()[1]
            session.nodes(of_many(slow, 3), check=check)
        folders.append(session.write())
    (line,) = lines(judge(*folders))
    assert line.startswith("scontrol") and "Metric memcpy_near_worst: " in line


@pytest.mark.parametrize(("port", "said"), [(8, False), (None, True)])
def test_a_narrow_link_is_a_caveat_where_its_port_is_unknown(tmp_path, port, said):
    narrow = factories.device_state(
        pcie={"width": 8, "width_max": 16, "width_max_port": port, "gt_per_s": 16.0,
              "gt_per_s_max": 16.0, "replays": 0}
    )  # fmt: skip
    document = factories.on_h200(1, state=factories.state([narrow], [narrow]))
    found = SessionBuilder(tmp_path).check(document=document, **kept_on_gpus()).verdict()
    assert found.status == "PASS"
    assert any("8 of 16 lanes" in one for one in found.caveats) == said


def test_a_link_at_half_its_width_is_firm_without_a_calibration(tmp_path, references):
    calibrated.file_of(references, PARTITION).unlink()

    def session(number, percent=50.0, **state):
        name = f"{PARTITION}:engine_alike"
        values = {name: [percent, 100.0, -0.05, None, "%", "fail"]}
        document = factories.on_h200(1, **state)
        results = (
            SessionBuilder(tmp_path / str(number), start=factories.SESSION_START + number)
            .missed(document=document, perfvalues=values)
            .write()
        )
        (path,) = results.rglob("result.json")
        factories.write(
            path.with_name("metrics.json"),
            {"form": "fabricheck-metrics-1", "started": document["started"],
             "metrics": {"engine_alike": {"series": [0], "reduce": "peers"}}},
        )  # fmt: skip
        return results

    once, twice = session(1), session(2)
    assert judge(once)["node1"].label == "provisional PERF-FAIL"
    firm = judge(once, twice)["node1"]
    assert firm.label == "PERF-FAIL" and rules(firm) == {"peers"}
    assert firm.drain.doubts == ["no-contrast"]
    near = judge(once, session(3, percent=85.0))["node1"]
    assert near.label == "provisional PERF-FAIL"
    used = factories.state([factories.device_state(processes=[factories.process()])])
    assert "peers" not in rules(judge(once, session(4, state=used))["node1"])


def test_what_one_check_finds_other_devices_for_no_limit_of_another_judges(tmp_path):
    """The document of the other check is lost; the limits are those of H200."""
    here = {"system": "h200", "partition": "x2", "environ": "cuda"}
    devices = [
        one | {"name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85017493504}
        for one in factories.on_h200(2)["devices"]
    ]
    found = (
        SessionBuilder(tmp_path, command="reframe -r -n a")
        .check("affinity", document=factories.on_h200(2, devices=devices), **here)
        .missed(document=None, **here)
        .verdict()
    )
    assert (found.status, rules(found)) == ("INCOMPLETE", {"setting"})


def test_wrong_data_twice_in_one_process_is_positive_unless_a_library_moved_it(tmp_path):
    wrong = factories.series(verification=factories.mismatched())
    twice = ended("wrong-data", 5, series=[wrong, wrong | {"operation": "scale"}])
    once = ended("wrong-data", 5, series=[wrong])
    case = failed("sanity", job_exitcode=5)
    found = verdicts_of_sessions(tmp_path, {"node1": (case, twice), "node2": (case, once)})
    assert (found["node1"].drain.evidence, found["node1"].drain.live) == ("positive", True)
    assert found["node2"].status == "DATA-FAIL" and not found["node2"].drain.live


H200 = {"system": "h200", "partition": "x2", "environ": "cuda", "tags": ["E1"]}
FEWER = failed("sanity", "fewer", "OtherDevicesError")
LOCAL_GPU = {"system": "local", "partition": "gpu"}


def on_bus(functions, number=1, **changes):
    """Build a document of some H200 whose PCI bus shows some functions."""
    state = factories.state([factories.device_state(index) for index in range(number)])
    state["before"]["host"]["pci_functions"] = functions
    return factories.on_h200(number, state=state) | changes


def of_h200(folder, document, case=FEWER, nodes=1):
    """Judge some nodes of the partition h200:x2 alike; returns the first."""
    every = {f"node{n}": (H200 | case, document) for n in range(1, nodes + 1)}
    return verdicts_of_sessions(folder, every)["node1"]


def own_rules(found):
    """Return the rules of what ran; the set of the partition has more checks."""
    return rules(found) - {"missing", "diagnosis"}


@pytest.mark.parametrize(
    ("second", "rule", "live"),
    [
        ({}, "lost", True),
        ({"driver": None, "accessible": None}, "lost", True),
        ({"accessible": False}, "setting", False),
        ({"mode": "MIG"}, "setting", False),
        ({"driver": "vfio-pci"}, "setting", False),
        ({"accessible": None}, "devices", False),  # a container that shows no device files
    ],
)
def test_a_device_that_pci_shows_is_lost_where_nothing_else_keeps_it(tmp_path, second, rule, live):
    functions = [factories.pci_function(0x41), factories.pci_function(0x42, **second)]
    found = of_h200(tmp_path, on_bus(functions))
    assert rule in rules(found) and bool(found.drain and found.drain.live) == live


@pytest.mark.parametrize("driver", ["nvidia", None])
def test_a_runtime_that_lists_no_device_is_refused_and_drains_nobody(tmp_path, driver):
    """After an update, or without a driver, every node is so."""
    both = [factories.pci_function(bus, driver=driver) for bus in (0x41, 0x42)]
    document = on_bus(both, 0, outcome={"exit_code": 3, "status": "unsupported", "message": "no"})
    document |= {"complete": False, "series": []}
    found = of_h200(tmp_path, document, failed("sanity", job_exitcode=3), nodes=4)
    assert (found.status, own_rules(found)) == ("INCOMPLETE", {"refused"})


@pytest.mark.parametrize("variables", [{"CUDA_VISIBLE_DEVICES": "8"}, {"GPU_DEVICE_ORDINAL": "0"}])
def test_a_variable_that_chooses_devices_is_a_setting(tmp_path, variables):
    functions = [factories.pci_function(0x41), factories.pci_function(0x42)]
    found = of_h200(tmp_path, on_bus(functions, environment=variables))
    assert own_rules(found) == {"setting"}


def test_a_list_that_names_fewer_devices_than_are_shown_hides_none():
    """OpenCL obeys GPU_DEVICE_ORDINAL and HIP does not: the fourth device is gone all the same."""
    functions = [factories.pci_function(0x41 + number) for number in range(4)]
    document = on_bus(functions, 3, environment={"GPU_DEVICE_ORDINAL": "0,1"})
    assert explained(document, 4, None).kind == "lost"
    document["environment"] = {"GPU_DEVICE_ORDINAL": "0,1,2"}
    assert explained(document, 4, None).kind == "setting"


@pytest.mark.parametrize(
    ("number", "device"),
    [(1, {"name": "NVIDIA A100-SXM4-40GB", "arch": "sm_80"}), (4, {})],
)
def test_other_devices_in_another_number_are_a_setting(tmp_path, number, device):
    document = factories.on_h200(number)
    document["devices"] = [one | device for one in document["devices"]]
    assert own_rules(of_h200(tmp_path, document)) == {"setting"}


def test_what_another_runtime_measured_is_not_believed(tmp_path):
    document = factories.document()
    document["program"]["runtime"] = "cuda"
    case = good_case(node=None, where=HOST)
    results = SessionBuilder(tmp_path).add(case, document).write()
    (found,) = judge(results).values()
    assert rules(found) == {"not-believed"}
    (reason,) = found.reasons
    assert "ran with runtime cuda; environment host states host" in reason.sentence


#: A single machine, with the name of a node model or the file of one.
OWN = "/models/mine.yaml"


@pytest.mark.parametrize(
    ("model", "hidden", "rule"),
    [
        # Nothing but the name says that there should be eight.
        ("h200", False, "setting"),
        # Whoever describes the machine has them.
        (OWN, False, "lost"),
        ("h200", True, "lost"),
    ],
)
def test_two_devices_of_a_model_of_eight(
    tmp_path, monkeypatch, single_machine, model, hidden, rule
):
    loaded = observed.load_node
    monkeypatch.setattr(observed, "load_node", lambda name: loaded(name.replace(OWN, "h200")))
    single_machine("h200")
    functions = [factories.pci_function(0x41 + index) for index in range(3 if hidden else 2)]
    document = on_bus(functions, 2, environment={"FABRICHECK_NODE": model})
    found = of_h200(tmp_path, document, FEWER | LOCAL_GPU)
    assert own_rules(found) == {rule}
    said = [reason.sentence for reason in found.reasons if reason.rule == rule]
    named = "as FABRICHECK_NODE=h200 has: name a node model with 2 devices" in said[0]
    assert named == (rule == "setting")


def test_the_devices_of_a_single_machine_are_those_of_its_model(tmp_path):
    """The session says which one it is, wherever it is judged."""
    document = factories.on_h200(8, environment={"FABRICHECK_NODE": "h200"})
    document["devices"] = [
        one | {"name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85017493504}
        for one in document["devices"]
    ]
    found = of_h200(tmp_path, document, FEWER | LOCAL_GPU)
    assert "setting" in rules(found) and "lost" not in rules(found)


def test_one_device_unlike_the_others_is_no_other_machine(tmp_path):
    document = factories.on_h200(2)
    document["devices"][1]["memory_bytes"] = 120 << 30
    assert of_h200(tmp_path, document, missed()).status == "PERF-FAIL"


def test_devices_that_do_not_tell_their_memory_are_no_other_machine(tmp_path):
    document = factories.on_h200(2)
    document["devices"] = [one | {"memory_bytes": None} for one in document["devices"]]
    assert of_h200(tmp_path, document, missed()).status == "PERF-FAIL"


@pytest.mark.parametrize("times", [2, 3])
def test_what_failed_after_its_last_pass_again_and_again_is_not_excused_by_it(tmp_path, times):
    session = SessionBuilder(tmp_path).passed()
    for _ in range(times):
        session.rerun().missed()
    assert session.verdict().status == "PERF-FAIL"


def test_what_all_nodes_lost_drains_none(tmp_path):
    """A virtual machine, or a driver that tells it so; memory errors of all nodes still do."""
    found = of_h200(tmp_path, on_bus([factories.pci_function(0x41)]), nodes=4)
    assert own_rules(found) == {"lost"} and found.drain.doubts == ["all-alike"]
    assert found.all_alike


def test_a_hang_beside_others_is_not_isolated(tmp_path):
    busy = factories.state(others=factories.host_use(15.8))
    case, document = hung_node()
    held = case, document | {"state": busy}
    found = verdicts_of_sessions(tmp_path, of_many(held), of_many(held))
    assert found["node1"].status == "INCOMPLETE"


def test_a_sum_and_its_share_are_one_wrong_copy(tmp_path):
    wrong = factories.series(verification=factories.mismatched())
    total = wrong | {"role": "sum", "device": None}
    document = ended("wrong-data", 5, series=[wrong | {"role": "share"}, total])
    found = SessionBuilder(tmp_path).failed("sanity", document=document, job_exitcode=5).verdict()
    assert "wrong-data-twice" not in rules(found)


def test_two_devices_that_missed_once_each_did_not_fail_in_the_same_way(tmp_path):
    def missed_by(device):
        place = factories.place(device=device)
        where = {"device": device, "device_set": [device], "source": place, "destination": place}
        series = factories.series([7.0], host_clock=None, **where)
        own = factories.on_h200(2, versions=versions(), series=[series])
        return missed(), own

    def sessions(*devices):
        return [of_many(missed_by(device), 4) for device in devices]

    def judged(folder, *devices):
        folders = []
        for number, nodes in enumerate(sessions(*devices)):
            cases = [(good_case(node=node) | case, own) for node, (case, own) in nodes.items()]
            start = factories.SESSION_START + number
            folders.append(SessionBuilder(folder / str(number), start=start).each(cases).write())
            for path in folders[-1].rglob("result.json"):
                content = json.loads(path.read_text())
                factories.write(
                    path.with_name("metrics.json"),
                    {"form": "fabricheck-metrics-1", "started": content["started"],
                     "metrics": {"copy_worst": {"series": [0], "reduce": "worst"}}},
                )  # fmt: skip
        return judge(*folders)["node1"].drain

    assert "failed-once" in judged(tmp_path / "two", 0, 1).doubts
    assert "failed-once" not in judged(tmp_path / "one", 1, 1).doubts


def test_parts_of_devices_are_a_setting_also_where_they_are_as_many_as_stated(tmp_path):
    states = [factories.device_state(index, compute_partition="CPX") for index in range(2)]
    document = factories.on_h200(2, state=factories.state(states, states))
    assert own_rules(of_h200(tmp_path, document, missed())) == {"setting"}


def test_an_earlier_setting_excuses_no_later_session(tmp_path):
    document = factories.on_h200(2, versions=versions())
    divided = factories.device_state(0, compute_partition="MIG")
    mig = factories.on_h200(1, state=factories.state([divided], [divided]))
    earlier = {"node1": (H200 | FEWER, mig)}
    later = {"node1": (H200 | missed(), document)}
    found = verdicts_of_sessions(tmp_path, earlier, later, later)["node1"]
    assert found.status == "PERF-FAIL" and {"reference", "setting"} <= rules(found)


def test_a_node_is_drained_for_the_reason_that_is_the_evidence(tmp_path):
    """Also where another check failed too."""
    document = factories.on_h200(2, series=[], complete=False)
    document["outcome"] = {"exit_code": 9, "status": "device-error", "message": "ECC"}
    found = (
        SessionBuilder(tmp_path)
        .failed("sanity", check="stream_local", document=document, job_exitcode=9)
        .failed("sanity", "It left nothing.", check="memcpy_near")
        .verdict()
    )
    assert found.drain.rule == "device-error" and len(found.reasons) > 1
    assert "ECC" in draining.reason(found)


def test_an_error_of_hardware_counts_beside_other_devices(tmp_path):
    document = factories.on_h200(2, series=[], complete=False)
    document["devices"] = [one | {"name": "NVIDIA H100"} for one in document["devices"]]
    document["outcome"] = {"exit_code": 9, "status": "device-error", "message": "ECC"}
    found = of_h200(tmp_path, document, failed("sanity", job_exitcode=9))
    assert found.status == "HW-FAIL" and found.drain.live


def test_the_failed_check_alone_run_again_is_a_second_time(tmp_path):
    """Also where the first session had a tool's document, which has a version of its own."""
    osu = factories.document()["program"] | {"name": "osu", "version": "7.4"}
    tool = factories.document(program=osu, options={"tool": "osu"}, series=[])
    first = [
        *[(good_case("osu", node=f"node{n}"), tool) for n in range(1, 4)],
        *[(good_case(node=f"node{n}") | case, own)
          for n, (case, own) in enumerate([slow_node(), sound_node(), sound_node()], 1)],
    ]  # fmt: skip
    again = [(good_case() | slow_node()[0], slow_node()[1])]
    sessions = [
        SessionBuilder(tmp_path / str(number), start=factories.SESSION_START + number)
        .each(cases)
        .write()
        for number, cases in enumerate((first, again))
    ]
    assert judge(*sessions)["node1"].drain.live


def test_a_job_that_slurm_ended_at_its_limit_twice_is_isolated(tmp_path):
    over = failed("sanity", "its job reached its time limit", "TimeOverError", job_exitcode=0)
    ends = over, crashed_node()[1]
    found = verdicts_of_sessions(tmp_path, of_many(ends), of_many(ends))
    assert "isolated" in rules(found["node1"]) and found["node1"].drain.live


@pytest.mark.parametrize(("rule", "status"), [*itertools.product(RULES, STATUSES)])
def test_no_rule_and_status_prints_a_live_line_otherwise(references, rule, status):
    """Every rule with every status: live only by positive evidence, or by a whole contrast."""
    metric = "copy_worst"

    def node(name, failing, times=2):
        reason = model.Reason(
            status=status, rule=rule, sentence="why", check=CHECK[2], metric=metric
        )
        way = (rule, metric)
        runs = [Run(CHECK, SOFTWARE, not failing, False, {way: times} if failing else {},
                    frozenset({way}) if rule == "isolated" else frozenset())]  # fmt: skip
        return Judged(bare(name, status if failing else "PASS", [reason] if failing else []), runs)

    def is_live(*nodes):
        rows = evidence.session_verdict("x", evidence.decided(nodes, {})).nodes
        return any(line.startswith("scontrol") for line in scheduler.drain_lines(rows))

    positive = RULES[rule].evidence == "positive" and status in FAILED
    # Peers are looked up by the reference that they missed; the diagnosis by its own misses.
    contrast = RULES[rule].evidence == "contrast" and status in FAILED and rule != "peers"
    assert is_live(node("node1", True), node("node2", False)) == (positive or contrast)
    assert is_live(node("node1", True, times=1), node("node2", False)) == positive
    assert is_live(node("node1", True)) == positive
    assert is_live(node("node1", True), node("node2", True)) == positive


def bare(name, status, reasons):
    """Build the verdict on a measured node of a scheduler."""
    return model.NodeVerdict(
        node=name, scheduled=True, status=status, clock="measured", simulated=None,
        partitions=[PARTITION], set="smoke", start=None, duration_s=None, reasons=reasons,
        caveats=[], checks=model.Checks(passed=0, failed=1, skipped=[], missing=[]), devices=[],
        versions=model.Versions(fabricheck=[], commits=[], runtime=[], driver=[], mpi=[], rccl=[],
                                reframe=[], spack_locks={}),
        sessions=[], faults_injected=[],
    )  # fmt: skip
