"""What a session found: what to do next, and of each partition failures, misses, slow and noisy."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any

from fabricheck.core.amounts import number, size
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded, titled
from fabricheck.core.peers import LEAST, away
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge import energy
from fabricheck.judge.verdict import caveats, evidence, model
from fabricheck.judge.verdict.model import NodeVerdict, Reason, by_label
from fabricheck.judge.verdict.rules import STATUSES
from fabricheck.report import scheduler
from fabricheck.report.experiments import Reference, Row, experiment_rows, references_of
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Metric, Series, largest
from fabricheck.results.series import is_too_noisy, series_key
from fabricheck.results.session import UNREPORTED
from fabricheck.rfm.metrics import where_measured

#: The most rows of the table of what is slow.
MOST = 10

#: What is shown of a device, by the properties of its series.
_OF_A_DEVICE = {
    "Memory": {"experiment": "E1", "operation": "copy", "role": "single", "regime": "memory"},
    "From host": {"experiment": "E2", "operation": "h2d", "source_memory": "host-pinned"},
    "To host": {"experiment": "E2", "operation": "d2h", "destination_memory": "host-pinned"},
}

#: The series of the pairs, by engine.
_OF_PAIRS = {"experiment": "E7", "operation": "engine", "role": "single"}

#: Rules of reasons that the page shows elsewhere: missing documents with the expected file, and the
#: diagnosis.
_SHOWN_ELSEWHERE = frozenset({"no-document", "not-judged", "diagnosis"})

#: The most failed nodes of a status that have a sentence each, and the most good nodes named.
_MOST_NAMED = 3


def next_steps(judged: Iterable[NodeVerdict]) -> list[str]:
    """Return what to do after a session, each as a sentence, the most urgent first."""
    verdicts_ = list(judged)
    steps = evidence.software_first(verdicts_)
    for is_simulated in (False, True):
        verdicts = [
            verdict for verdict in verdicts_ if (verdict.simulated is not None) == is_simulated
        ]
        for same in by_label(verdicts):
            steps += _steps(same)
    note = model.provisional_note(where for verdict in verdicts_ for where in verdict.provisional)
    return [*steps, *([note] if note else [])]


def _steps(verdicts: Sequence[NodeVerdict]) -> Iterator[str]:
    """Yield what to do about nodes of one status, all simulated or none."""
    first, names = verdicts[0], folded(titled(verdict.node) for verdict in verdicts)
    because = first_reason(first) or "there is no result."
    if first.simulated is not None:
        outcome = "passed." if first.status == "PASS" else f"is {first.label}: {because}"
        yield f"The simulated node {outcome} This says nothing about a machine."
    elif first.status == "PASS":
        yield from _accepted(verdicts)
    elif first.status == "UNSTABLE":
        yield f"Repeat the checks on {names}: {because}"
    elif first.status == "INCOMPLETE":
        yield f"Fix this, then measure {names} again: {because}"
    else:
        for verdict in verdicts[:_MOST_NAMED]:
            advice = f"Look into the {titled(verdict.node)}."
            if verdict.drain is not None:
                advice = scheduler.advice(verdict.drain, verdict.node)
            yield f"{advice} {first_reason(verdict)}"
        if len(verdicts) > _MOST_NAMED:
            yield (
                f"{first.label} also: "
                f"{folded(titled(verdict.node) for verdict in verdicts[_MOST_NAMED:])}."
            )


def _accepted(verdicts: Sequence[NodeVerdict]) -> Iterator[str]:
    """Yield which of the nodes that passed are accepted, and which are not."""
    by_acceptance = grouped((verdict.accepted, verdict) for verdict in verdicts)
    for accepted, alike in by_acceptance.items():
        names = folded(titled(verdict.node) for verdict in alike)
        if len(alike) > _MOST_NAMED:
            names = count(len(alike), "node")
        if accepted:
            for_now = " for now" if alike[0].provisional else ""
            yield f"Accept {names}{for_now}: nothing failed."
        else:
            yield f"Nothing failed on {names}; not accepted, since no GPU was measured there."


def is_of(verdict: NodeVerdict, observed: Observed) -> bool:
    """Whether values belong to a verdict's subject, the machine or its simulation."""
    here = observed.where in verdict.partitions or not observed.where
    return here and (observed.clock == "simulated") == (verdict.simulated is not None)


def first_reason(verdict: NodeVerdict) -> str:
    """Return the diagnosis and the first reason against PASS."""
    diagnosis = verdict.diagnosis
    sentences = (
        *([diagnosis.sentence] if diagnosis is not None and diagnosis.degraded else []),
        *(f"{reason.sentence.rstrip('.')}." for reason in verdict.reasons[:1]),
    )
    return " ".join(dict.fromkeys(sentences))


