"""What accepting a node rests on: judged values of its GPUs, where it has or should have some."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fabricheck.core.text import count
from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.outcomes import CheckOutcome
from fabricheck.node import NodeModel
from fabricheck.results import state
from fabricheck.results.model import ResultDocument
from fabricheck.results.rows import Metric
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.schedulers import table
from fabricheck.site import sets


@dataclass(frozen=True)
class Ground:
    """A part of a node of which a value must be compared with a limit.

    experiments: any of them measures it. between_devices: whether it takes several devices.
    """

    name: str
    experiments: frozenset[str]
    between_devices: bool = False


GROUNDS = (
    Ground("the memory of its GPUs (E1)", frozenset({"E1"})),
    Ground("their host links (E2)", frozenset({"E2"})),
    Ground("the pairs of GPUs (E7, E8)", frozenset({"E7", "E8"}), between_devices=True),
)

#: The number in the variable of a scheduler; it may follow a type, as in h100:8.
_NUMBER = re.compile(r"(?:^|:)(\d+)$")


def is_for_gpus(document: ResultDocument) -> bool:
    """Whether a program measures GPUs, and no virtual or simulated devices."""
    return document["program"]["runtime"] in OF_DEVICES


def has_gpus(document: ResultDocument) -> bool:
    """Whether a document has GPUs that a program measured."""
    return is_for_gpus(document) and bool(document["devices"])


def unjudged(
    outcomes: Collection[CheckOutcome],
    recorded: PartitionChecks | None,
    selected: Iterable[str],
    node: NodeModel | None,
) -> Iterator[Ground]:
    """Yield what of a partition with GPUs has no judged value although it has such a part.

    :param outcomes: those of the partition, none of which failed.
    :param recorded: the checks that its session could select; None where unknown.
    :param selected: the sets that ran as a whole; empty where none is known.
    :param node: the node model of the partition.
    """
    judged = frozenset().union(*map(_judged_experiments, outcomes))
    in_sets = _experiments_of(selected, recorded)
    for ground in GROUNDS:
        if not judged.isdisjoint(ground.experiments):
            continue
        if ground.between_devices and not _has_pairs(outcomes, node):
            continue
        if in_sets is not None and in_sets.isdisjoint(ground.experiments):
            continue
        here = [outcome for outcome in outcomes if _measures(outcome, ground)]
        if here and all(outcome.skipped for outcome in here):
            continue
        yield ground


def expected_gpus(documents: Iterable[ResultDocument]) -> str | None:
    """Return what says that a node has GPUs, as a clause; None where nothing does.

    :param documents: of programs that ran on the node and measured none.
    """
    for document in documents:
        for variable in table.granted():
            number = _NUMBER.search(document["environment"].get(variable, ""))
            if number is not None and int(number[1]) > 0:
                return f"its allocation has {count(int(number[1]), 'GPU')} ({variable})"
        shown = state.all_accelerators(document)
        if shown:
            return f"PCI shows {count(shown, 'GPU')}"
    return None


def _judged_experiments(outcome: CheckOutcome) -> frozenset[str]:
    """Return the experiments of which an attempt of a check has a value with a limit."""
    experiments: set[str] = set()
    for attempt in outcome.attempts:
        for metric in attempt.metrics.values():
            if metric.recorded.nearest_limit is not None:
                experiments |= _experiments_of_metric(attempt, metric)
    return frozenset(experiments)


def _experiments_of_metric(attempt: Attempt, metric: Metric) -> frozenset[str]:
    series = metric.decisive_series
    if series:
        return frozenset(each["experiment"] for each in series)
    # Without a record of its series the check is all that is known.
    return attempt.case.experiments if attempt.case is not None else frozenset()


def _experiments_of(
    selected: Iterable[str], recorded: PartitionChecks | None
) -> frozenset[str] | None:
    """Return the experiments of the selected sets; None where a set has all that a node has."""
    names = list(selected)
    if names and all(sets.known()[name].apart for name in names):
        return frozenset()
    if not names or recorded is None:
        return None
    tags: set[str] = set()
    for name in names:
        for check in recorded.of_set(name):
            tags.update(recorded.checks[check])
    return frozenset(tags)


def _measures(outcome: CheckOutcome, ground: Ground) -> bool:
    case = outcome.attempts[0].case
    return case is not None and not case.experiments.isdisjoint(ground.experiments)


def _has_pairs(outcomes: Iterable[CheckOutcome], node: NodeModel | None) -> bool:
    """Whether the partition has devices that reach each other."""
    if node is not None:
        return bool(node.link_classes)
    documents = (attempt.document for outcome in outcomes for attempt in outcome.attempts)
    devices = (len(document["devices"]) for document in documents if document is not None)
    return max(devices, default=0) > 1
