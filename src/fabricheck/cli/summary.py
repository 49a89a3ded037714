"""`fabricheck summary`: what passed, what did not, and what to do next, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fabricheck.cli import commands, energy_table
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
    rows = [row for partition in partitions for row in partition["experiments"]]
    ran = {row.experiment for row in rows if row.outcome != experiments.NOT_RUN}
    problems = [problem.sentence for problem in results.problems]
    content = {
        "demonstration": demonstration.is_demonstration(verdicts),
        "of": results.title,
        "partitions": partitions,
        "not_run": [name for name in EXPERIMENTS if name not in ran],
        "next": [*problems, *findings.next_steps(verdicts)],
    }
    show.result(content, _text(content), as_json)
    return exit_code(results, results.entries)


def _text(content: Mapping[str, Any]) -> Iterator[Block]:
    if content["demonstration"]:
        yield demonstration.SENTENCE
    yield f"Summary of {content['of']}"
    for partition in content["partitions"][:MOST_PARTITIONS]:
        yield show.joined(
            f"{partition['partition']}, {partition['clock']}: ",
            show.status(partition["label"], partition["badge"]),
            f"; {partition['says']}.",
        )
        yield from _matrix(partition["devices"])
        yield from energy_table.lines(partition["energy"])
    left = len(content["partitions"]) - MOST_PARTITIONS
    if left > 0:
        yield f"And {count(left, 'partition')} more: fabricheck verdict"
    if content["not_run"]:
        yield f"Not run: {listed(content['not_run'])} (fabricheck results coverage)"
    yield from (cut(sentence, LONGEST) for sentence in content["next"])


def _partition(partition: Partition) -> dict[str, Any]:
    """Return one partition of a session: its status, a row for each experiment, and each GPU."""
    return {
        "partition": partition.observed.where or "no partition",
        "clock": partition.observed.clock,
        "status": partition.verdict.status,
        "label": partition.verdict.label,
        "accepted": partition.verdict.accepted,
        "badge": partition.verdict.badge,
        "says": partition.says,
        "experiments": partition.experiments,
        "devices": list(partition.devices),
        "energy": list(partition.energy),
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
            f"device {row['device']}",
            *(
                "" if value is None else short(value)
                for value in (*map(row.get, names), *map(row["peers"].get, peers))
            ),
        ]
        for row in shown
    ]
    yield Table(columns, rows, columns[1:])
