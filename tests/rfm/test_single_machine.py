"""The GPUs of a single machine are what its node model says."""

from __future__ import annotations

import json
import math
import re
import socket
from collections import Counter

import pytest
import yaml

import factories
import inventories
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.judge.verdict import judging
from fabricheck.node import load, node_directory
from fabricheck.references import calibrated, stated
from fabricheck.results import reading
from fabricheck.rfm import acceptance
from fabricheck.rfm.metric_limits import floor
from fabricheck.rfm.metrics import Metric
from fabricheck.site import clusters, this_machine
from session_builder import SessionBuilder
from site_dry_runs import H200_TOOLS


def own_model(folder, name="mine"):
    """Write the node model of a machine with eight MI300X; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (node_directory() / "mi300x.yaml").read_text()
    file = folder / f"{name}.yaml"
    file.write_text(text.replace("name: mi300x", f"name: {name}", 1))
    return file


@pytest.mark.parametrize(
    ("node", "ranks", "migrates"),
    [
        pytest.param("mi250", 8, True, marks=pytest.mark.slow),
        # Its devices have no memory of their own that a page could go to.
        pytest.param("mi300a", 4, False, marks=pytest.mark.full),
        pytest.param("mi210", 8, True, marks=pytest.mark.full),
        pytest.param("mi250-two-sockets", 8, True, marks=pytest.mark.full),
        pytest.param("mi250x", 8, True, marks=pytest.mark.full),
    ],
)
def test_a_machine_is_what_its_node_model_says(site_dry_run, node, ranks, migrates):
    ended = site_dry_run("local:gpu", FABRICHECK_NODE=node)
    job = ended.stage("local:gpu", "pingpong_right") / "rfm_job.sh"
    assert f"\nmpirun -np {ranks} --map-by pe-list=" in job.read_text()
    told = {one.check for one in ended.told}
    assert ("managed_migration" in told) == migrates and "managed_zero_copy" in told


def partitions_of(suite, system="local"):
    """Return the partitions of a session of the site local, as ReFrame has them."""
    ended = suite(f"--system={system}", "--show-config=systems/0/partitions")
    assert ended.status == 0, ended
    return {one["name"]: one for one in json.loads(ended.text[ended.text.index("[") :])}


def test_without_a_node_model_a_session_says_both_ways_to_one(suite, wording):
    ended = suite("--system=local:gpu", "-l")
    assert ended.status == InvalidInputError.exit_code
    wording(ended.text.replace(f"/{socket.gethostname()}.yaml", "/HOST.yaml"))
    assert "gpu" not in partitions_of(suite)


def test_a_node_model_outside_of_the_repository_is_taken(suite):
    file = own_model(suite.folder)
    suite.variables["FABRICHECK_NODE"] = str(file)
    gpu = partitions_of(suite)["gpu"]
    assert (gpu["environs"], gpu["extras"]["node"]) == (["rocm"], str(file))
    assert gpu["extras"]["references"] == "amd-mi300x"


def test_a_draft_is_taken_where_the_gpus_are_asked_for(suite):
    """It is no reason for a session that names nothing to measure GPUs."""
    file = own_model(suite.results / "nodes", socket.gethostname())
    assert partitions_of(suite, "local:gpu")["gpu"]["extras"]["node"] == str(file)
    assert "gpu" not in partitions_of(suite)
    # The variable names the model of another machine.
    suite.variables["FABRICHECK_NODE"] = "h200"
    assert partitions_of(suite, "local:gpu")["gpu"]["extras"]["node"] == "h200"
    assert "gpu" in partitions_of(suite)


def test_a_draft_that_is_not_complete_says_what_is_missing(suite, wording):
    file = own_model(suite.results / "nodes", socket.gethostname())
    file.write_text(re.sub("^title: .*", "", file.read_text(), flags=re.MULTILINE))
    ended = suite("--system=local:gpu", "-l")
    assert ended.status == InvalidInputError.exit_code
    wording(ended.text.replace(f"/{file.name}", "/HOST.yaml"))
    assert "gpu" not in partitions_of(suite)


def test_the_draft_of_this_machine_is_written_where_it_is_looked_for(command, results_folder):
    told = results_folder / "told.json"
    told.write_text(json.dumps(inventories.kept("mi210-x2")))
    command("node", "draft", "--from", told)
    assert yaml.safe_load(this_machine.draft().read_text())["name"] == socket.gethostname()
    assert this_machine.draft().is_relative_to(results_folder)


@pytest.mark.parametrize(
    "line", [["site", "check", "local:gpu"], ["limits", "show", "--system=local:gpu"]]
)
def test_commands_say_that_there_is_no_node_model(command, results_folder, line, monkeypatch):
    monkeypatch.delenv("FABRICHECK_NODE", raising=False)
    ended = command(*line, code=InvalidInputError.exit_code)
    assert "local:gpu has no node model" in ended.words


def test_the_tools_are_those_of_the_spack_environment_of_the_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters.checkout, "ORIGIN", tmp_path)
    for name in ("FABRICHECK_MPI", "FABRICHECK_ROCM_OSU", "FABRICHECK_RCCL_TESTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("FABRICHECK_ROCM_PROGRAMS", raising=False)
    built = clusters.programs_here("rocm", "local-rocm")
    assert built["extras"]["programs"] == str(tmp_path / "build/rocm/bin")
    assert {"osu", "rccl-tests"}.isdisjoint(built["features"])
    view = clusters.view("local-rocm")
    monkeypatch.setenv("FABRICHECK_ROCM_PROGRAMS", str(view / "bin"))
    found = clusters.programs_here("rocm", "local-rocm")
    assert found["extras"]["spack_environment"] == "local-rocm"
    assert found["extras"]["osu_folder"] == str(view / "libexec" / "osu-micro-benchmarks")
    assert found["extras"]["rccl_folder"] == str(view / "bin")
    assert {"osu", "rccl-tests"} <= set(found["features"])


@pytest.mark.parametrize("known", [True, False])
def test_the_draft_of_two_h100_bounds_memory_by_a_data_sheet_or_not_at_all(
    command, tmp_path, known
):
    """A name that config/devices.yaml lacks is a device with an unknown peak, not an error."""
    file = tmp_path / "h100.yaml"
    text = (ROOT / "tests" / "outputs" / "inventory" / "h100-x2.json").read_text()
    told = tmp_path / "told.json"
    told.write_text(text if known else text.replace("NVIDIA H100 80GB HBM3", "NVIDIA H999"))
    words = ("node", "draft", "h100", "--from", str(told), "--output", str(tmp_path))
    command(*words)
    model = load(str(file))
    assert (model.architecture, len(model.devices)) == ("sm_90", 2)
    assert [one.name for one in model.link_classes] == ["switch18"]
    copy = factories.series(device=0, device_set=[0])
    copy |= {"source": factories.place("device", 0), "destination": factories.place("device", 0)}
    bound = acceptance.node_bound(model, copy)
    assert (bound and bound.value) == (3350 if known else None)
    shown = command("node", "show", file).stdout
    assert ("GiB its peak unknown" in " ".join(shown.split())) == (not known)


def test_a_machine_with_one_gpu_has_no_checks_of_several(command, tmp_path):
    told = json.loads((ROOT / "tests" / "outputs" / "inventory" / "h100-x2.json").read_text())
    file = tmp_path / "told.json"
    file.write_text(json.dumps(told | {"devices": told["devices"][:1], "links": []}))
    words = ("node", "draft", "one", "--from", str(file), "--output", str(tmp_path))
    command(*words)
    features = clusters.node(str(tmp_path / "one.yaml"))["features"]
    assert features == ["devices", "peers", "managed_memory"]


def h100(command, folder, *ids, links=18):
    """Draft a machine with two H100 whose devices have these unique ids; return its node model.

    :param links: NVLinks of a device.
    """
    told = inventories.kept("h100-x2")
    for device, unique_id in zip(told["devices"], ids, strict=False):
        device["unique_id"] = unique_id
    for link in told["links"]:
        link["links"] = links
    file = folder / "told.json"
    file.write_text(json.dumps(told))
    words = ("node", "draft", "h100", "--from", str(file), "--output", str(folder))
    command(*words)
    return str(folder / "h100.yaml")


@pytest.mark.slow
def test_a_machine_without_references_is_judged_by_the_floors_of_any_node(command, suite, tmp_path):
    """Link classes that no file has are no error; what every healthy node reaches is required."""
    # No record has devices whose links are so few, though these tell who they are.
    node = h100(command, tmp_path, "GPU-1", "GPU-2", links=4)
    suite.variables |= {"FABRICHECK_NODE": node, "FABRICHECK_MPI": "OFF"}
    checks = ROOT / "reframe_checks"
    ended = suite("--system=local:gpu", "--mode=node", "--dry-run", checks=checks)
    assert ended.status == 0, ended
    peak = 4 * 25.0
    for said in (
        f"read_switch4_worst: None GB/s (r:{peak}, l:-0.45, u:None)",
        "copy_worst: None GB/s (r:3350.0, l:-0.2, u:None)",
        "d2h_pinned_near_worst: None GB/s (r:63.015, l:-0.35, u:None)",
    ):
        assert said in ended
    assert "engine_switch4_worst: None GB/s\n" in ended.text
    # Healthy machines whose host memory is in use elsewhere have half of both alone.
    assert "both_pinned_near_of_single: None %\n" in ended.text


def test_equal_machines_share_a_calibration_and_others_have_none(command, monkeypatch, tmp_path):
    """The record of two H100 is for machines with two H100 on a switch, whatever their names."""
    told = ROOT / "tests" / "outputs" / "inventory" / "h100-x2.json"
    words = ("node", "draft", "h100", "--from", str(told), "--output", str(tmp_path))
    command(*words)
    monkeypatch.setenv("FABRICHECK_NODE", str(tmp_path / "h100.yaml"))
    folder = ROOT / "reference_values"
    file = calibrated.file_of(folder, "local:gpu")
    assert file.name == "local-gpu-2x-nvidia-h100-80gb-hbm3-switch18.yaml"
    assert calibrated.has_own(folder, "local:gpu")
    entry = stated.References(folder).entries("stream_local", "local:gpu", "nvidia")["copy_worst"]
    assert entry[0] == pytest.approx(3030, rel=0.001)
    monkeypatch.setenv("FABRICHECK_NODE", "h200")
    assert not calibrated.has_own(folder, "local:gpu")
    assert stated.References(folder).record("local:gpu") is None


#: The devices of one of the machines of the record of two H100.
RECORDED = ("GPU-41e9a226-97bc-a627-d691-91933f817c8a", "GPU-87ef21f6-3d29-36d8-f76d-b5d68ec4d1a2")


@pytest.mark.parametrize(
    ("ids", "h2d", "two_ways"),
    [
        (RECORDED, "(r:55.015, l:-0.02, u:None)", True),
        (("GPU-1", "GPU-2"), "(r:55.015, l:-0.15, u:None)", False),
        ((), "(r:55.015, l:-0.15, u:None)", False),
    ],
)
def test_what_a_shared_host_decides_is_judged_by_a_record_of_the_machine_itself(
    command, suite, tmp_path, ids, h2d, two_ways
):
    """The record of two H100 is of two machines; others differ, and share their host."""
    suite.variables |= {"FABRICHECK_NODE": h100(command, tmp_path, *ids), "FABRICHECK_MPI": "OFF"}
    checks = ROOT / "reframe_checks" / "memcpy"
    ended = suite("--system=local:gpu", "-n", "^memcpy_near", "--dry-run", checks=checks)
    assert ended.status == 0, ended
    assert f"h2d_pinned_near_worst: None GB/s {h2d}" in ended
    assert "h2d_pinned_near_alike: None % (r:100, l:-0.15, u:None)" in ended
    assert ("both_pinned_near_median: None GB/s (r:" in ended.text) == two_ways
    for metric in ("both_pinned_near_of_single", "both_pinned_near_alike", "pageable_alike"):
        assert f"{metric}: None %\n" in ended.text


def test_a_peak_that_is_unknown_limits_nothing_and_is_a_caveat(command, tmp_path, results_folder):
    told = inventories.kept("mi210-x2")
    for device in told["devices"]:
        device |= {"name": "AMD Instinct MI999", "pci_id": "1002:ffff", "pcie": None}
    file = tmp_path / "told.json"
    file.write_text(json.dumps(told))
    words = ("node", "draft", "mine", "--from", str(file), "--output", str(tmp_path))
    command(*words)
    node = load(str(tmp_path / "mine.yaml"))
    ends = {"source.memory": "host-pinned", "destination.memory": "device"}
    where = {"engine": "copy-engine", "role": "single", "experiment": "E2", **ends}
    assert floor(Metric("h2d_pinned_near_worst", where), load("mi210")) is not None
    unlimited = floor(Metric("h2d_pinned_near_worst", where), node)
    assert unlimited.entry == (0, None, None, "GB/s")
    assert "the unknown host_link.peak_gbs of the node model mine" in unlimited.why
    environment = {this_machine.NODE: str(tmp_path / "mine.yaml")}
    SessionBuilder(results_folder).add(
        factories.case(system="local", partition="gpu"), factories.document(environment=environment)
    ).write()
    (verdict,) = judging.judge(reading.read([str(results_folder)]))
    unknown = "devices.memory_peak_gbs, host_link.peak_gbs"
    said = f"Not judged against a peak of mine that is unknown: {unknown}."
    assert said in verdict.caveats
    covered = command("results", "coverage", results_folder)
    assert said in " ".join(covered.stdout.split()), covered.output


#: A limit of a dry run: the metric, and its reference where it has one.
LIMIT = re.compile(
    r"(?P<check>\w+) /\w+ @local:gpu|"
    r"P: (?P<metric>\w+): None \S+ \(r:(?P<value>\S+), l:(?P<lower>\S+), u:(?P<upper>\S+)\)"
)


def limits_of(text):
    """Return the lowest and the highest value that each limited metric of a check may have."""
    found, check = {}, ""
    for match in LIMIT.finditer(text):
        if match["check"]:
            check = match["check"]
            continue
        value = float(match["value"])
        lower, upper = (None if match[side] == "None" else float(match[side])
                        for side in ("lower", "upper"))  # fmt: skip
        least = -math.inf if lower is None else value * (1 + lower)
        most = math.inf if upper is None else value * (1 + upper)
        found[check, match["metric"]] = (least, most)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node", "machines", "compared"),
    [("two-h200", {"A": 4, "B": 3, "C": 4, "D": 5, "E": 4, "F": 5}, 1500),
     ("one-h100", {"G": 6}, 60)],
)  # fmt: skip
def test_no_recorded_session_of_make_run_misses_todays_limits(suite, node, machines, compared):
    """All machines were healthy; their hosts were shared, that of E with heavy use."""
    folder = ROOT / "tests" / "outputs" / "h200" / "make-run"
    # A draft of today has the peak of a link from a document, on which limits of collectives rest.
    draft = yaml.safe_load((folder / node / "vm.yaml").read_text())
    if "switch" in draft:
        draft["switch"]["peak_gbs"] = {"value": 25, "kind": "published", "source": "data-sheet"}
    model = suite.folder / "vm.yaml"
    model.write_text(yaml.safe_dump(draft))
    suite.variables |= H200_TOOLS | {"FABRICHECK_MPI": "ON", "FABRICHECK_NODE": str(model)}
    checks = ROOT / "reframe_checks"
    ended = suite("--system=local:gpu", "--mode=node", "--dry-run", checks=checks)
    assert ended.status == 0, ended
    limits = limits_of(ended.text)
    sessions = json.loads((folder / "sessions.json").read_text())
    here = [session for session in sessions if session["machine"] in machines]
    assert Counter(session["machine"] for session in here) == machines
    values = [
        (session["machine"], check, metric, value)
        for session in here
        for check, attempts in session["values"].items()
        for attempt in attempts
        for metric, value in attempt.items()
        if (check, metric) in limits
    ]
    assert len(values) > compared
    missed = []
    for machine, check, metric, value in values:
        least, most = limits[check, metric]
        if not least <= value <= most:
            missed.append((machine, check, metric, value, least, most))
    assert missed == []
