"""`fabricheck summary`: what passed, what did not, and what to do next, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Name
from fabricheck.cli.results import exit_code
from fabricheck.core import show
from fabricheck.core.amounts import short
from fabricheck.core.show import Block, Table, cut, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXPERIMENTS
from fabricheck.report import demonstration
from fabricheck.results import reading

if TYPE_CHECKING:
    from fabricheck.report.findings import Partition

#: The most partitions with a line each.
MOST_PARTITIONS = 4

#: Longest sentence; the report has the full sentence.
LONGEST = 290

#: The most devices whose pairs fit into the width of a screen.
MOST_DEVICES = 8


@commands.command("summary")
def summary(
    what: Name = "latest",
    as_json: AsJson = False,
) -> int:
    """Show what passed in a session, what did not, what was not run, and what to do next.

    Exit status 3 or 4 if some of its results are missing or damaged.
    """
    # These take half a second to import, and no other command needs them.
    from fabricheck.judge.verdict.judging import judge
    from fabricheck.report import experiments, findings

    results = reading.read([what])
    verdicts = judge(results)
    # What was measured stands above what was simulated.
    partitions = [
        _partition(findings.Partition(observed, findings.partition_verdict(verdicts, observed)))
        for observed in sorted(results.observed, key=attrgetter("simulated"))
    ]
    ran = {row.experiment for partition in partitions for row in partition["experiments"]
           if row.outcome != experiments.NOT_RUN}  # fmt: skip
    problems = [problem.sentence for problem in results.problems]
    found = {
        "demonstration": demonstration.is_demonstration(verdicts),
        "of": results.title,
        "partitions": partitions,
        "not_run": [name for name in EXPERIMENTS if name not in ran],
        "next": [*problems, *findings.next_steps(verdicts)],
    }
    show.result(found, _text(found), as_json)
    return exit_code(results, results.entries)


def _text(found: Mapping[str, Any]) -> Iterator[Block]:
    if found["demonstration"]:
        yield demonstration.SENTENCE
    yield f"Summary of {found['of']}"
    for partition in found["partitions"][:MOST_PARTITIONS]:
        yield show.joined(
            f"{partition['partition']}, {partition['kind']}: ",
            show.status(partition["label"], partition["badge"]),
            f"; {partition['says']}.",
        )
        yield from _matrix(partition["devices"])
    left = len(found["partitions"]) - MOST_PARTITIONS
    if left > 0:
        yield f"And {count(left, 'partition')} more: fabricheck verdict"
    if found["not_run"]:
        yield f"Not run: {listed(found['not_run'])} (fabricheck results coverage)"
    yield from (cut(sentence, LONGEST) for sentence in found["next"])


def _partition(found: Partition) -> dict[str, Any]:
    """Return one partition of a session: its status, a row for each experiment, and each GPU."""
    return {
        "partition": found.observed.where or "no partition",
        "kind": found.observed.kind,
        "status": found.verdict.status,
        "label": found.verdict.label,
        "accepted": found.verdict.accepted,
        "badge": found.verdict.badge,
        "says": found.says,
        "experiments": found.experiments,
        "devices": list(found.devices),
    }


def _matrix(devices: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    shown = devices[:MOST_DEVICES]
    peers = (
        [device["device"] for device in shown] if any(device["peers"] for device in devices) else []
    )
    names = [name for name in (devices[0] if devices else ()) if name not in ("device", "peers")]
    columns = ("GB/s", *names, *(f"to {peer}" for peer in peers))
    rows = [
        [
            f"device {one['device']}",
            *(
                "" if value is None else short(value)
                for value in (*map(one.get, names), *map(one["peers"].get, peers))
            ),
        ]
        for one in shown
    ]
    yield Table(columns, rows, columns[1:])
