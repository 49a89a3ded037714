"""The facts of one subject of a verdict: what ran, what is missing, what the machine has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from fabricheck.core import nodelists
from fabricheck.core.vocabulary import Clock
from fabricheck.judge.verdict import deviations, grounds, model
from fabricheck.judge.verdict.outcomes import CheckOutcome, Key, choice_of, joint_outcomes
from fabricheck.judge.verdict.rules import Finding
from fabricheck.judge.verdict.subjects import JudgedNode, NodeResults
from fabricheck.node import NodeModel
from fabricheck.references import calibrated
from fabricheck.references.published import folder
from fabricheck.results import state
from fabricheck.results.causes import Errors
from fabricheck.results.observed import node_of
from fabricheck.results.reading import Results
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.schedulers import table
from fabricheck.site import partitions
from fabricheck.site.sets import Choice, known


class NodeFacts:
    """What is known of one subject, from which its reasons, its caveats and its verdict are made.

    :param all_results: those of all subjects.
    :param ran_in: by partition, the checks that ran on any one node, and those on several.
    :param silent_in: the parts of the results that requested the node and have no result of it.
    :param set_tag: the set that the sessions should have run; None for the set that they state.
    :param named: the findings of rounds over several nodes that name the node.
    """

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
        #: Whether the subject is nodes that a check joined.
        self.several = nodelists.is_several(subject.node)
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

    @cached_property
    def skipped(self) -> list[CheckOutcome]:
        """The checks that never ran."""
        return [outcome for outcome in self.outcomes.values() if outcome.skipped]

    def outcomes_on(self, where: str) -> list[CheckOutcome]:
        """Return the checks of a partition."""
        return [outcome for key, outcome in self.outcomes.items() if key[0] == where]

    @cached_property
    def missing(self) -> list[str]:
        """The checks that should have run on it and did not."""
        return list(self._missing())

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

    @cached_property
    def requested(self) -> RequestedNode | None:
        """How the node was requested; of several nodes how the network of their job was."""
        nodes = (
            requested
            for name, requested in self.all_results.requested.items()
            if name == self.subject.node or (self.several and nodelists.is_several(name))
        )
        return next(nodes, None)

    @cached_property
    def reached_by(self) -> str:
        """The row of the table of ways to reach nodes."""
        requested = self.all_results.reached_by.get(self.subject.node)
        if requested is not None:
            return requested
        for document in self.documents:
            row = table.around(document["environment"])
            if row is not None:
                return row.name
        return table.SLURM.name

    @cached_property
    def only_a_load(self) -> bool:
        """Whether all that ran are sets of a node that no set of a node has, such as a soak."""
        apart = all(known()[name].apart for name in self.sets)
        return apart and bool(self.sets) and not self.several

    @cached_property
    def deviations(self) -> list[tuple[Finding, bool]]:
        """How its sessions deviated from what their commit states, and what the site accepts."""
        if self.several or not self.outcomes:
            return []
        partial = [] if self.sets else [source.choice for source in self.results.sources]
        return [
            deviation
            for where in self.results.partitions
            for deviation in deviations.of_partition(
                where, self.results.sources, self.outcomes_on(where), partial
            )
        ]

    @cached_property
    def errors_between(self) -> list[Errors]:
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

    @cached_property
    def clock(self) -> Clock | None:
        """Whether its values were measured or simulated; None where nothing shows that any ran."""
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

    @cached_property
    def simulated(self) -> model.SimulatedNode | None:
        """The simulated node; None for the machine itself."""
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

    def node_model(self, where: str) -> NodeModel | None:
        """Return the node model of a partition; None if it has none."""
        for attempt in self.results.attempts:
            if attempt.case is not None and attempt.case.where == where:
                return node_of(where, self.documents, attempt.case)
        return node_of(where, self.documents, None)

    @cached_property
    def uncalibrated(self) -> list[str]:
        """The partitions that measured and have no calibration of their own."""
        return [
            where
            for where in self.results.partitions
            if not calibrated.has_own(folder(), where, self.node_model(where))
        ]

    @cached_property
    def gpus(self) -> model.Gpus:
        """Whether GPUs of the machine were measured, or should have been."""
        if self.subject.simulated is not None:
            return "none"
        if any(grounds.has_gpus(document) for document in self.documents):
            return "measured"
        meant = any(map(grounds.is_for_gpus, self.documents))
        stated = any(map(partitions.states_gpus, self.results.partitions))
        return "not-measured" if meant or stated or self.expected_gpus else "none"

    @cached_property
    def expected_gpus(self) -> str | None:
        """What says that the machine has GPUs, although none was measured."""
        return None if self.several else grounds.expected_gpus(self.documents)

    def measures_gpus(self, where: str) -> bool:
        """Whether a partition measured GPUs, or its site says that it has some."""
        documents = (
            attempt.document
            for attempt in self.results.attempts
            if attempt.case is not None and attempt.case.where == where
        )
        measured = any(grounds.has_gpus(document) for document in documents if document is not None)
        return measured or partitions.states_gpus(where)
