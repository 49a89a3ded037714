"""Caveats of a verdict: what a reader should know that no reason against PASS states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from fabricheck.core import amounts
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import ENV_NODE_NAME
from fabricheck.judge import coverage, set_times
from fabricheck.judge.verdict import deviations, grounds
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.node_facts import NodeFacts
from fabricheck.node import NodeModel, products
from fabricheck.results import settings as session_settings
from fabricheck.results.causes import merged, sentence_of
from fabricheck.results.model import ResultDocument, node_name
from fabricheck.results.series import has_runtime
from fabricheck.results.session import Case
from fabricheck.site import partitions, this_machine

#: The number of checks that a caveat names.
_MOST_CHECKS = 3

#: The programs whose arrays are bounded by time on a machine without GPUs.
_OF_HOST_ARRAYS = ("stream", "memcpy")

#: The number of variables that a caveat names.
_MOST_VARIABLES = 30

#: The host name that Docker and Podman give a container: the first digits of its id.
_NAME_OF_CONTAINER = re.compile(r"[0-9a-f]{12}")


def node_caveats(facts: NodeFacts) -> Iterator[str]:
    """Yield what a reader should know of a node that no reason against PASS states."""
    yield from _of_machine(facts)
    if facts.outcomes:
        cases = [attempt.case for attempt in facts.results.attempts if attempt.case is not None]
        checks, skipped = len(facts.outcomes), len(facts.skipped)
        yield from result_caveats(cases, facts.documents, checks, skipped)
    yield from _of_set(facts)
    for deviation, accepted in facts.deviations:
        if accepted:
            yield deviation.sentence
    if facts.sets:
        for where in facts.results.partitions:
            yield from _of_partition(facts, where)
    if this_machine.NAME in facts.results.partitions:
        node = facts.node_model(this_machine.NAME)
        yield from coverage.not_judged(node)
        yield from missing_limits(facts.documents, node)
    yield from state_caveats(facts.results.attempts)
    for errors in facts.errors_between:
        if errors.weighs != "uncorrected":
            yield sentence_of(errors)
    yield from _of_times(facts)
    for outcome in facts.outcomes.values():
        yield from outcome.notes


def _of_machine(facts: NodeFacts) -> Iterator[str]:
    """Yield that nothing of a machine was measured, or no GPU of it."""
    if facts.simulated is not None:
        yield "This result comes from a simulated node and says nothing about a machine."
    elif facts.gpus == "none":
        yield "No GPU was measured, so a PASS accepts no node."


def _of_set(facts: NodeFacts) -> Iterator[str]:
    """Yield that it is unknown which checks should have run, where no other reason says so."""
    if facts.sets or facts.missing or not facts.outcomes:
        return
    if any(deviation.rule.name == deviations.LEFT_OUT for deviation, _ in facts.deviations):
        return
    words = facts.choice.set or " ".join(facts.choice.words)
    selected = f" ({words} was selected)" if words else ""
    yield f"It is unknown which set was to run{selected}, so missing checks go unnoticed."


def _of_partition(facts: NodeFacts, where: str) -> Iterator[str]:
    """Yield which checks and devices of a partition are unknown."""
    if where not in facts.recorded:
        yield f"The checks that {where} should have are unknown: no session recorded them."
    if not partitions.known(where):
        _, why = partitions.read_site(where.partition(":")[0])
        yield f"The devices that {where} should have are unknown. {why}"


def _of_times(facts: NodeFacts) -> Iterator[str]:
    """Yield which sets took longer than they should."""
    for source in facts.results.sources:
        if not source.reported:
            continue
        for time in set_times.took(source.session):
            if time.over and time.where in facts.results.partitions:
                yield time.sentence


def missing_limits(documents: Iterable[ResultDocument], node: NodeModel | None) -> Iterator[str]:
    """Yield a sentence for each kind of device whose product is unknown, and so its limits."""
    has_peak = node is not None and node.devices[0].memory_peak_gbs is not None
    of_gpus = [
        document for document in documents if grounds.has_gpus(document) and has_runtime(document)
    ]
    devices = [device for document in of_gpus for device in document["devices"]]
    sentences = dict.fromkeys(products.missing_limits(device, has_peak) for device in devices)
    yield from filter(None, sentences)


def settings(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Yield a sentence on fewer cores than the node has, and one on the variables that no check
    set where limits were missed.
    """
    yield from dict.fromkeys(
        attempt.cores.sentence for attempt in attempts if attempt.cores is not None
    )
    checks_of = grouped(
        (variable, attempt.check) for attempt in attempts for variable in attempt.not_intended
    )
    if checks_of:
        checks = dict.fromkeys(check for names in checks_of.values() for check in names)
        yield (
            "Set in the job and by no check or site file, where limits were missed "
            f"({listed(checks, _MOST_CHECKS)}): {listed(checks_of, _MOST_VARIABLES)}."
        )


