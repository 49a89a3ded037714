"""ReFrame judges by the references that its own sessions gave."""

from __future__ import annotations

import platform

import pytest

from fabricheck.references.stated import References

pytestmark = pytest.mark.slow


def test_sessions_make_the_references_of_the_next_ones(command, suite, wording):
    references = suite.own_references()
    for _ in range(5):
        assert suite("-r", "-n", "stream_local").status == 0
    # What ran in one go is one campaign; here the pause that makes another one is shorter.
    line = ["limits", "calibrate", str(suite.results), "--system", "local:host", "--output",
               str(references.parent), "--write"]  # fmt: skip
    refused = command(*line, code=4)
    assert "has 5 sessions in 1 campaign" in refused.stderr
    command(*line, "--pause", "0")
    entries = References(references.parent).entries("stream_local", "local:host")
    assert entries["triad_worst"] == [6.8744, -0.02, None, "GB/s"]
    record = (references.parent / "calibrations" / "local-host.yaml").read_text()

    assert "hostname" not in record and record.count("uuid:") == 5

    healthy = suite("-r", "-n", "stream_local")
    assert healthy.status == 0
    assert "report only" not in healthy
    slow = suite("-r", "-n", "stream_local", fault="slow")
    assert slow.status == 1
    (miss,) = slow.lines_with("6.73691 GB/s")
    wording(miss.replace(f"node {platform.node()}", "node NODE"))
    # A session that missed them is named, and changes nothing.
    again = command(*line, "--pause", "0")
    assert "stream_local @local:host missed its reference" in again.stderr
    assert References(references.parent).entries("stream_local", "local:host") == entries
