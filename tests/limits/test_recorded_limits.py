"""Sessions of the set node that were recorded on healthy machines, compared with today's limits."""

from __future__ import annotations

import json

import pytest

from fabricheck.results.metric_records import RENAMED
from limits import drawn_sessions

SESSIONS = drawn_sessions.OUTPUTS / "h200" / "node-sessions-x2.json"

#: Beyond their limits by their medians, and not by all samples: memcpy_at_times.json.
AT_TIMES = {
    ("20261123T061156+0000", "memcpy_near", "h2d_pinned_near_worst"),
    ("20261123T061156+0000", "memcpy_near", "h2d_pinned_near_alike"),
}


@pytest.fixture(scope="module")
def judged():
    return list(drawn_sessions.judged("h200:x2"))


def test_no_recorded_session_misses_a_limit_but_at_times(judged):
    sessions = json.loads(SESSIONS.read_text())
    assert len(sessions) == 24
    missed, counted = set(), 0
    for session in sessions:
        values = {
            (check, RENAMED.get(name, name)): value
            for check, metrics in session["values"].items()
            for name, value in metrics.items()
        }
        for one in judged:
            value = values.get((one.check, one.metric.name))
            if value is None:
                continue
            counted += 1
            if one.is_beyond(value):
                missed.add((session["started"], one.check, one.metric.name))
    assert counted > 1500
    assert missed == AT_TIMES
