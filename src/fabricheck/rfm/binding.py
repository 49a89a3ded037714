"""The check of where ranks sit (E15): what differs from what was asked for; nothing is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reframe.core.builtins import run_before

from fabricheck.node.placement import domain_of_core
from fabricheck.results.document import load
from fabricheck.results.launches import cores_text, rank_lines
from fabricheck.results.model import Rank, ResultDocument
from fabricheck.rfm.base import MOST_SENTENCES, RESULT
from fabricheck.rfm.metrics import Figure, Metric, MetricError, Population
from fabricheck.rfm.ranks import NearRanksCheck

if TYPE_CHECKING:
    from fabricheck.node import NodeModel
    from fabricheck.node.placement import Placement


@dataclass(frozen=True)
class Wanted:
    """What a launcher was asked for.

    ranks: how many.
    placed: the devices and cores of the ranks; ``None`` as the launcher puts them.
    node: the node model, which knows the NUMA domain of each core and device.
    """

    ranks: int
    placed: Placement | None = None
    node: NodeModel | None = None


def misplaced(document: ResultDocument, wanted: Wanted) -> Iterator[str]:
    """Yield one sentence for each rank that does not sit where it should."""
    ranks = document.get("ranks") or []
    node = document["host"]["hostname"]
    if len(ranks) != wanted.ranks:
        yield f"Node {node} has {len(ranks)} rank(s), and {wanted.ranks} were started."
    hosts = sorted({rank["host"] for rank in ranks})
    if len(hosts) > 1:
        yield f"The ranks are on several nodes: {', '.join(hosts)}."
    shared = wanted.placed is not None and len(set(wanted.placed.devices)) < wanted.ranks
    for rank in ranks:
        yield from _on_its_device(rank, ranks, wanted, shared)
        yield from _on_its_cores(rank, ranks, wanted)


def _on_its_device(
    rank: Rank, ranks: Sequence[Rank], wanted: Wanted, shared: bool
) -> Iterator[str]:
    device = rank["device"]
    if device is None:
        yield f"Rank {rank['rank']} has no device."
        return
    others = [
        one["rank"] for one in ranks if one["device"] == device and one["rank"] < rank["rank"]
    ]
    if others and not shared:
        yield f"Rank {rank['rank']} has device {device}, which rank {others[0]} has already."
    if wanted.placed is not None and rank["rank"] < wanted.ranks:
        asked = wanted.placed.devices[rank["rank"]]
        if device != asked:
            yield f"Rank {rank['rank']} has device {device}, and device {asked} was asked for."


def _on_its_cores(rank: Rank, ranks: Sequence[Rank], wanted: Wanted) -> Iterator[str]:
    cores = rank["cores"]
    if not cores:
        yield f"Rank {rank['rank']} may use no core."
        return
    if wanted.placed is None or rank["rank"] >= wanted.ranks:
        return
    asked = wanted.placed.cores[rank["rank"]]
    if cores != [asked]:
        yield f"Rank {rank['rank']} may use {cores_text(cores)}, and core {asked} was asked for."
    taken = [
        one["rank"]
        for one in ranks
        if one["rank"] < rank["rank"] and set(one["cores"]) & set(cores)
    ]
    if taken:
        yield f"Rank {rank['rank']} shares {cores_text(cores)} with rank {taken[0]}."
    domain = domain_of_core(wanted.node, asked) if wanted.node else None
    for name, found in (("cores", rank["numa_domain"]), ("memory", rank["memory_domain"])):
        if domain is not None and found != domain:
            yield (
                f"Rank {rank['rank']} has its {name} in NUMA domain {found}, and core {asked} is "
                f"in domain {domain}."
            )


class Misplaced(Metric):
    """The number of sentences about ranks that do not sit where they should."""

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Count them.

        :param population: ``wanted`` is what the launcher was asked for.
        :raises MetricError: when the document tells of no ranks.
        """
        if not document.get("ranks"):
            node = document["host"]["hostname"]
            raise MetricError(f"Metric {self}: the result of node {node} tells of no ranks.")
        (wanted,) = population["wanted"]
        return Figure(self, float(len(list(misplaced(document, wanted)))), (), ())


class AffinityCheck(NearRanksCheck, special=True):  # type: ignore[call-arg]
    """Asks each rank where it is, and names those that are elsewhere. Runs before all others."""

    program = "affinity"
    metrics = (Misplaced("misplaced", over=(), unit="count"),)
    runs_first = True

    @property
    def wanted(self) -> Wanted:
        """What the launcher was asked for."""
        return Wanted(self.num_tasks, self.placed, self.node)

    def population(self) -> dict[str, Sequence[Wanted]]:
        """Return what the metric compares with."""
        return {"wanted": [self.wanted]}

    @run_before("performance")  # type: ignore[untyped-decorator]
    def _show_map(self) -> None:
        if self.is_dry_run():
            return
        for line in rank_lines(load(Path(self.stagedir) / RESULT)):
            self.logger.info(f"{self.name}: {line}")

    def _missed(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        found = list(misplaced(document, self.wanted))
        more = len(found) - MOST_SENTENCES
        return [*found[:MOST_SENTENCES], *([f"And {more} more."] if more > 0 else [])]
