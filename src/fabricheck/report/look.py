"""The line of a passive look: for prologs, epilogs, health checks and people."""

from __future__ import annotations

from fabricheck.core import show
from fabricheck.core.show import cut
from fabricheck.core.text import count
from fabricheck.judge.verdict.health import Health

#: The longest sentence in the line; the JSON has all of it.
LONGEST = 300


def line(result: Health) -> str:
    """Return the health of a node in one line."""
    verdict = result.verdict
    title = f"{verdict.node}, simulated" if verdict.simulated is not None else verdict.node
    if not verdict.reasons:
        since = "" if result.since is None else f" since {result.since:%Y-%m-%d %H:%M:%S} UTC"
        seen = show.listed(result.compared) or "nothing"
        notes = [cut(note.rstrip("."), LONGEST) for note in result.notes]
        more = f"; {count(len(notes), 'note')}: {show.listed(notes, 2)}" if notes else ""
        return f"{title}: no fault of {seen}{since}{more}"
    first, number = verdict.reasons[0], len(verdict.reasons)
    component = f", {first.component}" if first.component else ""
    more = f" (1 of {number} findings)" if number > 1 else ""
    sentence = cut(first.sentence, LONGEST)
    return (
        f"{title}: {verdict.status} ({first.rule}{component}): {sentence}{more} {first.next_step}"
    )