def state_caveats(attempts: Iterable[Attempt]) -> Iterator[str]:
    """Yield one sentence for each cause that no reason of the checks states."""
    known = [
        attempt
        for attempt in attempts
        if attempt.document is not None and "state" in attempt.document
    ]
    checks = {attempt.check for attempt in known}
    groups = grouped(
        (cause.key, (attempt.check, cause)) for attempt in known for cause in attempt.caveats
    )
    for alike in groups.values():
        names = list(dict.fromkeys(check for check, _ in alike))
        where = listed(names, _MOST_CHECKS)
        if len(names) > 1:
            where = f"{len(names)} of {len(checks)} checks ({where})"
        (cause,) = merged(each for _, each in alike)
        yield f"In {where}, {cause.clause()}."


def limits(cases: Iterable[Case]) -> Counter[str]:
    """Count the metrics with a finite value that kept their limits, missed them, or have none."""
    counts: Counter[str] = Counter()
    for metric in chain.from_iterable(case.metrics.values() for case in cases):
        if not metric.is_finite:
            continue
        if not metric.has_limit:
            counts["free"] += 1
        elif metric.missed:
            counts["missed"] += 1
        else:
            counts["kept"] += 1
    return counts


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
    if documents and not any(document["series"] for document in documents):
        yield "No series was measured."
    yield from _other_traffic(documents)
    hosts = (document["host"] for document in documents if document["clock"] == "measured")
    yield from islice(filter(None, map(session_settings.numa_balancing, hosts)), 1)
    yield from dict.fromkeys(filter(None, map(_in_caches, documents)))
    yield from dict.fromkeys(filter(None, map(_named_by_container, documents)))
    yield from dict.fromkeys(filter(None, map(_named_by_variable, documents)))
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


def _in_caches(document: ResultDocument) -> str | None:
    """Return a sentence where caches may hold the largest arrays of virtual devices."""
    program, host = document["program"], document["host"]
    if program["runtime"] != "host" or program["name"] not in _OF_HOST_ARRAYS:
        return None
    largest = max((series["bytes"] for series in document["series"]), default=0)
    held = [series["bytes"] for series in document["series"] if series["regime"] == "cache"]
    if largest not in held:
        return None
    return (
        f"Node {host['hostname']}: arrays of {amounts.size(largest)} each are together less than "
        f"four times the caches of {amounts.size(host['last_level_cache_bytes'])}, since larger "
        "ones would take minutes; such values may be the speed of caches, not of memory."
    )


def _named_by_container(document: ResultDocument) -> str | None:
    """Return a sentence where a node has the name of a container: each session has another one."""
    host = document["host"]
    name = node_name(host)
    # A name that the scheduler gave, or that is the machine's, is none of a container.
    if name != host["hostname"] or host.get("own_name") is False:
        return None
    if host.get("container") == "kubernetes" and host.get("own_name"):
        return (
            f"Node {name} has the name of a pod, so that no other session belongs to the same "
            "node: give the pod the network and the name of its machine (hostNetwork: true)."
        )
    if _NAME_OF_CONTAINER.fullmatch(name) is None:
        return None
    return (
        f"Node {name} has the name of a container, so that no other session belongs to the same "
        'node: start the container with --hostname "$(uname -n)".'
    )


def _named_by_variable(document: ResultDocument) -> str | None:
    """Return a sentence where a variable names a machine otherwise than it names itself.

    Sessions by ssh and Flux set the variable; left set, it would accept another node.
    """
    host = document["host"]
    name = document["environment"].get(ENV_NODE_NAME)
    if name is None or document["clock"] != "measured" or host.get("container"):
        return None
    hostname = host["hostname"]
    if name.partition(".")[0].lower() == hostname.partition(".")[0].lower():
        return None
    return (
        f"Node {name} calls itself {hostname}: {ENV_NODE_NAME} is set to the name that stands here."
    )


def _other_traffic(documents: Iterable[ResultDocument]) -> Iterator[str]:
    """Yield a sentence for each node that also sent by other NICs than a rank proved."""
    others: dict[str, dict[str, None]] = {}
    for document in documents:
        for rank in document.get("ranks") or ():
            network = rank.get("network")
            if network is not None:
                names = dict.fromkeys(nic["name"] for nic in network["nics"][1:])
                if names:
                    others.setdefault(rank["host"], {}).update(names)
    for host, names in others.items():
        yield (
            f"Node {host} also sent by {enumerated(names)} while it was checked which NIC its "
            "messages leave by: storage or another job uses the same network."
        )
