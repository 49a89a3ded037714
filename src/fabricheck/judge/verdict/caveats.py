"""Caveats: the limits of what a verdict proves, as sentences for the verdict and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.verdict.checks import Attempt
from fabricheck.results import settings, state
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case

#: The number of checks that a caveat names.
_MOST_CHECKS = 3


def state_caveats(attempts: Iterable[Attempt]) -> Iterator[str]:
    """Yield one sentence for each cause that no reason of the checks states."""
    known = [
        attempt
        for attempt in attempts
        if attempt.document is not None and "state" in attempt.document
    ]
    checks = {attempt.check for attempt in known}
    found = grouped(
        (cause.key, (attempt.check, cause)) for attempt in known for cause in attempt.caveats
    )
    for alike in found.values():
        names = list(dict.fromkeys(check for check, _ in alike))
        where = listed(names, _MOST_CHECKS)
        if len(names) > 1:
            where = f"{len(names)} of {len(checks)} checks ({where})"
        (cause,) = state.merged(each for _, each in alike)
        yield f"In {where}, {cause.clause()}."


def limits(cases: Iterable[Case]) -> Counter[str]:
    """Count the metrics with a value that kept their limits, missed them, or have none."""
    return Counter(
        "free" if metric.lower is None and metric.upper is None else "missed" if metric.missed else
        "kept"
        for case in cases
        for metric in case.metrics.values()
        if metric.value is not None
    )  # fmt: skip


def result_caveats(
    cases: Sequence[Case],
    documents: Sequence[ResultDocument],
    checks: int,
    skipped: int,
) -> Iterator[str]:
    """Yield a sentence for each caveat.

    :param checks: the number of checks.
    :param skipped: the number of checks that did not run.
    """
    if any(document["clock"] == "simulated" for document in documents):
        yield "It is of a simulated node and says nothing about a machine."
    if documents and not any(document["series"] for document in documents):
        yield "No series was measured."
    yield from _other_traffic(documents)
    hosts = (document["host"] for document in documents if document["clock"] == "measured")
    yield from islice(filter(None, map(settings.numa_balancing, hosts)), 1)
    counted = limits(cases)
    metrics = counted.total()
    if metrics and counted["free"] == metrics:
        yield f"None of {count(metrics, 'metric')} has a limit, so its speed is not judged."
    elif counted["free"]:
        yield (
            f"{metrics - counted['free']} of {count(metrics, 'metric')} have a limit; the others "
            "are recorded but not judged."
        )
    elif not metrics and any(document["series"] for document in documents):
        yield "No metric was recorded, so its speed is not judged."
    if skipped:
        yield f"{skipped} of {count(checks, 'check')} {'was' if skipped == 1 else 'were'} skipped."


def _other_traffic(documents: Iterable[ResultDocument]) -> Iterator[str]:
    """Yield a sentence for each node that sent by other NICs, too, while a rank proved its NIC."""
    others = grouped(
        (rank["host"], nic["name"])
        for document in documents
        for rank in document.get("ranks") or ()
        if (network := rank.get("network")) is not None
        for nic in network["nics"][1:]
    )
    for host, names in others.items():
        yield (
            f"Node {host} sent by {' and '.join(dict.fromkeys(names))}, too, while it was proved "
            "what messages leave it by: storage or another job uses the same network."
        )
