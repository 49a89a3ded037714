"""A node that became slower during its session: what was measured before is no evidence."""

from __future__ import annotations

import pytest

import factories
from fabricheck.judge.diagnosis.diagnose import Miss, Session, diagnose
from fabricheck.results.rows import Check, Metric

#: The devices, and the one that is slow at the end.
DEVICES, SLOW = range(4), 1


def measured(started, slow):
    """Build a document of copies of each device, of which one may be slow."""
    series = [
        factories.series(
            [50.0 if slow and device == SLOW else 100.0] * 7,
            device=device,
            device_set=[device],
            source=factories.place(device=device),
            destination=factories.place(device=device),
        )
        for device in DEVICES
    ]
    return factories.document(series=series, started=started)


@pytest.mark.parametrize(
    ("reduce", "contradicting"), [("worst", ["stream_local copy device 1"]), ("first", [])]
)
def test_what_was_measured_before_a_node_changed_contradicts_nothing(reduce, contradicting):
    documents = {
        "stream_local": measured("2026-01-02T03:00:00Z", slow=False),
        "stream_end": measured("2026-01-02T04:00:00Z", slow=True),
    }
    metric = Metric(
        check_row=Check(check="stream_end"), recorded=None, metric="copy_since_begin", value=50.0,
        unit="%", reference=100.0, least=95.0, series=(SLOW,), reduce=reduce,
    )  # fmt: skip
    decided = {SLOW: documents["stream_end"]["series"][SLOW]}
    miss = Miss("stream_end", "copy_since_begin", metric, decided)
    found = diagnose(Session(documents, [metric], [miss]), None)
    (degraded,) = found.degraded
    assert degraded.component.ids == (SLOW,)
    assert degraded.supporting == ["stream_end copy device 1"]
    assert degraded.contradicting == contradicting
