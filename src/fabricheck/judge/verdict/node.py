"""The verdict on one node: its reasons, its caveats and its diagnosis."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fabricheck.core import nodelists
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge import coverage, set_times
from fabricheck.judge.diagnosis.model import Degraded, Diagnosis
from fabricheck.judge.verdict import checks, deviations, grounds, model
from fabricheck.judge.verdict.checks import Attempt, CheckOutcome, Key
from fabricheck.judge.verdict.rules import Finding, finding, in_order, worst
from fabricheck.node import NodeModel, products
from fabricheck.references import calibrated
from fabricheck.references.published import folder
from fabricheck.results import settings, state
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import node_of
from fabricheck.results.reading import Results, Source
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.results.series import has_runtime
from fabricheck.results.session import Case, PartitionChecks
from fabricheck.site import partitions, this_machine
from fabricheck.site.sets import Choice
from fabricheck.site.software import FOLDER

if TYPE_CHECKING:
    from fabricheck.judge.diagnosis.diagnose import Miss, Session

#: The number of checks that a caveat names.
_MOST_CHECKS = 3

#: The number of variables that a caveat names.
_MOST_VARIABLES = 8

#: The kinds of components that are links, and that a driver counts errors of.
_LINK_KINDS = ("link", "link_gone", "link_turns", "host_link")

#: The rule of checks that options left out, which a failed node needs no more.
LEFT_OUT = "left-out-checks"

#: The name of an unknown node, as for a job that was never placed.
UNPLACED = "(no node)"


@dataclass(frozen=True)
class JudgedNode:
    """The subject of a verdict: a node, a simulated node on it, or nodes that a check joined.

    node: its name, or the host list of several, whose results blame none of them.
    simulated: the partition that simulates; None for the machine itself, whose partitions all
    measure the same hardware.
    """

    node: str
    simulated: str | None = None


@dataclass
class NodeResults:
    """The results of one subject.

    by_source: those of each session, or of documents outside any session. scheduled: whether a
    scheduler named the node.
    """

    by_source: list[tuple[Source, list[Attempt]]] = field(default_factory=list)
    scheduled: bool = False

    @cached_property
    def attempts(self) -> list[Attempt]:
        """All attempts, in the order in which their sessions began."""
        return sorted(
            (attempt for _, attempts in self.by_source for attempt in attempts),
            key=lambda attempt: attempt.began,
        )

    @property
    def sources(self) -> list[Source]:
        """The sessions, and the sources of documents outside any session."""
        return [source for source, _ in self.by_source]

    @property
    def partitions(self) -> list[str]:
        """The partitions of its cases, in their order."""
        return list(
            dict.fromkeys(
                attempt.case.where for attempt in self.attempts if attempt.case is not None
            )
        )


class NodeJudgement:
    """The judgement of one node."""

    def __init__(
        self,
        subject: JudgedNode,
        results: NodeResults,
        all_results: Results,
        ran_in: Mapping[tuple[str, bool], Mapping[Key, None]],
        silent_in: Sequence[Results],
        set_tag: str | None,
        named: Sequence[Finding],
    ) -> None:
        self.subject, self.results, self.all_results = subject, results, all_results
        self.ran_in, self.silent_in, self.named = ran_in, silent_in, named
        self.several = nodelists.is_several(subject.node)
        self.title = f"{'the' if self.several else 'node'} {nodelists.titled(subject.node)}"
        choice = checks.choice_of(source.choice for source in results.sources)
        self.choice = choice if set_tag is None else Choice(choice.words, set_tag)
        #: The sets that must be complete: those that a session ran as a whole.
        whole = [source.choice.set for source in results.sources] if set_tag is None else [set_tag]
        self.sets = list(dict.fromkeys(name for name in whole if name is not None))
        recorded = {
            where: it for source in results.sources for where, it in source.recorded.items()
        }
        self.recorded = {
            where: recorded[where] for where in results.partitions if where in recorded
        }
        self.outcomes = checks.outcomes(results.attempts)
        self.documents = [
            attempt.document for attempt in results.attempts if attempt.document is not None
        ]

    def verdict(self) -> model.NodeVerdict:
        """Return the verdict."""
        missing = list(self._missing())
        diagnosis = _node_diagnosis(self.outcomes, self.recorded)
        # Within a status, the cause that ended the session comes before the checks that it ended.
        refused = [deviation for deviation, accepted in self._deviations if not accepted]
        left_out = [deviation for deviation in refused if deviation.rule.name == LEFT_OUT]
        others = [deviation for deviation in refused if deviation.rule.name != LEFT_OUT]
        of_node = [*self._of_node(missing), *self._of_errors_between()]
        found = in_order([*of_node, *self._of_checks(), *others])
        if not found:
            # What keeps a node from being accepted of which nothing else is wrong.
            found = [*left_out, *self._of_gpus()]
        reasons = [
            model.Reason(
                status=reason.status,
                rule=reason.rule.name,
                sentence=reason.with_check,
                check=reason.check,
                metric=reason.metric,
                partition=reason.partition,
                stands_for=reason.stands_for,
            )
            for reason in _with_diagnosis(found, diagnosis)
        ]
        measured = [] if self.subject.simulated is not None else self.results.partitions
        start, duration = _times(self.results)
        skipped = [outcome for outcome in self.outcomes.values() if outcome.skipped]
        status = worst(reason.status for reason in reasons)
        return model.NodeVerdict(
            node=self.subject.node,
            scheduled=self.results.scheduled or self.subject.node in self.all_results.requested,
            status=status,
            gpus=self._gpus,
            accepted=status == "PASS" and self._gpus == "measured",
            uncalibrated=self.uncalibrated,
            provisional=model.provisional_partitions(reasons, measured, self.uncalibrated),
            kind=self._kind(),
            simulated=self._simulated(),
            partitions=self.results.partitions,
            set=_label(self.choice) if self.outcomes else "",
            start=start,
            duration_s=duration,
            reasons=reasons,
            caveats=list(self._caveats(len(skipped), missing)),
            settings=list(_settings(self.results.attempts)),
            diagnosis=diagnosis,
            checks=model.Checks(
                passed=sum(
                    not outcome.skipped and not outcome.reasons
                    for outcome in self.outcomes.values()
                ),
                failed=sum(bool(outcome.reasons) for outcome in self.outcomes.values()),
                skipped=[
                    model.SkippedCheck(check=outcome.check, why=checks.why_skipped(outcome))
                    for outcome in skipped
                ],
                missing=missing,
            ),
            devices=_devices(self.documents),
            versions=_versions(self.documents, self.results.sources),
            sessions=[
                model.RanIn(
                    id=source.name or "documents",
                    uuid=source.session.uuid or None,
                    results=str(source.results),
                )
                for source in self.results.sources
            ],
            faults_injected=sorted(
                {fault for document in self.documents for fault in document["faults_injected"]}
            ),
        )

    def _kind(self) -> model.Kind:
        if self.subject.simulated is not None:
            return "simulated"
        # Without documents: whether a check ran where the site says that hardware is measured.
        measured = (
            self.documents
            or self.named
            or any(
                (attempt.case.values or attempt.case.exit_code is not None)
                and partitions.known(attempt.case.where)
                for attempt in self.results.attempts
                if attempt.case is not None
            )
        )
        return "measured" if measured else "nothing"

    def _node_model(self, where: str) -> NodeModel | None:
        cases = (attempt.case for attempt in self.results.attempts)
        case = next((case for case in cases if case and case.where == where), None)
        return node_of(where, self.documents, case)

    @cached_property
    def uncalibrated(self) -> list[str]:
        """The partitions that measured and have no calibration of their own."""
        return [
            where
            for where in self.results.partitions
            if not calibrated.has_own(folder(), where, self._node_model(where))
        ]

    def _simulated(self) -> model.SimulatedNode | None:
        if self.subject.simulated is None:
            return None
        nodes = [document.get("node") for document in reversed(self.documents)]
        node = next(filter(None, nodes), None)
        overlay = node["overlay"] if node else None
        return model.SimulatedNode(
            partition=self.subject.simulated,
            node_model=node["name"] if node else None,
            overlay=overlay["name"] if overlay else None,
        )

    def _of_node(self, missing: Sequence[str]) -> Iterator[Finding]:
        node = self.subject.node
        yield from self.named
        problems = [
            problem for problem in self.all_results.problems if (problem.node or UNPLACED) == node
        ]
        for problem in problems:
            yield finding("report", problem.sentence)
        requested = self._requested()
        # On this node, or on a node that it simulates.
        sessions = [source.reported for source in self.results.sources]
        failed_anywhere = any(session is None or session.failed for session in sessions)
        if not (self.results.attempts or self.named or (problems and node == UNPLACED)):
            lacking = f"There is no result of {self.title}"
            yield finding("silent", f"{lacking}{_as_requested(requested)}.")
        elif requested is not None and requested.said is not None:
            yield finding("session", requested.said)
        elif requested is not None and requested.status and not failed_anywhere:
            yield finding(
                "session",
                f"The session on {self.title} ended with exit status {requested.status}, but no "
                "check of it failed: its log states the reason.",
            )
        for part in self.silent_in if self.results.attempts else ():
            lacking = f"There is no result of {self.title} in {part.archive or part.home}"
            yield finding("silent", f"{lacking}{_as_requested(part.requested[node])}.")
        for source in self.results.sources:
            if source.killed:
                yield finding(
                    "session",
                    f"Session {source.name} on {node} has no run report: it was killed, or is "
                    "still running.",
                )
        if missing:
            should = f"missing that should have run on {node}: {listed(missing)}."
            yield finding("missing", f"{count(len(missing), 'check')} {should}")

    @cached_property
    def _errors_between(self) -> list[state.Errors]:
        """The new errors of devices between the programs of a session."""
        if self.several:
            return []  # each of the nodes has a verdict
        return [
            errors
            for _, attempts in self.results.by_source
            for errors in state.errors_between(
                attempt.document for attempt in attempts if attempt.document is not None
            )
        ]

    def _of_errors_between(self) -> Iterator[Finding]:
        """Yield the uncorrected errors that came while no program ran."""
        for errors in self._errors_between:
            if errors.weighs == "uncorrected":
                rule = "link-errors" if errors.of_links else "memory-errors"
                yield finding(rule, state.sentence(errors))

    def _of_checks(self) -> Iterator[Finding]:
        """Yield the reasons against PASS of the checks, except missing ones."""
        if not self.outcomes:
            return
        for (where, _, _), outcome in self.outcomes.items():
            for reason in outcome.reasons:
                yield replace(reason, partition=where) if reason.check and where else reason
        for where, recorded in self.recorded.items() if self.sets else ():
            for sentence in recorded.losses(where):
                yield finding("missing", sentence)
        for where, recorded in self.recorded.items():
            for sentence in recorded.valueless(where):
                yield finding("no-value", sentence)
        if all(outcome.skipped for outcome in self.outcomes.values()):
            yield finding("nothing-passed", "No check passed or failed.")

    @cached_property
    def _gpus(self) -> model.Gpus:
        if self.subject.simulated is not None:
            return "none"
        if any(grounds.has_gpus(document) for document in self.documents):
            return "measured"
        meant = any(map(grounds.is_for_gpus, self.documents))
        stated = any(map(partitions.states_gpus, self.results.partitions))
        return "not-measured" if meant or stated or self._expected_gpus else "none"

    @cached_property
    def _expected_gpus(self) -> str | None:
        """What says that the machine has GPUs, although none was measured."""
        return None if self.several else grounds.expected_gpus(self.documents)

    def _of_gpus(self) -> Iterator[Finding]:
        """Yield the reasons against accepting a machine of whose GPUs nothing was judged."""
        if self.subject.simulated is not None or self.several or not self.outcomes:
            return
        if self._gpus == "not-measured" and self._expected_gpus is not None:
            sentence = f"No GPU of {self.title} was measured, but {self._expected_gpus}."
            yield finding("nothing-judged", sentence)
        for where in self.results.partitions:
            if self._measures_gpus(where):
                yield from self._unjudged(where)

    def _measures_gpus(self, where: str) -> bool:
        documents = (
            attempt.document
            for attempt in self.results.attempts
            if attempt.case is not None and attempt.case.where == where
        )
        measured = any(grounds.has_gpus(document) for document in documents if document is not None)
        return measured or partitions.states_gpus(where)

    def _unjudged(self, where: str) -> Iterator[Finding]:
        lacking = grounds.unjudged(
            self._outcomes_on(where), self.recorded.get(where), self.sets, self._node_model(where)
        )
        names = [ground.name for ground in lacking]
        if names:
            every = enumerated(names, last="or")
            sentence = f"No value of {every} was compared with a limit on {where}."
            yield replace(finding("nothing-judged", sentence), partition=where)

    @cached_property
    def _deviations(self) -> list[tuple[Finding, bool]]:
        """How its sessions deviated from what their commit states, and what the site accepts."""
        if self.several or not self.outcomes:
            return []
        partial = [] if self.sets else [source.choice for source in self.results.sources]
        return [
            deviation
            for where in self.results.partitions
            for deviation in deviations.of_partition(
                where, self.results.sources, self._outcomes_on(where), partial
            )
        ]

    def _outcomes_on(self, where: str) -> list[CheckOutcome]:
        return [outcome for key, outcome in self.outcomes.items() if key[0] == where]

    def _requested(self) -> RequestedNode | None:
        """Return how the node was requested; of several nodes how the network of their job was."""
        found = (
            requested
            for name, requested in self.all_results.requested.items()
            if name == self.subject.node or (self.several and nodelists.is_several(name))
        )
        return next(found, None)

    def _missing(self) -> Iterator[str]:
        # The record has checks by class, the sessions by check name.
        ran = {(where, check.split()[0]) for where, _, check in self.outcomes}
        absent = [
            check
            for where, recorded in self.recorded.items()
            for name in self.sets
            for check in recorded.of_set(name)
            if (where, check) not in ran
        ]
        if self.several:
            # Other checks of the set may be of other nodes.
            here = {
                check.split()[0]
                for where in self.results.partitions
                for _, _, check in self.ran_in.get((where, True), ())
            }
            yield from dict.fromkeys(check for check in absent if check not in here)
            return
        yield from dict.fromkeys(absent)
        for where in self.results.partitions:
            for key in self.ran_in.get((where, False), ()):
                if key not in self.outcomes and key[2] not in absent:
                    yield key[2]

    def _caveats(self, skipped: int, missing: Sequence[str]) -> Iterator[str]:
        cases = [attempt.case for attempt in self.results.attempts if attempt.case is not None]
        if self.subject.simulated is not None:
            yield "This result comes from a simulated node and says nothing about a machine."
        elif self._gpus == "none":
            yield "No GPU was measured, so a PASS accepts nothing."
        if self.outcomes:
            yield from result_caveats(cases, self.documents, len(self.outcomes), skipped)
        left_out = any(deviation.rule.name == LEFT_OUT for deviation, _ in self._deviations)
        if not (self.sets or left_out or missing) and self.outcomes:
            words = self.choice.set or " ".join(self.choice.words)
            selected = f" ({words} was selected)" if words else ""
            yield f"It is unknown which set was to run{selected}, so missing checks go unnoticed."
        yield from (each.sentence for each, accepted in self._deviations if accepted)
        for where in self.results.partitions if self.sets else ():
            if where not in self.recorded:
                yield f"The checks that {where} should have are unknown: no session recorded them."
            if not partitions.known(where):
                _, why = partitions.read_site(where.partition(":")[0])
                yield f"The devices that {where} should have are unknown. {why}"
        for where in {this_machine.NAME} & {*self.results.partitions}:
            node = self._node_model(where)
            yield from coverage.not_judged(node)
            yield from _missing_limits(self.documents, node)
        yield from _state_caveats(self.results.attempts)
        for errors in self._errors_between:
            if errors.weighs != "uncorrected":
                yield state.sentence(errors)
        for source in self.results.sources:
            for time in set_times.took(source.session) if source.reported else ():
                if time.over and time.where in self.results.partitions:
                    yield time.sentence
        for outcome in self.outcomes.values():
            yield from outcome.notes


def _missing_limits(documents: Iterable[ResultDocument], node: NodeModel | None) -> Iterator[str]:
    """Yield a sentence for each kind of device whose product is unknown, and so its limits."""
    has_peak = node is not None and node.devices[0].memory_peak_gbs is not None
    found = {
        products.missing_limits(device, has_peak): None
        for document in documents
        if grounds.has_gpus(document) and has_runtime(document)
        for device in document["devices"]
    }
    yield from filter(None, found)


def _settings(attempts: Sequence[Attempt]) -> Iterator[str]:
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


def _state_caveats(attempts: Iterable[Attempt]) -> Iterator[str]:
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
    """Count the metrics with a finite value that kept their limits, missed them, or have none."""
    return Counter(
        "free" if not metric.has_limit else "missed" if metric.missed else
        "kept"
        for case in cases
        for metric in case.metrics.values()
        if metric.is_finite
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
            f"Node {host} sent by {enumerated(dict.fromkeys(names))}, too, while it was proved "
            "what messages leave it by: storage or another job uses the same network."
        )


def _label(choice: Choice) -> str:
    return choice.set or " ".join(choice.words) or "unknown"


def _as_requested(requested: RequestedNode | None) -> str:
    """Return the known facts of a requested node without a result, as the rest of a sentence."""
    if requested is None:
        return ""
    if requested.said:
        return f": {requested.said.rstrip('.')}"
    if requested.state:
        return f", which the scheduler called {requested.reported} when the session began"
    return ""


def _times(results: NodeResults) -> tuple[datetime | None, float | None]:
    """Return when the first program began, and the total seconds of all sessions on the node."""
    by_source = [
        [
            datetime.fromisoformat(text)
            for attempt in attempts
            if attempt.document is not None
            for text in (attempt.document["started"], attempt.document["finished"])
            if text is not None
        ]
        for _, attempts in results.by_source
    ]
    spans = [times for times in by_source if times]
    if not spans:
        return None, None
    start = min(map(min, spans)).astimezone(UTC)
    return start, sum((max(times) - min(times)).total_seconds() for times in spans)


def _devices(documents: Iterable[ResultDocument]) -> list[model.Device]:
    """Return every device that a document names, once each.

    Node tools know less of a device than its runtime does, so they add no devices.
    """
    found: dict[tuple[int, str | None, str | None], model.Device] = {}
    named = (device for document in documents for device in document["devices"])
    for device in sorted(named, key=lambda device: device["unique_id"] is None):
        index, address, unique_id = device["index"], device["pci_address"], device["unique_id"]
        known = {(index, address) for index, address, _ in found}
        if unique_id is not None or (index, address) not in known:
            found.setdefault(
                (index, address, unique_id),
                model.Device(
                    index=index,
                    name=products.label(device),
                    arch=device["arch"],
                    pci_address=address,
                    unique_id=unique_id,
                ),
            )
    return sorted(found.values(), key=lambda device: device.index)


def _versions(documents: Sequence[ResultDocument], sources: Sequence[Source]) -> model.Versions:
    """Return the versions behind the results, from the programs that ran on the devices."""
    ours = [document for document in documents if document["program"]["commit"] != UNKNOWN]
    versions = [document["versions"] for document in documents if has_runtime(document)]
    states = [
        device_state for document in documents for device_state in state.device_states(document)
    ]
    firmware = grouped(
        (name, version)
        for device_state in states
        for name, version in (device_state["firmware"] or {}).items()
    )
    locks = [_locks_in(source.session.outputs) for source in sources if source.reported]
    return model.Versions(
        fabricheck=_each(document["program"]["version"] for document in ours or documents),
        commits=_each(document["program"]["commit"] for document in ours),
        kernel=_each(document["host"]["kernel"] for document in documents),
        runtime=_each(found.get("runtime") for found in versions),
        rocm=_each(found.get("rocm") for found in versions),
        driver=_each(found.get("driver") for found in versions),
        vbios=_each(device_state["vbios"] for device_state in states),
        firmware={name: _each(versions) for name, versions in sorted(firmware.items())},
        mpi=_each(found.get("mpi") for found in versions),
        rccl=_each(found.get("rccl") for found in versions),
        reframe=_each(source.session.reframe for source in sources if source.reported),
        spack_locks={name: digest for of_source in locks for name, digest in of_source.items()},
    )


def _each(values: Iterable[object]) -> list[str]:
    found = {str(value) for value in values if value}
    return sorted(found - {"none", UNKNOWN} or found)


@functools.cache
def _locks_in(outputs: tuple[Path, ...]) -> dict[str, str]:
    # Cached, because hundreds of nodes of a session share the same locks.
    paths = [
        path
        for folder in reversed(outputs)  # of equal names the first folder's counts
        for path in sorted((folder / FOLDER).glob("*.spack.lock"))
    ]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


#: The rules of slow values and of differences from the node model.
OF_MISSES = frozenset(
    {"reference", "peers", "at-times", "topology", "lost", "device-in-use", "host-busy", "varies"}
)


def _node_diagnosis(
    outcomes: Mapping[Key, CheckOutcome], recorded: Mapping[str, PartitionChecks]
) -> Diagnosis | None:
    """Return the diagnosis of a node; None if nothing was missed.

    Several partitions measure the same hardware; the one with the most misses is diagnosed. Of its
    components it names no further check that cannot run there.
    """
    by_partition = grouped(
        (where, outcome.attempts[-1]) for (where, _, _), outcome in outcomes.items()
    )
    last = (attempt for attempts in by_partition.values() for attempt in attempts)
    if not any(found.rule.name in OF_MISSES for attempt in last for found in attempt.findings):
        return None  # before the files of a healthy node are read
    from fabricheck.judge.diagnosis.diagnose import diagnose  # a healthy node needs none

    sessions = [(where, _diagnosed_session(its)) for where, its in by_partition.items()]
    where, most = max(sessions, key=lambda session: len(session[1].misses))
    diagnosis = diagnose(most, node_of(where, most.documents.values(), by_partition[where][0].case))
    if diagnosis is None:
        return None
    missed = {miss.check for miss in most.misses}
    documents = [document for check, document in most.documents.items() if check in missed]
    others = [document for check, document in most.documents.items() if check not in missed]
    there = recorded[where].checks if where in recorded else None
    degraded = [
        component.model_copy(
            update={
                "causes": _causes(component, documents, others),
                "next": [check for check in component.next if there is None or check in there],
            }
        )
        for component in diagnosis.degraded
    ]
    return diagnosis.model_copy(update={"degraded": degraded})


def _diagnosed_session(attempts: Iterable[Attempt]) -> Session:
    """Return the data of a node's session from one attempt of each check."""
    from fabricheck.judge.diagnosis.diagnose import Session  # a healthy node needs none

    found = {
        attempt.check: (attempt, attempt.document)
        for attempt in attempts
        if attempt.case and attempt.document is not None
    }
    return Session(
        {check: document for check, (_, document) in found.items()},
        [metric for attempt, _ in found.values() for metric in attempt.metrics.values()],
        [miss for attempt, _ in found.values() for miss in _misses(attempt)],
    )


