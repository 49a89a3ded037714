"""The command `fabricheck limits calibrate` as a user meets it."""

import json
from types import SimpleNamespace

import pytest
import yaml
from calibrate_command import entries, run, words

import factories
from fabricheck.cli import calibrate
from fabricheck.core.errors import UsageError
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import listing
from fabricheck.site import this_machine
from full_disk import files_of_at_most
from session_builder import HOST, SessionBuilder, measured, several

STEADY = [100.0, 100.5, 99.5, 100.0, 100.2, 99.9]
STREAM = """\
stream_local:
  local:host:
    copy_worst: [98, -0.05, null, GB/s]
"""


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(STREAM)
    return references


def test_without_write_the_changes_are_shown_and_nothing_is_written(command, folder, wording):
    result = run(command, folder, several(folder.parent, STEADY))
    said = words(result.stdout)
    assert "campaign 1, devices A (GPU-a, GPU-b)" in said and "campaign 2" in said
    assert ("stream_local copy_worst [98, -0.05, null, GB/s] [100, -0.02, null, GB/s] "
            "+2.0% tighter") in said  # fmt: skip
    wording(result.stderr)
    assert (folder / "stream.yaml").read_text() == STREAM
    assert list(folder.iterdir()) == [folder / "stream.yaml"]


def test_write(command, folder):
    result = run(command, folder, several(folder.parent, STEADY), "--write")
    assert f"wrote {folder / 'calibrations' / 'local-host.yaml'}" in result.stderr
    assert entries(folder)["copy_worst"] == [100.0, -0.02, None, "GB/s"]
    # The noise of what was written is read from its record.
    assert "\nstream_local GB/s       1 " in run(command, folder, [], name="noise").stdout


@pytest.mark.parametrize("name", ["", "AMD Radeon Graphics", "AMD Instinct MI300X VF"])
def test_a_record_is_of_products_whatever_the_runtime_calls_them(
    command, folder, monkeypatch, name
):
    ids = {"unique_id": "GPU-a", "name": name, "pci_id": "1002:74b5", "arch": "gfx942"}
    devices = [factories.device(0, **ids)]
    run(command, folder, several(folder.parent, STEADY, document={"devices": devices}), "--write")
    content = yaml.safe_load((folder / "calibrations" / "local-host.yaml").read_text())
    assert content["device_names"] == ["AMD Instinct MI300X"]
    # The node model of other devices is refused, and that of these is not.
    found = SimpleNamespace(device_names=content["device_names"])
    monkeypatch.setenv(this_machine.NODE, "mi300x")
    calibrate._refuse_other_machines(found, this_machine.NAME)
    monkeypatch.setenv(this_machine.NODE, "h200")
    with pytest.raises(UsageError, match="calibrate each kind of machine by itself"):
        calibrate._refuse_other_machines(found, this_machine.NAME)


def test_looser_references_must_be_accepted(command, folder, wording):
    slow = several(folder.parent, [value - 10 for value in STEADY])
    assert "looser" in run(command, folder, slow).stdout
    refused = run(command, folder, slow, "--write", code=2)
    wording(refused.stderr)
    assert entries(folder)["copy_worst"][0] == 98
    run(command, folder, slow, "--write", "--accept-looser")
    assert entries(folder)["copy_worst"][0] == 90


@pytest.mark.parametrize("number", [3, 1])
def test_too_few_sessions(command, folder, number, wording):
    sessions = several(folder.parent, STEADY[:number])
    refused = run(command, folder, sessions, "--write", code=4)
    wording(refused.stderr)
    run(command, folder, sessions, "--write", "--report-only", code=2)
    kept = run(command, folder, sessions, "--write", "--report-only", "--accept-looser")
    wording(kept.stderr)
    assert entries(folder)["copy_worst"] == [0, None, None, "GB/s"]


def test_one_campaign_is_not_enough(command, folder, wording):
    sessions = several(folder.parent, STEADY)
    wording(run(command, folder, sessions, "--pause", "100", code=4).stderr)


def test_what_was_not_used_is_said(command, folder, wording):
    sessions = several(folder.parent, STEADY)
    sessions.append(measured(folder.parent, 7, {"copy_worst": 50.0}, 70, result="fail",
                             fail_phase="performance", fail_reason="too slow"))  # fmt: skip
    wording(run(command, folder, sessions).stderr)


def test_two_modes_and_an_impossible_value_are_named(command, folder, wording):
    modes = several(folder.parent / "a", [100.0, 90, 100, 90, 100, 90])
    done = run(command, folder, modes, "--json")
    wording(done.stderr)
    (change,) = done.json["changes"]
    assert (change["metric"], change["entry"]) == ("copy_worst", [0, None, None, "GB/s"])
    zero = several(folder.parent / "b", [100.0, 100, 0.0, 100, 100, 100])
    refused = run(command, folder, zero, "--report-only", code=4).stderr
    wording(refused)
    assert "stream_local copy_worst: session run-2 " in refused