def partition_verdict(judged: Iterable[NodeVerdict], observed: Observed) -> NodeVerdict:
    """Return the verdict on one partition, from those on the nodes of its session.

    Results without a node's name may be of several: their reasons come together.
    """
    verdicts = [
        verdict
        for verdict in judged
        if observed.on in (None, verdict.node) and is_of(verdict, observed)
    ]
    worst = min(verdicts, key=lambda judged: STATUSES.index(judged.status))
    others = [verdict for verdict in verdicts if verdict is not worst]
    reasons = [*worst.reasons, *(each for verdict in others for each in verdict.reasons)]
    return worst.model_copy(update={"reasons": reasons}).in_partition(observed.where)


@dataclass(frozen=True)
class Slow:
    """A pair, device or rank behind the median of its class; percent: the distance."""

    point: Series
    median: float
    percent: float
    members: int
    among: str

    @property
    def operation(self) -> str:
        """Its check, operation and size."""
        what = f"{self.point.operation}, {size(self.point.bytes)}"
        return f"{self.point.check}: {what}" if self.point.check else what

    @property
    def sentence(self) -> str:
        """How far it is behind, as a sentence without its full stop."""
        return (
            f"{self.point.place}, {self.operation}: {number(self.point.value)} {self.point.unit}, "
            f"{self.percent:.1f} % behind the median of {self.members} {self.among}"
        )


@dataclass(frozen=True, eq=False)
class Partition:
    """The findings in one partition; each list has the worst first."""

    observed: Observed
    verdict: NodeVerdict

    @property
    def name(self) -> str:
        """The partition, in headings."""
        apart = f" ({self.observed.apart})" if self.observed.apart else ""
        return f"{self.observed.where or 'no partition'}{apart}"

    @property
    def says(self) -> str:
        """Its results in numbers."""
        observed, cases = self.observed, self.observed.cases
        unknown = sum(case.result == UNREPORTED for case in cases)
        if unknown:
            first = (
                f"{count(unknown, 'check')} without a run report that states whether they passed"
            )
        elif cases:
            first = f"{sum(case.passed for case in cases)} of {count(len(cases), 'check')} passed"
        else:
            first = f"{count(len(observed.entries), 'document')} outside any session"
        skipped = sum(case.skipped for case in cases)
        retried = sum(case.failed_attempts > 0 for case in cases)
        limits = caveats.limits(cases)
        limited = limits["kept"] + limits["missed"]
        series = [series for document in observed.documents for series in document["series"]]
        noisy = sum(each["noisy"] for each in series)
        wrong = sum(each["verification"]["errors"] > 0 for each in series)
        lacking = len(self.problems)
        where_any = (
            (skipped, f"{skipped} skipped"),
            (retried, f"{retried} tried again"),
            (lacking, f"{count(lacking, 'document')} missing or not whole"),
            (limited, f"{limits['kept']} of {count(limited, 'metric')} within the limit"),
            (limits["free"], f"{limits['free']} without a limit"),
            (noisy, f"{noisy} of {len(series)} series noisy"),
            (wrong, f"{wrong} of {len(series)} series with wrong data"),
        )
        return listed([first, *(text for number, text in where_any if number)])

    @property
    def failures(self) -> list[list[Reason]]:
        """The reasons against PASS by check."""
        shown = (reason for reason in self.verdict.reasons if reason.rule not in _SHOWN_ELSEWHERE)
        return list(grouped((reason.check, reason) for reason in shown).values())

    @property
    def problems(self) -> list[str]:
        """Missing and incomplete documents, each as a sentence."""
        return [problem for entry in self.observed.entries for problem in problems(entry)]

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The reference of each metric that has a value."""
        return references_of(self.observed)

    @cached_property
    def experiments(self) -> tuple[Row, ...]:
        """A row for each of E1 to E17."""
        return experiment_rows(self.observed, self.references)

    @property
    def devices(self) -> Iterator[dict[str, Any]]:
        """The memory, host link and copies to peers of each measured GPU, in GB/s."""
        if self.observed.simulated or self.observed.runtimes <= {"host"}:
            return
        values_of = {
            name: {
                series.device: series.value
                for series in largest(self.observed.select(**fields), attrgetter("device")).values()
            }
            for name, fields in _OF_A_DEVICE.items()
        }
        pairs = {
            series.pair: series.value
            for series in largest(self.observed.select(**_OF_PAIRS), attrgetter("pair")).values()
            if series.pair is not None
        }
        measured = {*chain.from_iterable(values_of.values()), *chain.from_iterable(pairs)}
        for device in sorted(device for device in measured if device is not None):
            yield {
                "device": device,
                **{name: values.get(device) for name, values in values_of.items()},
                "peers": {to: value for (source, to), value in pairs.items() if source == device},
            }

    @property
    def energy(self) -> Iterator[dict[str, Any]]:
        """The energy of a bit in pJ by path and size, of the series that were held for it."""
        above = energy.above_peers(self.observed.series)
        for series in self.observed.series:
            if series.pj_per_bit is not None:
                yield {
                    "path": series.description,
                    "place": series.place,
                    "bytes": series.bytes,
                    "pj_per_bit": series.pj_per_bit,
                    "low": series.pj_per_bit_low,
                    "high": series.pj_per_bit_high,
                    "net_pj_per_bit": series.net_pj_per_bit,
                    "net_low": series.net_pj_per_bit_low,
                    "net_high": series.net_pj_per_bit_high,
                    "by_package": series.energy_by_package,
                    "same_clock": series.energy_same_clock,
                    "above_peers": above.get(series),
                    "busy": series.measured["energy"]["busy"],
                    "node_pj_per_bit": series.node_pj_per_bit,
                    "joules": series.held_j,
                    "idle_devices_joules": series.idle_devices_j,
                }

    @property
    def missed(self) -> list[Metric]:
        """The metrics that missed their limit."""
        return sorted(
            (
                metric
                for metric in self.observed.metrics
                if metric.recorded.nearest_limit and metric.recorded.missed
            ),
            key=_margin,
        )

    @property
    def within(self) -> list[Metric]:
        """The metrics within their limit, the one nearest to it first."""
        return sorted(
            (
                metric
                for metric in self.observed.metrics
                if metric.margin is not None and not metric.recorded.missed
            ),
            key=_margin,
        )

    @cached_property
    def slow(self) -> list[Slow]:
        """What is behind its class by most."""
        return sorted(_slow(self.observed), key=lambda spread: -spread.percent)[:MOST]

    @property
    def noisy(self) -> Iterator[str]:
        """For each check its noisy series, and the widest interval, as a sentence."""
        noisy = (series for series in self.observed.series if series.noisy)
        for name, points in grouped((series.check_row.title, series) for series in noisy).items():
            widths = [point.measured["relative_half_width"] for point in points]
            known = [100 * width for width in widths if width is not None]
            harmless = sum(not is_too_noisy(point.measured) for point in points)
            of_them = (
                f", {harmless} of them of sizes that fit the caches or shares whose sum is the "
                "result, where noise fails nothing"
            )
            widest = f"; the widest interval is the median ± {max(known):.1f} %" if known else ""
            yield f"{name}: {len(points)} series{of_them if harmless else ''}{widest}"


def problems(entry: Entry) -> Iterator[str]:
    """Yield the problems of a document: missing, unreadable, or of an unfinished run."""
    yield from map(str, entry.problems)
    if entry.document is not None and not entry.document["complete"]:
        message = entry.document["outcome"]["message"]
        yield (
            f"{entry.path}: the run did not finish "
            f"({entry.document['outcome']['status']}{f': {message}' if message else ''}); it has "
            "the series finished before."
        )


def by_check(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the worst metric of each check; GB/s and us come before comparisons of such values."""
    ordered = sorted(metrics, key=lambda metric: metric.unit not in ("GB/s", "us"))
    of_checks = grouped((metric.check_row.title, metric) for metric in ordered)
    return sorted((first for first, *_ in of_checks.values()), key=_margin)


