"""What a calibration could loosen without a word: units, and of much the most."""

import re

import pytest
from calibrate_command import entries, run
from test_references_written import (
    STEADY,
    STREAM,
    proposal,
    require,
    write,
)

from fabricheck.core.errors import UsageError
from session_builder import measured, several


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(STREAM)
    return references


@pytest.mark.parametrize("present", ["[50, null, 0.1, us]", "[50, -0.1, null, '%']"])
def test_another_unit_needs_to_be_accepted(folder, present):
    """Of 50 us and 100 GB/s neither accepts more than the other."""
    require(folder, present)
    said = re.escape("copy_worst: [100, -0.02, null, GB/s] is in another unit than [50")
    with pytest.raises(UsageError, match=said):
        write(folder, several(folder.parent, STEADY))
    write(folder, several(folder.parent, STEADY), accept_looser=True)
    assert entries(folder)["copy_worst"] == [100.0, -0.02, None, "GB/s"]


def test_a_longer_latency_needs_to_be_accepted_and_a_shorter_one_does_not(folder):
    require(folder, "[50, null, 0.1, us]")
    with pytest.raises(UsageError, match="would be looser"):
        write(folder, several(folder.parent, STEADY, unit="us"))
    write(folder, several(folder.parent / "shorter", [one / 4 for one in STEADY], unit="us"))
    assert entries(folder)["copy_worst"] == [25.0, None, 0.1, "us"]


def test_a_metric_that_became_a_count_needs_to_be_accepted(folder):
    require(folder, "[50, -0.1, null, GB/s]")
    counts = several(folder.parent, [0.0] * 6, unit="count")
    with pytest.raises(UsageError, match=r"copy_worst: \[0, 0, 0, count\] is in another unit"):
        write(folder, counts)


def test_what_is_accepted_is_said(command, folder, wording):
    """All of it: one option accepts everything that is looser."""
    require(folder, "[110, -0.05, null, GB/s]")
    text = (folder / "stream.yaml").read_text()
    (folder / "stream.yaml").write_text(
        text.replace("add_worst: [0, null, null, GB/s]", "add_worst: [5, -0.1, null, GB/s]")
    )
    noisy = [5.0, 9.0, 5.0, 2.0, 5.0, 7.0]
    sessions = [
        measured(folder.parent, number, {"copy_worst": one, "add_worst": other}, 30 * number)
        for number, (one, other) in enumerate(zip(STEADY, noisy, strict=True))
    ]
    for options in ((), ("--write", "--accept-looser")):
        wording(run(command, folder, sessions, *options).stderr)


def test_what_is_loosened_most_comes_first(folder, wording):
    """A refusal has some sentences only, and most are of a thousandth."""
    text = (folder / "stream.yaml").read_text()
    present = {"copy_worst": 100.1, "add_worst": 130, "one": 100.2, "noisy": 100}
    old = (
        "    copy_worst: [0, null, null, GB/s]\n    # The next one is of a sum.\n"
        "    add_worst: [0, null, null, GB/s]"
    )
    assert old in text
    new = "\n".join(f"    {name}: [{value}, -0.02, null, GB/s]" for name, value in present.items())
    (folder / "stream.yaml").write_text(text.replace(old, new))
    names = sorted(present.keys() - {"noisy"})
    sessions = [
        measured(folder.parent, number,
                 {**dict.fromkeys(names, value), "noisy": 50.0 + 20 * number}, 30 * number)
        for number, value in enumerate(STEADY)
    ]  # fmt: skip
    found = proposal(folder, sessions).looser
    order = [one.split()[1].rstrip(":") for one in found]
    assert order == ["noisy", "add_worst", "one", "copy_worst"]
    wording(found)