def _misses(attempt: Attempt) -> Iterator[Miss]:
    from fabricheck.judge.diagnosis.diagnose import Miss

    for found in attempt.findings:
        metric = attempt.metrics.get(found.metric or "")
        if found.rule.name in ("topology", "lost"):
            place = found.place or (frozenset(), None)
            yield Miss(attempt.check, found.metric or "", sentence=found.sentence, place=place)
        elif found.rule.name in OF_MISSES and metric is not None and metric.value is not None:
            series = dict(zip(metric.decisive, metric.decisive_series, strict=True))
            yield Miss(attempt.check, metric.metric, metric, series)


def _causes(
    component: Degraded, documents: Sequence[ResultDocument], others: Sequence[ResultDocument]
) -> list[str]:
    """Return the states of its devices that can be why a component is slow.

    :param documents: those of the checks that missed a limit.
    :param others: those of other checks, in which a link may have had errors, too.
    """
    devices = component.devices or None
    causes = [
        cause
        for document in documents
        for cause in (*state.disturbances(document, devices), *state.slowdowns(document, devices))
    ]
    for document in others:
        causes += state.link_errors(document, devices)
    if component.component.kind in _LINK_KINDS:
        # The first is in the sentence: what a link counts says most of it.
        causes.sort(key=lambda cause: not (isinstance(cause, state.Errors) and cause.of_links))
    return [cause.clause(address=False) for cause in state.merged(causes)]


def _with_diagnosis(reasons: Sequence[Finding], diagnosis: Diagnosis | None) -> list[Finding]:
    """Return the reasons of a node with its diagnosis before the first miss; after it if unsure.

    If nothing explains the misses, that is stated after them, unless the data is missing.
    Without a node model, the misses themselves name all that is known.
    """
    places = [place for place, reason in enumerate(reasons) if reason.rule.name in OF_MISSES]
    if diagnosis is None or diagnosis.node_model is None or not places:
        return list(reasons)
    # A device that is gone is its own explanation.
    gone = all(reasons[place].rule.name == "lost" for place in places)
    if not diagnosis.degraded and (diagnosis.lacking or gone):
        return list(reasons)
    if not diagnosis.degraded:
        place, status = places[-1] + 1, reasons[places[-1]].status
    elif diagnosis.unsure:
        place, status = places[0] + 1, reasons[places[0]].status
    else:
        place, status = places[0], reasons[places[0]].status
    found = replace(finding("diagnosis", diagnosis.sentence), status=status)
    return [*reasons[:place], found, *reasons[place:]]
