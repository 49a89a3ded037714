"""The findings on a fleet: outliers, groups of nodes, what is missing, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_MISSING, EXIT_ODD, EXIT_WORSE
from fabricheck.judge.fleet import outliers
from fabricheck.judge.fleet.changes import Changes
from fabricheck.judge.fleet.outliers import Distribution, NodeGroups, Outlier, PartitionOutliers
from fabricheck.judge.fleet.reading import Fleet, Metric
from fabricheck.judge.verdict import judging
from fabricheck.results.reading import Results

#: The most outliers of a partition whose sessions are judged for their diagnosis.
MOST_DIAGNOSED = 40


@dataclass(frozen=True)
class Findings:
    """All findings on a fleet.

    changes: since an earlier time, where one was named. sessions: by node that stands out or
    changed, each with its file or folder.
    """

    fleet: Fleet
    partitions: tuple[PartitionOutliers, ...]
    groups: tuple[NodeGroups, ...]
    changes: Changes | None
    sessions: Mapping[str, Sequence[tuple[str, str]]]

    @property
    def outliers(self) -> Iterator[tuple[PartitionOutliers, Outlier]]:
        """The nodes that stand out, with their partitions."""
        return ((part, outlier) for part in self.partitions for outlier in part.outliers)

    @property
    def missing_metrics(self) -> dict[str, tuple[Metric, ...]]:
        """By node the metrics that nearly all others have and it has not."""
        return {
            node: metrics
            for part in self.partitions
            for node, metrics in part.missing_metrics.items()
        }

    @property
    def unusable(self) -> list[Distribution]:
        """The metrics without one usable value, of partitions in which a node can stand out."""
        return [
            distribution
            for part in self.partitions
            if len(part.partition.nodes) >= outliers.FEWEST
            for distribution in part.distributions
            if distribution.nodes and math.isnan(distribution.median)
        ]

    @property
    def exit_code(self) -> int:
        """The exit code: worse, unread, odd, missing, good."""
        if self.changes is not None and self.changes.worse:
            return EXIT_WORSE
        if self.fleet.problems or (self.changes is not None and self.changes.before.problems):
            return InvalidInputError.exit_code
        if any(self.outliers) or any(group.counts for group in self.groups):
            return EXIT_ODD
        gone = self.changes is not None and self.changes.missing
        lost = self.fleet.lost or self.fleet.lost_networks
        missing = lost or self.missing_metrics or self.unusable or gone
        return EXIT_MISSING if missing else EXIT_GOOD


def findings(fleet: Fleet, changes: Changes | None = None) -> Findings:
    """Return the findings on a fleet."""
    judged = [outliers.judge(part) for part in fleet.partitions]
    changed = changes.partitions if changes is not None else ()
    named = [outlier.node for part in judged for outlier in part.outliers]
    named += [outlier.node for part in changed for outlier in (*part.worse, *part.better)]
    sessions = fleet.sessions(named) if named else {}
    return Findings(
        fleet,
        tuple(_diagnosed(judged, fleet.results, sessions)),
        tuple(
            groups
            for partition_outliers in judged
            for groups in outliers.groups_of(partition_outliers, fleet)
        ),
        changes,
        sessions,
    )


def _diagnosed(
    judged: Iterable[PartitionOutliers],
    results: Results | None,
    sessions: Mapping[str, Sequence[tuple[str, str]]],
) -> Iterator[PartitionOutliers]:
    """Yield the partitions, with the diagnoses of their outliers' verdicts.

    :param results: None where all names are tables, which have no documents.
    """
    for found in judged:
        part, nodes = found.partition, [outlier.node for outlier in found.outliers[:MOST_DIAGNOSED]]
        wanted = {session for node in nodes for session in sessions.get(node, ())}
        sources = (
            [source for source in results.sources if (source.name, str(source.results)) in wanted]
            if results
            else []
        )
        verdicts = (
            judging.judge(replace(results, sources=tuple(sources))) if results and sources else []
        )
        diagnoses = {
            verdict.node: verdict.diagnosis
            for verdict in verdicts
            if verdict.kind == part.clock and part.where in verdict.partitions
        }
        yield replace(
            found,
            outliers=tuple(
                replace(outlier, diagnosis=diagnoses.get(outlier.node))
                for outlier in found.outliers
            ),
        )


def as_json(found: Findings) -> dict[str, Any]:
    """Return the findings as what JSON shows: each record as it is."""
    changes = found.changes
    return {
        "form": "fabricheck-fleet-2",
        "fleet": found.fleet.title,
        "exit_code": found.exit_code,
        "partitions": [
            {
                "partition": partition.partition.where,
                "clock": partition.partition.clock,
                "nodes": len(partition.partition.nodes),
                "metrics": [replace(each, groups=None) for each in partition.distributions],
                "limits": partition.limits,
                "outliers": partition.outliers,
                "missing_metrics": partition.missing_metrics,
            }
            for partition in found.partitions
        ],
        "groups": found.groups,
        "sessions": found.sessions,
        "lost": found.fleet.lost,
        "lost_networks": found.fleet.lost_networks,
        "problems": found.fleet.problems,
        "changes": None
        if changes is None
        else {
            "before": changes.before.title,
            "partitions": changes.partitions,
            **{
                when: [{"partition": part.title, "nodes": part.nodes} for part in parts]
                for when, parts in (
                    ("only_before", changes.only_before),
                    ("only_after", changes.only_after),
                )
            },
            "facts": changes.facts,
            "checks": changes.checks,
        },
    }
