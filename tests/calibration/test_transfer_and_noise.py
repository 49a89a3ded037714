"""References for a partition that was not measured, and the table of noise."""

from pathlib import Path

import pytest
from calibrate_command import entries

from fabricheck.core import whole_files
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration import changes, record
from fabricheck.judge.calibration.gathering import gather
from fabricheck.references import listing
from fabricheck.references.calibrated import read
from fabricheck.references.stated import References
from session_builder import HOST, measured

ROOT = Path(__file__).resolve().parents[2]
OTHER = "local:sim-mi250x"

ASK = listing.ask

STREAM = """\
stream_local:
  local:host:
    copy_worst: [0, null, null, GB/s]
  local:sim-mi250x:
    copy_worst: [0, null, null, GB/s]
    add_worst: [0, null, null, GB/s]
    triad_worst: [0, null, null, GB/s]

stream_concurrent:
  local:sim-mi250x:
    copy_one: [0, null, null, GB/s]
    copy_all_sum: [0, null, null, GB/s]
    faults: [0, 0, 0, count]

p2p_engine:
  local:sim-mi250x:
    engine_switch_worst: [0, null, null, GB/s]
"""


@pytest.fixture(scope="module")
def of_this_machine():
    return listing.ask(HOST, [ROOT / "reframe_checks"])


@pytest.fixture(autouse=True)
def _asked_once(monkeypatch, of_this_machine):
    monkeypatch.setattr(listing, "ask", lambda *_: of_this_machine)


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(STREAM)
    return references


@pytest.fixture
def calibrated(folder, tmp_path):
    """Calibrate local:host; its triad is too noisy, and add was never measured."""
    sessions = []
    for number in range(6):
        local = {"copy_worst": 100.0 + number / 10, "triad_worst": 100.0 - 30 * (number == 4)}
        at = 3 * number + (60 if number > 2 else 0)
        sessions.append(measured(tmp_path, number, local, at))
        at_once = {"copy_one": 50.0, "copy_all_sum": 90.0}
        sessions.append(
            measured(tmp_path, 10 + number, at_once, at + 1.5, check="stream_concurrent")
        )
    runs = gather(sessions, HOST).runs
    changes.write(changes.propose(record.build(runs, HOST), folder), accept_looser=False)
    return folder


@pytest.mark.slow
def test_only_what_does_not_depend_on_the_number_of_devices_is_taken(calibrated, wording):
    found = changes.transfer(calibrated, HOST, OTHER)
    assert {(one.check, one.metric): one.entry[0] for one in found.changes} == {
        ("stream_local", "copy_worst"): 100.25,
        ("stream_local", "add_worst"): 0,
        ("stream_local", "triad_worst"): 0,
        ("stream_concurrent", "copy_one"): 50.0,
        ("stream_concurrent", "copy_all_sum"): 0,
    }
    wording(f"{one.check} {one.metric}: {one.why}" for one in found.changes)
    wording(found.notes)
    before = {path: path.read_text() for path in calibrated.rglob("*.yaml")}
    path = changes.write(found, accept_looser=False)
    assert path == calibrated / "transfers" / f"{OTHER.replace(':', '-')}.yaml"
    assert "100.25" not in path.read_text()  # the value stands in the record alone
    assert {path: path.read_text() for path in before} == before
    assert entries(calibrated, partition=OTHER)["copy_worst"] == [100.25, -0.02, None, "GB/s"]
    assert entries(calibrated, "stream_concurrent", OTHER) == {
        "copy_one": [50.0, -0.02, None, "GB/s"],
        "copy_all_sum": [0, None, None, "GB/s"],
        "faults": [0, 0, 0, "count"],
    }
    origin = References(calibrated).origin("stream_local", OTHER, "copy_worst")
    assert (origin.record, origin.measured_on) == ("calibrations/local-host.yaml", HOST)
    # Who calibrates the first one again is told that the other rests on it.
    again = read(calibrated / "calibrations" / "local-host.yaml")
    assert any(OTHER in note for note in changes.propose(again, calibrated).notes)


def test_a_record_of_its_own_comes_before_what_is_taken(calibrated):
    changes.write(changes.transfer(calibrated, HOST, OTHER), accept_looser=False)
    theirs = read(calibrated / "calibrations" / "local-host.yaml")
    copy = theirs.checks["stream_local"]["copy_worst"]
    own = copy.model_copy(update={"entry": [90.0, -0.02, None, "GB/s"]})
    made = {"partition": OTHER, "checks": {"stream_local": {"copy_worst": own}}}
    found = References(calibrated).with_record(theirs.model_copy(update=made))
    assert found.entries("stream_local", OTHER)["copy_worst"] == [90.0, -0.02, None, "GB/s"]
    # Of a check that it has not, what is taken stays.
    assert found.entries("stream_concurrent", OTHER)["copy_one"] == [50.0, -0.02, None, "GB/s"]


def test_what_is_taken_needs_no_entry_in_a_file_any_longer(calibrated):
    changes.write(changes.transfer(calibrated, HOST, OTHER), accept_looser=False)
    text = (calibrated / "stream.yaml").read_text()
    own = f"  {OTHER}:\n    copy_worst: [0, null, null, GB/s]\n"
    assert own in text
    (calibrated / "stream.yaml").write_text(text.replace(own, f"  {OTHER}:\n"))
    changes.write(changes.transfer(calibrated, HOST, OTHER), accept_looser=False)
    assert entries(calibrated, partition=OTHER)["copy_worst"][0] == 100.25


