"""Draw healthy sessions, count those that fail, and what limits among alike members would find.

python -m proof.limits                 # twice 1,000 sessions for each set of limits
python -m proof.limits --write         # into docs/evidence/limits.md
python -m proof.limits --whole 20 --write   # whole simulated sessions, 20 for each set; 6 minutes
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT
from fabricheck.rfm import relative
from limits import drawn_sessions, pageable
from proof.limits import whole

#: The numbers of nodes and of days on each of which sessions are drawn.
DRAWN = ((20, 50), (200, 5))

PAGE = ROOT / "docs" / "evidence" / "limits.md"

BLOCK, WHOLE = "drawn sessions", "whole sessions"

#: The partitions whose limits the sessions are judged by.
PARTITIONS = ("local:sim-mi250x", "lumi:gpu")

#: The size of a fault, in percent, whose share is told that is found.
FAULT = 5.0

#: The share of runs in which a fault is to be found.
FOUND = 0.99


@dataclass
class Seen:
    """What was seen of one set of limits.

    failed: by check and metric the sessions that it failed. slack: by check, metric and limit in
    percent, of each member in each session by how much it could be slower.
    """

    sessions: int = 0
    failing: int = 0
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    slack: dict[tuple[str, str, float], list[float]] = field(default_factory=dict)


def see(partition: str, nodes: int, days: int, seed: int) -> Seen:
    """Draw sessions of some nodes on some days, and judge them by the limits of a partition."""
    rng, seen = random.Random(seed), Seen()
    with drawn_sessions.chosen_once():
        session = drawn_sessions.session(partition)
        compared = [one for one in session.judged if isinstance(one.metric, relative.PeerRatio)]
        for _ in range(nodes):
            factors = drawn_sessions.factors(rng, session.documents)
            for _ in range(days):
                session.draw(rng, factors)
                failures = session.failures()
                seen.sessions += 1
                seen.failing += bool(failures)
                seen.failed.update((one.check, one.metric.name) for one in failures)
                for one in compared:
                    assert one.limits[0] is not None
                    key = (one.check, one.metric.name, 100 - one.limits[0])
                    own = seen.slack.setdefault(key, [])
                    own += one.found(session.documents[one.check])
    return seen


def lines(seen: Mapping[tuple[str, int, int], Seen], seed: int) -> Iterator[str]:
    """Yield what is written: the sessions that failed, and the sizes of faults that are found."""
    yield f"Healthy sessions, drawn with the seed {seed}:"
    yield ""
    for (partition, nodes, days), own in seen.items():
        why = ", ".join(f"{check} {metric} {n}" for (check, metric), n in own.failed.most_common())
        said = f": {why}" if why else ""
        yield (
            f"- {nodes} nodes on {days} days each, limits of `{partition}`: {own.failing} of "
            f"{own.sessions} failed{said}."
        )
    yield ""
    yield from pageable.lines(seed)
    yield ""
    yield f"Of the {nodes} nodes, with the limits of `{partition}`:"
    yield ""
    yield f"| check | metrics | limit | {FAULT:g} % found | found in 99 of 100 from |"
    yield "|---|---|---|---|---|"
    alike: dict[tuple[str, float], list[tuple[str, float, float]]] = {}
    for (check, metric, limit), slack in own.slack.items():
        share = 100 * sum(one < FAULT for one in slack) / len(slack)
        size = sorted(slack)[int(FOUND * len(slack))]
        alike.setdefault((check, limit), []).append((metric, share, size))
    for (check, limit), rows in alike.items():
        metrics, shares, sizes = zip(*rows, strict=True)
        found = " | ".join(f"{between(each)} %" for each in (shares, sizes))
        yield f"| {check} | {', '.join(metrics)} | -{limit:.3g} % | {found} |"


def between(values: Sequence[float]) -> str:
    """Return the least and the greatest of some numbers."""
    return " to ".join(dict.fromkeys(f"{one:.1f}" for one in (min(values), max(values))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--whole", type=int, metavar="N", help="run N whole sessions instead")
    given = parser.parse_args(arguments)
    if given.whole:
        say("\n".join(whole.lines(given.whole)), WHOLE, given.write)
        return
    seen = {
        (partition, nodes, days): see(partition, nodes, days, given.seed)
        for nodes, days in DRAWN
        for partition in PARTITIONS
    }
    say("\n".join(lines(seen, given.seed)), BLOCK, given.write)


def say(text: str, block: str, write: bool) -> None:
    """Print a text, or write it into its block of the page."""
    if write:
        whole_files.rewrite_block(PAGE, {block: f"{text}\n"})
    else:
        print(text)


if __name__ == "__main__":
    main()
