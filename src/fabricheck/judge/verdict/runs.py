"""How the checks of a node went, by check and software, and how it went in rounds over several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.evidence import ROUNDS, Run, Software
from fabricheck.judge.verdict.outcomes import Key, failures, key
from fabricheck.judge.verdict.rules import TIMES, Finding, Way, finding
from fabricheck.judge.verdict.subjects import JudgedNode, NodeResults
from fabricheck.results import state
from fabricheck.results.model import ResultDocument
from fabricheck.results.series import has_runtime, is_from_tool


def runs_of(results: NodeResults) -> list[Run]:
    """Return how the checks of a node went, by check and software, in the order of the sessions."""
    in_order = sorted(results.by_source, key=lambda source: source[1][0].began)
    runs = grouped(run for _, attempts in in_order for run in _by_software(attempts))
    return [_run(check, software, attempts) for (check, software), attempts in runs.items()]


def _by_software(
    attempts: Sequence[Attempt],
) -> Iterator[tuple[tuple[Key, Software | None], Attempt]]:
    """Yield the attempts of a session that ran, each by its check and the software."""
    documents = grouped(
        (key(attempt)[0], attempt.document) for attempt in attempts if attempt.document is not None
    )
    software = {where: _software(documents_there) for where, documents_there in documents.items()}
    for attempt in attempts:
        if not attempt.skipped:
            yield (key(attempt), software.get(key(attempt)[0])), attempt


def _run(check: Key, software: Software | None, attempts: Sequence[Attempt]) -> Run:
    passes = [number for number, attempt in enumerate(attempts) if attempt.passed]
    since = attempts[passes[-1] + 1 if passes else 0 :]
    findings = chain.from_iterable(attempt.findings for attempt in since)
    isolating = {each.way for each in findings if each.isolates}
    return Run(check, software, not since, bool(passes), failures(since), frozenset(isolating))


def _software(documents: Iterable[ResultDocument]) -> Software | None:
    """Return the software of a session in a partition; None where the driver's is unknown."""
    ran = [
        document for document in documents if has_runtime(document) and not is_from_tool(document)
    ]
    programs = [document["program"] for document in ran]
    software = Software(
        programs=_known(f"{program['version']} {program['commit']}" for program in programs),
        kernels=_known(document["host"]["kernel"] for document in ran),
        runtimes=_known(document["versions"].get("runtime") for document in ran),
        drivers=_known(document["versions"].get("driver") for document in ran),
        caps=_known(
            device["power_cap_w"] for document in ran for device in state.device_states(document)
        ),
    )
    return software if software.drivers else None


def _known(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values} - {"None", UNKNOWN}))


def from_rounds(
    nodes: Mapping[JudgedNode, NodeResults],
) -> tuple[Mapping[str, Sequence[Finding]], Mapping[str, Run]]:
    """Return by node the findings of the attributions of all documents with rounds, and how each
    node went in the rounds.

    Nodes of a simulated system are no nodes of a machine.
    """
    findings: dict[str, list[Finding]] = defaultdict(list)
    runs: dict[str, Run] = {}
    for subject, results in nodes.items():
        for attempt in results.attempts if subject.simulated is None else ():
            document = attempt.document
            if document is None:
                continue
            rounds = document.get("rounds")
            if not rounds:
                continue
            from fabricheck.judge.fabric.attributing import attribute

            for endpoint in attribute(document).named:
                findings[endpoint.node].append(finding("network", endpoint.sentence, attempt.check))
            for node in (member["node"] for member in rounds["nodes"]):
                # A node is named only after it was slow again with partners that proved good.
                failures: dict[Way, int] = {("network", None): TIMES} if node in findings else {}
                runs[node] = Run(key(attempt), ROUNDS, not failures, failures=failures)
    return findings, runs
