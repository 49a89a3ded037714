"""The verdict on one node: its reasons and its caveats, from the checks that ran on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from fabricheck.core import nodelists
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import Clock
from fabricheck.judge import coverage, set_times
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict import (
    caveats,
    counters,
    deviations,
    diagnosing,
    grounds,
    model,
    provenance,
)
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.outcomes import (
    CheckOutcome,
    Key,
    choice_of,
    joint_outcomes,
    why_skipped,
)
from fabricheck.judge.verdict.rules import Finding, finding, in_order, worst
from fabricheck.judge.verdict.subjects import UNPLACED, JudgedNode, NodeResults
from fabricheck.node import NodeModel
from fabricheck.references import calibrated
from fabricheck.references.published import folder
from fabricheck.results import state
from fabricheck.results.causes import Errors, sentence_of
from fabricheck.results.observed import node_of
from fabricheck.results.reading import Results
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.results.session_checks import CHECKS_FILE, PartitionChecks
from fabricheck.schedulers import table
from fabricheck.site import partitions, this_machine
from fabricheck.site.sets import Choice, known

#: The rule of checks that options left out, which a failed node needs no more.
LEFT_OUT = "left-out-checks"


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
        choice = choice_of(source.choice for source in results.sources)
        self.choice = choice if set_tag is None else Choice(choice.words, set_tag)
        #: The sets that must be complete: those that a session ran as a whole.
        whole = [source.choice.set for source in results.sources] if set_tag is None else [set_tag]
        self.sets = list(dict.fromkeys(name for name in whole if name is not None))
        recorded: dict[str, PartitionChecks] = {}
        for source in results.sources:
            recorded |= source.recorded
        self.recorded = {
            where: recorded[where] for where in results.partitions if where in recorded
        }
        self.outcomes = joint_outcomes(results.attempts)
        self.documents = [
            attempt.document for attempt in results.attempts if attempt.document is not None
        ]

    def verdict(self) -> model.NodeVerdict:
        """Return the verdict."""
        missing = list(self._missing())
        diagnosis = diagnosing.node_diagnosis(self.outcomes, self.recorded)
        reasons = self._reasons(missing, diagnosis)
        measured = [] if self.subject.simulated is not None else self.results.partitions
        start, duration = provenance.times(self.results)
        skipped = [outcome for outcome in self.outcomes.values() if outcome.skipped]
        status = worst(reason.status for reason in reasons)
        return model.NodeVerdict(
            node=self.subject.node,
            scheduled=self.results.scheduled or self.subject.node in self.all_results.requested,
            reached_by=self._reached_by,
            status=status,
            gpus=self._gpus,
            accepted=status == "PASS" and self._gpus == "measured" and not self._only_a_load,
            uncalibrated=self.uncalibrated,
            provisional=model.provisional_partitions(reasons, measured, self.uncalibrated),
            clock=self._clock(),
            simulated=self._simulated(),
            partitions=self.results.partitions,
            set=_label(self.choice) if self.outcomes else "",
            start=start,
            duration_s=duration,
            reasons=reasons,
            caveats=list(self._caveats(len(skipped), missing)),
            settings=list(caveats.settings(self.results.attempts)),
            diagnosis=diagnosis,
            checks=self._counts(skipped, missing),
            devices=provenance.devices(self.documents),
            versions=provenance.versions(self.documents, self.results.sources),
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

    @property
    def _only_a_load(self) -> bool:
        """Whether all that ran are sets of a node that no set of a node has, such as a soak."""
        apart = all(known()[name].apart for name in self.sets)
        return apart and bool(self.sets) and not self.several

    @property
    def _reached_by(self) -> str:
        """The row of the table of ways to reach nodes."""
        requested = self.all_results.reached_by.get(self.subject.node)
        if requested is not None:
            return requested
        for document in self.documents:
            row = table.around(document["environment"])
            if row is not None:
                return row.name
        return table.SLURM.name

    def _reasons(self, missing: Sequence[str], diagnosis: Diagnosis | None) -> list[model.Reason]:
        """Return the reasons against PASS, the worst first, with the diagnosis among them."""
        # Within a status, the cause that ended the session comes before the checks that it ended.
        refused = [deviation for deviation, accepted in self._deviations if not accepted]
        left_out = [deviation for deviation in refused if deviation.rule.name == LEFT_OUT]
        others = [deviation for deviation in refused if deviation.rule.name != LEFT_OUT]
        of_node = [
            *self._of_node(missing),
            *self._of_errors_between(),
            *self._of_lines_together(),
        ]
        findings = in_order([*of_node, *self._of_checks(), *others])
        if not findings:
            # What keeps a node from being accepted of which nothing else is wrong.
            findings = [*left_out, *self._of_gpus()]
        return [
            model.Reason(
                status=reason.status,
                rule=reason.rule.name,
                sentence=reason.with_check,
                check=reason.check,
                metric=reason.metric,
                partition=reason.partition,
                component=reason.component,
                next_step=NEXT_STEPS[reason.rule.name],
                stands_for=reason.stands_for,
            )
            for reason in diagnosing.with_diagnosis(findings, diagnosis)
        ]

    def _counts(self, skipped: Sequence[CheckOutcome], missing: list[str]) -> model.Checks:
        outcomes = self.outcomes.values()
        return model.Checks(
            passed=sum(not outcome.skipped and not outcome.reasons for outcome in outcomes),
            failed=sum(bool(outcome.reasons) for outcome in outcomes),
            skipped=[
                model.SkippedCheck(check=outcome.check, why=why_skipped(outcome))
                for outcome in skipped
            ],
            missing=missing,
        )

    def _clock(self) -> Clock | None:
        if self.subject.simulated is not None:
            return "simulated"
        if self.documents or self.named:
            return "measured"
        # Without documents: whether a check ran where the site says that hardware is measured.
        for attempt in self.results.attempts:
            case = attempt.case
            if case is None or not partitions.known(case.where):
                continue
            if case.values or case.exit_code is not None:
                return "measured"
        return None

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
        name = overlay = None
        for document in self.documents:
            # The last document counts.
            node = document.get("node")
            if node is not None:
                name = node["name"]
                overlay = node["overlay"]["name"] if node["overlay"] else None
        return model.SimulatedNode(
            partition=self.subject.simulated, node_model=name, overlay=overlay
        )

    def _of_node(self, missing: Sequence[str]) -> Iterator[Finding]:
        node = self.subject.node
        yield from self.named
        problems = [
            problem for problem in self.all_results.problems if (problem.node or UNPLACED) == node
        ]
        for problem in problems:
            yield finding("report", problem.sentence)
        explained_by_problems = node == UNPLACED and bool(problems)
        if not self.results.attempts and not self.named and not explained_by_problems:
            lacking = f"There is no result of {self.title}"
            yield finding("silent", f"{lacking}{_as_requested(self._requested())}.")
        else:
            yield from self._of_its_end()
        if self.results.attempts:
            for part in self.silent_in:
                lacking = f"There is no result of {self.title} in {part.archive or part.home}"
                yield finding("silent", f"{lacking}{_as_requested(part.requested[node])}.")
        for source in self.results.sources:
            if source.killed:
                yield finding(
                    "session",
                    f"Session {source.name} on {node} has no run report: it was killed, or is "
                    "still running.",
                )
            if source.record_lost and not self.several:
                yield finding(
                    "report",
                    f"The record of the checks of session {source.name} ({CHECKS_FILE}) is lost or "
                    "damaged, so what it left out or changed is unknown.",
                )
        if missing:
            should = f"missing that should have run on {node}: {listed(missing)}."
            yield finding("missing", f"{count(len(missing), 'check')} {should}")

    def _of_its_end(self) -> Iterator[Finding]:
        """Yield how the session of a requested node ended, where no check tells it."""
        requested = self._requested()
        if requested is None:
            return
        if requested.how_ended is not None:
            yield finding("session", requested.how_ended)
            return
        # On this node, or on a node that it simulates.
        sessions = [source.reported for source in self.results.sources]
        failed_anywhere = any(session is None or session.failed for session in sessions)
        if requested.status and not failed_anywhere:
            yield finding(
                "session",
                f"The session on {self.title} ended with exit status {requested.status}, but no "
                "check of it failed: its log states the reason.",
            )

    @cached_property
    def _errors_between(self) -> list[Errors]:
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
                yield counters.of_errors(errors)

    def _of_lines_together(self) -> Iterator[Finding]:
        """Yield the lines on hardware of which each program of a session met too few."""
        if self.several:
            return
        for _, attempts in self.results.by_source:
            documents = [each.document for each in attempts if each.document is not None]
            alone = {logged.key for document in documents for logged in state.logged(document)}
            for logged in state.logged(*documents):
                if logged.kind == "hardware" and logged.key not in alone:
                    yield counters.of_logged(logged)

    def _of_checks(self) -> Iterator[Finding]:
        """Yield the reasons against PASS of the checks, except missing ones."""
        if not self.outcomes:
            return
        for (where, _, _), outcome in self.outcomes.items():
            for reason in outcome.reasons:
                yield replace(reason, partition=where) if reason.check and where else reason
        if self.sets:
            for where, recorded in self.recorded.items():
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
            metrics = enumerated(names, last="or")
            sentence = f"No value of {metrics} was compared with a limit on {where}."
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
        nodes = (
            requested
            for name, requested in self.all_results.requested.items()
            if name == self.subject.node or (self.several and nodelists.is_several(name))
        )
        return next(nodes, None)

    def _missing(self) -> Iterator[str]:
        # The record has checks by class, the sessions by check name.
        ran = {(where, check.split()[0]) for where, _, check in self.outcomes}
        in_sets = [
            (where, check)
            for where, recorded in self.recorded.items()
            for name in self.sets
            for check in recorded.of_set(name)
        ]
        absent = [check for where, check in in_sets if (where, check) not in ran]
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
        """Yield what a reader should know that no reason against PASS states."""
        yield from self._caveats_of_machine()
        if self.outcomes:
            cases = [attempt.case for attempt in self.results.attempts if attempt.case is not None]
            yield from caveats.result_caveats(cases, self.documents, len(self.outcomes), skipped)
        yield from self._caveats_of_set(missing)
        for deviation, accepted in self._deviations:
            if accepted:
                yield deviation.sentence
        if self.sets:
            for where in self.results.partitions:
                yield from self._caveats_of_partition(where)
        if this_machine.NAME in self.results.partitions:
            node = self._node_model(this_machine.NAME)
            yield from coverage.not_judged(node)
            yield from caveats.missing_limits(self.documents, node)
        yield from caveats.state_caveats(self.results.attempts)
        for errors in self._errors_between:
            if errors.weighs != "uncorrected":
                yield sentence_of(errors)
        yield from self._caveats_of_times()
        for outcome in self.outcomes.values():
            yield from outcome.notes

    def _caveats_of_machine(self) -> Iterator[str]:
        """Yield that nothing of a machine was measured, or no GPU of it."""
        if self.subject.simulated is not None:
            yield "This result comes from a simulated node and says nothing about a machine."
        elif self._gpus == "none":
            yield "No GPU was measured, so a PASS accepts no node."

    def _caveats_of_set(self, missing: Sequence[str]) -> Iterator[str]:
        """Yield that it is unknown which checks should have run, where no other reason says so."""
        if self.sets or missing or not self.outcomes:
            return
        if any(deviation.rule.name == LEFT_OUT for deviation, _ in self._deviations):
            return
        words = self.choice.set or " ".join(self.choice.words)
        selected = f" ({words} was selected)" if words else ""
        yield f"It is unknown which set was to run{selected}, so missing checks go unnoticed."

    def _caveats_of_partition(self, where: str) -> Iterator[str]:
        """Yield which checks and devices of a partition are unknown."""
        if where not in self.recorded:
            yield f"The checks that {where} should have are unknown: no session recorded them."
        if not partitions.known(where):
            _, why = partitions.read_site(where.partition(":")[0])
            yield f"The devices that {where} should have are unknown. {why}"

    def _caveats_of_times(self) -> Iterator[str]:
        """Yield which sets took longer than they should."""
        for source in self.results.sources:
            if not source.reported:
                continue
            for time in set_times.took(source.session):
                if time.over and time.where in self.results.partitions:
                    yield time.sentence


def _label(choice: Choice) -> str:
    return choice.set or " ".join(choice.words) or "unknown"


def _as_requested(requested: RequestedNode | None) -> str:
    """Return the known facts of a requested node without a result, as the rest of a sentence."""
    if requested is None:
        return ""
    if requested.how_ended:
        return f": {requested.how_ended.rstrip('.')}"
    if requested.state:
        return f", which the scheduler called {requested.reported} when the session began"
    return ""
