"""A partition with a set of references: what its calibration does not give is the set's."""

import pytest
from calibrate_command import entries

from fabricheck.judge.calibration import changes, record
from fabricheck.judge.calibration.gathering import gather
from fabricheck.references.entries import follow
from fabricheck.references.published import OWN_FOLDER
from fabricheck.references.stated import References
from session_builder import HOST, measured, several

SCAN = "stream_scan"
STEADY = [1450.0, 1450.5, 1449.5, 1450.0, 1450.2, 1449.9]


@pytest.fixture
def folder(tmp_path):
    """The reference files, without the entries that local:host has of its own."""
    references = tmp_path / "references"
    references.mkdir()
    for name in ("stream.yaml", "affinity.yaml"):
        text = (OWN_FOLDER / name).read_text()
        assert "\n  local:host:" in text
        (references / name).write_text(text.replace("\n  local:host:", "\n  once:here:"))
    return references


def calibrated(folder, sessions, accept_looser=False):
    made = record.build(gather(sessions, HOST).runs, HOST)
    proposal = changes.propose(made, folder, "lumi")
    changes.write(proposal, accept_looser)
    return proposal


def test_the_sets_entries_stay_where_nothing_was_calibrated(folder, tmp_path):
    before = {check: entries(folder, check, named="lumi") for check in ("stream_local", SCAN)}
    calibrated(folder, several(tmp_path, STEADY))
    own = entries(folder, named="lumi")
    assert own["copy_worst"] == [1450.0, -0.02, None, "GB/s"]
    assert own | {"copy_worst": None} == before["stream_local"] | {"copy_worst": None}
    # Sets and other checks are as they were.
    assert entries(folder, partition="lumi") == before["stream_local"]
    assert entries(folder, SCAN, named="lumi") == before[SCAN]
    found = References(folder)
    kinds = {
        metric: found.origin("stream_local", HOST, metric, "lumi").kind
        for metric in ("copy_worst", "copy_median")
    }
    assert kinds == {"copy_worst": "calibration", "copy_median": "published"}


def test_every_number_can_be_followed_afterwards(folder, tmp_path):
    calibrated(folder, several(tmp_path, STEADY))
    found = References(folder)
    kinds = {}
    for metric, (value, *_) in found.entries("stream_local", HOST, "lumi").items():
        origin = found.origin("stream_local", HOST, metric, "lumi")
        kinds[metric] = origin.kind
        if origin.kind != "calibration":
            assert follow(origin, found.data) == (value, "GB/s")
    assert kinds.pop("copy_worst") == "calibration"
    assert set(kinds.values()) == {"published", "derived"}


def test_a_limit_of_the_set_stays_where_the_sessions_give_none(folder, tmp_path):
    noisy = [1450.0, 1000.0, 1450.0, 900.0, 1450.0, 1100.0]
    proposal = calibrated(folder, several(tmp_path, noisy))
    assert any("copy_worst: [1400, -0.15, null, GB/s] stays" in note for note in proposal.notes)
    assert entries(folder, named="lumi") == entries(folder, partition="lumi")


def test_it_stays_at_the_next_calibration_too(folder, tmp_path):
    calibrated(folder, several(tmp_path, STEADY))
    later = [
        measured(tmp_path, 10 + number, {"copy_worst": value, "copy_median": noisy}, 60.0 * number)
        for number, (value, noisy) in enumerate(
            zip(STEADY, [1.0, 2000.0, 3.0, 900.0, 1.0, 9.0], strict=True)
        )
    ]
    proposal = calibrated(folder, later)
    assert any("copy_median" in note and "stays" in note for note in proposal.notes)
    own = entries(folder, named="lumi")
    assert own["copy_median"] == [1400, -0.15, None, "GB/s"]
    assert own["copy_worst"][0] == 1450.0


def test_a_value_below_that_of_the_set_is_looser(folder, tmp_path):
    with pytest.raises(changes.UsageError, match="would be looser"):
        calibrated(folder, several(tmp_path, [value - 400 for value in STEADY]))
    calibrated(folder, several(tmp_path / "again", STEADY))


def test_counts_alone_leave_the_set_in_place(folder, tmp_path):
    sessions = [measured(tmp_path, number, {"misplaced": 0.0}, 60.0 * number, check="affinity",
                         unit="count") for number in range(6)]  # fmt: skip
    calibrated(folder, sessions)
    origin = References(folder).origin("affinity", HOST, "misplaced", "lumi")
    assert origin.kind == "derived"