def _margin(metric: Metric) -> float:
    return 0.0 if metric.margin is None else metric.margin


def missed_at(metric: Metric) -> str:
    """Return the place at which a metric missed its limit; empty if it did not."""
    document = metric.check_row.document
    if not metric.recorded.missed or document is None or metric.record is None:
        return ""
    return "" if metric.value is None else where_measured(document, metric.decisive_series)


def _slow(observed: Observed) -> Iterator[Slow]:
    points = filter(_is_one, observed.points)
    classes = grouped(
        ((_series_of(point), _class(observed, point)), point)
        for point in largest(points, lambda series: (_series_of(series), series.place)).values()
    )
    for (_, among), same in classes.items():
        members = {point.place: point for point in same}
        middle = statistics.median(point.value for point in members.values())
        for who, part in away({who: point.value for who, point in members.items()}).items():
            point = members[who]
            percent = 100 * (-part if point.better == "higher" else part)
            if percent >= 100 * LEAST:
                yield Slow(point, middle, percent, len(members), among)


def _is_one(point: Series) -> bool:
    """Whether a series belongs to one pair, device or rank: sets of devices differ by design."""
    if len(point.ranks or ()) == 1:
        return point.device is not None
    return point.role == "single" and len(point.devices) in (1, 2)


def _series_of(point: Series) -> tuple[Hashable, ...]:
    """Return the key of comparable values."""
    return (
        point.check,
        point.program,
        point.by_engines,
        point.block_size,
        series_key(point.measured),
    )


def _class(observed: Observed, point: Series) -> str:
    """Return the class whose values are compared: paths of the same link class."""
    node = observed.node
    if point.pair is not None:
        a, b = point.pair
        if node is None or a == b or not {a, b} <= {device.index for device in node.devices}:
            return "pairs"
        return f"pairs of the class {node.link_class(a, b).name}"
    if point.host_domain is not None and point.device is not None:
        domain_of = {device["index"]: device["numa_domain"] for device in point.document["devices"]}
        home = domain_of.get(point.device)
        if home is None:
            return f"devices with NUMA domain {point.host_domain}"
        return f"devices with {'their own' if home == point.host_domain else 'another'} NUMA domain"
    return "ranks" if point.ranks else "devices"