def test_an_infinite_value_of_a_report(command, folder, wording):
    sessions = several(folder.parent, STEADY)
    report = sessions[0] / "reports" / "run-0.json"
    text = report.read_text()
    old = f'"{HOST}:copy_worst": [\n'
    assert old in text
    before, after = text.split(old)
    report.write_text(before + old + after.replace("100.0", "1e999", 1))
    wording(run(command, folder, sessions, code=4).stderr)


def test_other_devices_are_shown_side_by_side(command, folder):
    sessions = [
        measured(folder.parent, number, {"copy_worst": 100.0 - 10 * (number > 2)}, 2 * number,
                 ("GPU-c",) if number > 2 else ("GPU-a",))
        for number in range(6)
    ]  # fmt: skip
    said = words(run(command, folder, sessions).stdout)
    assert "Medians by node (devices):" in said
    assert "stream_local copy_worst GB/s 100 90" in said


@pytest.mark.slow
def test_like(command, folder, monkeypatch):
    # ReFrame is asked once: it takes a second and a half.
    asked = listing.ask(HOST, checks_folders())
    monkeypatch.setattr(listing, "ask", lambda *_: asked)
    text = STREAM + "  local:large:\n    copy_worst: [0, null, null, GB/s]\n"
    (folder / "stream.yaml").write_text(text)
    run(command, folder, several(folder.parent, STEADY), "--write")
    both = (HOST, "local:large")
    assert "required" in run(command, folder, both, system="", name="transfer").stdout
    found = json.loads(run(command, folder, both, "--json", system="", name="transfer").stdout)
    assert [one["effect"] for one in found["changes"]] == ["required"]
    assert found["record"]["measured_on"] == HOST
    run(command, folder, both, "--write", system="", name="transfer")
    assert entries(folder, partition="local:large") == entries(folder)


def test_noise_is_a_table(command, folder):
    done = run(command, folder, several(folder.parent, STEADY), name="noise")
    assert "\nstream_local GB/s       1 " in done.stdout


def test_a_full_disk_changes_nothing(command, folder, wording):
    sessions = several(folder.parent, STEADY)
    run(command, folder, sessions, "--write")
    record = folder / "calibrations" / "local-host.yaml"
    text = record.read_text()
    with files_of_at_most(len(text) // 2):
        refused = run(command, folder, sessions, "--write", code=3)
    wording(refused.stderr)
    assert record.read_text() == text
    assert sorted(path.name for path in folder.rglob("*.*")) == ["local-host.yaml", "stream.yaml"]


def test_a_record_of_another_partition(command, folder, wording):
    sessions = several(folder.parent, STEADY)
    run(command, folder, sessions, "--write")
    record = folder / "calibrations" / "local-host.yaml"
    text = record.read_text()
    (folder / "calibrations" / "a-b.yaml").write_text(text)
    wording(run(command, folder, ["a:b", "a:c"], code=4, system="", name="transfer").stderr)
    wording(run(command, folder, [], code=4, system="a:b", name="noise").stderr)
    # Another partition whose record has the same name.
    other = text.replace(f"partition: {HOST}", "partition: a-b:c")
    (folder / "calibrations" / "a-b-c.yaml").write_text(other)
    later = [
        measured(
            folder.parent / "later",
            0,
            {"copy_worst": 1.0},
            0,
            system="a",
            partition="b-c",
            perfvalues={"a:b-c:copy_worst": [1.0, 0, None, None, "GB/s", "pass"]},
        )
    ]
    refused = run(command, folder, later, "--write", "--report-only", code=4, system="a:b-c")
    wording(refused.stderr)
    assert (folder / "calibrations" / "a-b-c.yaml").read_text() == other


@pytest.mark.parametrize(
    ("system", "options"), [("", ()), ("local", ()), (HOST, ()), (HOST, ("--page", "x.md"))]
)
def test_bad_usage(command, folder, system, options, wording):
    wording(run(command, folder, [], *options, code=2, system=system).stderr)


@pytest.mark.parametrize(
    "name", ["../a:b", "a:../b", "a/b:c", ":", "a:", ":b", "a:b:c", "a:..", "a: "]
)
def test_a_name_that_is_no_partition(command, folder, name):
    for line, arguments, what in (
        ("calibrate", ["--system", name], "--system"),
        ("noise", ["--system", name], "--system"),
        ("transfer", [name, "a:c"], "MEASURED"),
        ("transfer", ["a:b", name], "OTHER"),
    ):
        refused = run(command, folder, arguments, code=2, system="", name=line)
        assert f"{what} {name.strip()} must name a partition" in refused.stderr


def test_nothing_to_calibrate(command, folder, wording):
    none = folder / "none"
    wording(run(command, none, several(folder.parent, STEADY), code=3).stderr)
    empty = folder.parent / "empty"
    SessionBuilder(empty).write()
    wording(run(command, folder, [empty], code=3).stderr)
