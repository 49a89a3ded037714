"""What a calibration could loosen without a word: units, entries that are gone, patterns."""

import re

import pytest
from calibrate_command import run
from test_references_written import (
    STEADY,
    STREAM,
    proposal,
    require,
    stream,
    write,
)

from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.judge.calibration import changes
from repeated_sessions import PARTITION, measured, several


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(STREAM)
    return references


OWN = "    copy_worst: [100.0, -0.02, null, GB/s]\n"


@pytest.mark.parametrize("present", ["[50, null, 0.1, us]", "[50, -0.1, null, '%']"])
def test_another_unit_needs_to_be_accepted(folder, present):
    """Of 50 us and 100 GB/s nobody can tell which lets pass more."""
    require(folder, present)
    said = re.escape("copy_worst: [100, -0.02, null, GB/s] is in another unit than [50")
    with pytest.raises(UsageError, match=said):
        write(folder, several(folder.parent, STEADY))
    write(folder, several(folder.parent, STEADY), accept_looser=True)
    assert stream(folder)["stream_local"][PARTITION]["copy_worst"] == [100.0, -0.02, None, "GB/s"]


def test_a_metric_that_became_a_count_needs_to_be_accepted(folder):
    require(folder, "[50, -0.1, null, GB/s]")
    counts = several(folder.parent, [0.0] * 6, unit="count")
    with pytest.raises(UsageError, match=r"copy_worst: \[0, 0, 0, count\] is in another unit"):
        write(folder, counts)


def test_an_entry_that_was_removed_by_hand_is_not_forgotten(folder):
    write(folder, several(folder.parent, STEADY))
    text = (folder / "stream.yaml").read_text()
    assert OWN in text
    (folder / "stream.yaml").write_text(text.replace(OWN, ""))
    found = proposal(folder, several(folder.parent, STEADY))
    assert {one.metric: one.effect for one in found.changes}["copy_worst"] == "new"
    slow = several(folder.parent / "slow", [90.0, 90.1, 90.0, 89.9, 90.0, 90.1])
    assert any("is in the present record, and no" in one for one in proposal(folder, slow).notes)
    said = re.escape("copy_worst: [90, -0.02, null, GB/s] lets pass what [100, -0.02")
    with pytest.raises(UsageError, match=said):
        write(folder, slow)


@pytest.mark.parametrize("key", ["local:.*", "local:(host|x2)", "[a-z]+:host"])
def test_entries_by_a_pattern_are_not_overridden(folder, key):
    """ReFrame takes them for the partition; of an entry of its own they would require nothing."""
    old = "  local:host:\n    copy_worst: *report_only"
    assert old in STREAM
    new = f'  "{key}":\n    copy_worst: [100, -0.02, null, GB/s]'
    (folder / "stream.yaml").write_text(STREAM.replace(old, new))
    said = re.escape(f"stream_local on {PARTITION} are those of {key}, which matches it as a")
    with pytest.raises(InvalidInputError, match=rf"stream\.yaml: the references of {said}"):
        proposal(folder, several(folder.parent, [90.0] * 6))


def test_what_is_accepted_is_said(folder):
    """All of it: one option accepts everything that is looser."""
    require(folder, "[110, -0.05, null, GB/s]")
    text = (folder / "stream.yaml").read_text()
    lost = "add_worst: *report_only"
    assert lost in text
    (folder / "stream.yaml").write_text(text.replace(lost, "add_worst: [5, -0.1, null, GB/s]"))
    for options in ((), ("--write", "--accept-looser")):
        said = run(folder, several(folder.parent, STEADY), *options).stderr
        assert "looser: stream_local copy_worst: [100, -0.02, null, GB/s] lets pass what" in said
        assert "looser: stream_local add_worst: [5, -0.1, null, GB/s] would become report" in said


def test_what_is_loosened_most_comes_first(folder):
    """A refusal has some sentences only, and most are of a thousandth."""
    text = (folder / "stream.yaml").read_text()
    present = {"copy_worst": 100.1, "add_worst": 130, "one": 100.2, "gone": 100}
    old = (
        "    copy_worst: *report_only\n    # The next one is of a sum.\n    add_worst: *report_only"
    )
    assert old in text
    new = "\n".join(f"    {name}: [{value}, -0.02, null, GB/s]" for name, value in present.items())
    (folder / "stream.yaml").write_text(text.replace(old, new))
    names = present.keys() - {"gone"}
    sessions = [measured(folder.parent, number, dict.fromkeys(sorted(names), value), 30 * number)
                for number, value in enumerate(STEADY)]  # fmt: skip
    found = changes.looser(proposal(folder, sessions))
    order = [one.split()[1].rstrip(":") for one in found]
    assert order == ["gone", "add_worst", "one", "copy_worst"]
    assert "does not, by 23 %, and 100 GB/s itself misses" in found[1]
    assert found[3].endswith("does not, by 0.1 %.")
