"""`soak` on the simulated node: hours of load are counted by its clock, and move a slice."""

import pytest

HOURS = ("--size", "1GiB", "--load-time", "36000", "--pass-time", "3600", "--pairs", "0-6,6-0")


def test_ten_hours_are_counted(run):
    ran = run("soak", *HOURS)
    assert ran.code == 0, ran.err
    document = ran.document
    passes = document["soak"]["passes"]
    assert len(passes) == 10
    assert passes[-1][1] == pytest.approx(36000, rel=0.02)
    # Each device: its memory, to and from the host; and the pair.
    operations = [each["operation"] for each in document["series"]]
    assert operations == [*8 * ["copy"], *8 * ["h2d", "d2h"], "engine", "engine"]
    seconds = {
        each["batch"] * each["bytes_moved"] / each["median"] / 1e9 for each in document["series"]
    }
    assert min(seconds) > 3400
    assert max(seconds) < 3700
