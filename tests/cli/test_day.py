"""What `fabricheck` shows of a day: its commands, and a session on a screen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.rfm.base import Printed

SESSION = ROOT / "tests" / "outputs" / "h200" / "session-x2"


def test_a_session_is_summed_up_in_a_few_lines(command, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(SESSION))
    text = command("summary").stdout
    lines = text.splitlines()
    assert len(lines) <= 10
    # It is of a version that had no limits of speed.
    assert "h200:x2, measured: INCOMPLETE;" in text
    assert " vm again: No value of the memory of its GPUs (E1), their host links (E2) or" in text
    assert "Not run: E4, E14, E16, E17 (fabricheck results coverage)" in text
    # Of each GPU its memory, its host link and the copies to its peers.
    rows = [line.split() for line in lines if line.startswith(("GB/s", "device"))]
    assert rows == [
        ["GB/s", "Memory", "From", "host", "To", "host", "to", "0", "to", "1"],
        ["device", "0", "4,278", "55.5", "55.3", "396"],
        ["device", "1", "4,278", "55.4", "55.3", "396"],
    ]


def test_reframe_prints_five_digits_and_keeps_all():
    value = Printed(32.27216483946)
    assert f"{value}" == "32.272" and value == 32.27216483946
    assert float.__repr__(value) == "32.27216483946"


#: Longer than a line of the terminal.
WHY = "Partition local:host has 1 device: " + 4 * "there is no choice, " + "so."

REFRAME = f"""\
[----------] start processing checks
[ RUN      ] stream_local /5be1f145 @local:host+host
[       OK ] (1/3) stream_local /5be1f145 @local:host+host
P: copy_worst: 32.3 GB/s
[     FAIL ] (2/3) memcpy_near /8a7414b1 @local:host+host
[     SKIP ] (3/3) p2p_scan /8a7414b2 @local:host+host [{WHY}]
[  FAILED  ] Ran 2/3 test case(s)
"""


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (REFRAME, "  passed    1/3  stream_local  local:host\n"
                  "  FAILED    2/3  memcpy_near  local:host\n"
                  f"  skipped   3/3  p2p_scan  local:host: {WHY}\n"),
        ("reframe: no such mode: bogus\n", "reframe: no such mode: bogus\n"),
    ],
)  # fmt: skip
def test_of_reframe_s_output_each_check_is_a_line(printed, shown):
    ended = subprocess.run(
        [sys.executable, ROOT / "ci" / "progress.py"], input=printed, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert ended.stdout == shown