def test_what_the_record_has_no_longer_can_not_be_taken(calibrated):
    changes.write(changes.transfer(calibrated, HOST, OTHER), accept_looser=False)
    path = calibrated / "calibrations" / "local-host.yaml"
    path.write_text(path.read_text().replace("    copy_worst:", "    other:"))
    with pytest.raises(InvalidInputError, match="takes copy_worst of stream_local from the record"):
        entries(calibrated, partition=OTHER)


def test_a_partition_with_values_of_its_own_is_left_alone(calibrated):
    with pytest.raises(InvalidInputError, match="local:host has its own calibration"):
        text = (calibrated / "calibrations" / "local-host.yaml").read_text()
        path = calibrated / "calibrations" / "local-sim-mi250x.yaml"
        path.write_text(text.replace("partition: local:host", "partition: local:sim-mi250x"))
        changes.transfer(calibrated, OTHER, HOST)


def test_what_can_not_be_transferred(calibrated, folder):
    with pytest.raises(UsageError, match="cannot be used for itself"):
        changes.transfer(folder, HOST, HOST)
    with pytest.raises(NotFoundError, match="no calibration record"):
        changes.transfer(folder, "local:none", OTHER)
    with pytest.raises(NotFoundError, match="list no metric of local:none"):
        changes.transfer(folder, HOST, "local:none")


@pytest.fixture(scope="module")
def of_lumi():
    told = ASK("lumi:gpu", [ROOT / "reframe_checks"], ROOT / "reference_values")
    return {
        one.check: [name for name, about in one.metrics.items() if about["independent"]]
        for one in told
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "metric", "expected"),
    [
        ("stream_local", "triad_median", True),
        ("stream_scan", "triad_best_block", True),
        ("stream_concurrent", "copy_one", True),
        ("stream_concurrent", "copy_two_spread_sum", False),
        ("stream_concurrent", "copy_all_share", False),
        ("memcpy_numa", "h2d_pinned_far_worst", True),
        ("memcpy_numa_pageable", "d2h_pageable_far_median", True),
        ("managed_zero_copy", "read_worst", True),
        ("managed_scan_migration", "write", True),
        ("p2p_scan", "engine_links2", True),
        ("p2p_engine", "engine_both_links4_median", True),
        ("mpi_pairs", "bandwidth_links4_worst", True),
        ("mpi_pairs", "latency_links1_median", True),
        ("mpi_pairs", "bandwidth_together_links4_worst", False),
        ("mpi_collectives", "allreduce_2", False),
        ("osu_device_0", "bandwidth_links4_16MiB_worst", True),
        ("osu_collectives", "allreduce_2_ranks", False),
        ("rccl_collectives", "allreduce_8_devices_busbw", False),
        ("pingpong_right", "h2d_pinned_worst", False),
        ("best_devices", "best_2_of_measured", False),
    ],
)
def test_metrics_that_depend_on_the_number_of_devices(of_lumi, check, metric, expected):
    assert (metric in of_lumi[check]) is expected


def test_the_noise_of_a_check_by_hand(tmp_path):
    values = [100.0, 101.0, 99.0, 110.0, 112.0, 108.0]
    sessions = [measured(tmp_path, number, {"copy_worst": value}, 30 * number - 25 * (number % 3))
                for number, value in enumerate(values)]  # fmt: skip
    runs = gather(sessions, HOST).runs
    assert [run.campaign for run in runs] == [1, 1, 1, 2, 2, 2]
    (found,) = record.noises(record.build(runs, HOST))
    # MAD 1 of 100 and 2 of 110: 1.4826 % and 2.6956 %; medians 100 and 110, of all 104.5.
    assert (found.check, found.unit, found.metrics) == ("stream_local", "GB/s", 1)
    assert found.within_run == 0
    assert found.between_sessions == pytest.approx(0.0209, abs=5e-5)
    assert found.between_campaigns == pytest.approx(0.0957, abs=5e-5)


def test_two_sessions_have_no_spread(tmp_path):
    runs = gather([measured(tmp_path, 0, {"copy_worst": 1.0}, 0)], HOST).runs
    expected = record.Noise("stream_local", "GB/s", 1, 0.0, None, None)
    assert list(record.noises(record.build(runs, HOST))) == [expected]


def test_a_page_is_changed_between_its_markers_only(tmp_path):
    page = tmp_path / "page.md"
    first, last = "<!-- noise of a:b -->", "<!-- end of noise of a:b -->"
    page.write_text(f"Before.\n\n{first}\nold\n{last}\n\nAfter.\n")
    whole_files.rewrite_block(page, {"noise of a:b": "new\n"})
    assert page.read_text() == f"Before.\n\n{first}\nnew\n{last}\n\nAfter.\n"
    for text in ("", first, f"{last}\n{first}\n", f"{first}{first}{last}"):
        page.write_text(text)
        with pytest.raises(InvalidInputError, match=r"page\.md: the lines"):
            whole_files.rewrite_block(page, {"noise of a:b": "new\n"})
    with pytest.raises(NotFoundError, match="there is no such file"):
        whole_files.rewrite_block(tmp_path / "none.md", {"noise of a:b": "new\n"})
