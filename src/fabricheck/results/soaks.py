"""A soak: rounds of load on a node for hours, each a session with a record of what it measured.

The record lies in the folder of the session's outputs, and has what is judged over rounds: of
sessions in between all else may be deleted. Time is counted by how long the programs of rounds
ran: a clock that is set, a reboot, a wait for another session or a break between two parts of a
soak does not move it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from fabricheck.core.forms import NodeName
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.vocabulary import Better, Clock
from fabricheck.core.whole_files import write_whole
from fabricheck.results import marking, state, table
from fabricheck.results.model import ResultDocument, SoakMember, node_name
from fabricheck.results.reading import Results
from fabricheck.results.requested_nodes import Moment
from fabricheck.results.rows import Check, Metric, Series
from fabricheck.results.series import Noise

#: The record of a round, in the folder of its session's outputs.
NAME = "round.json"

#: What a round measures: everything under load, or the node with nothing else on it.
Phase = Literal["load", "quiet"]

#: It was named `kind` in records of the first soaks.
_Phase = Annotated[Phase, Field(validation_alias=AliasChoices("phase", "kind"))]

#: Significant digits of a value in a record.
_DIGITS = 6

_DECILES = 10


class Member(StrictModel):
    """What has a value in each round: a kind of work on a device or a pair, a clock, or a metric.

    group: what it shares with its peers. devices: the device, or the two of a pair. noise: what its
    noise from one session to the next is that of.
    """

    phase: _Phase
    group: str
    devices: tuple[NonNegativeInt, ...]
    unit: str
    better: Better
    noise: Noise


class Value(StrictModel):
    """The samples of a member in a round, a sample a pass.

    middle: their median. low, high: the first and the last decile.
    """

    middle: float
    low: float
    high: float
    n: NonNegativeInt


class DeviceRound(StrictModel):
    """A device in a round of load; None where no driver tells it.

    temperature_c, memory_temperature_c, power_w: medians of the second half of the load.
    throttled_s: seconds of the load by kind. before, after: counters of errors. moved_tb: what it
    moved, in 1e12 bytes.
    """

    pci_address: str | None
    unique_id: str | None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: NonNegativeFloat | None = None
    throttled_s: dict[str, NonNegativeFloat] = {}
    before: dict[str, NonNegativeInt] = {}
    after: dict[str, NonNegativeInt] = {}
    moved_tb: NonNegativeFloat = 0.0


class WrongData(StrictModel):
    """Data that was found wrong.

    at_h: hours since the soak began. device: that holds it; None for host memory. at_rest: whether
    it had been right where it lies.
    """

    at_h: NonNegativeFloat
    work: str
    device: int | None
    offset_bytes: NonNegativeInt
    bits: list[NonNegativeInt]
    errors: NonNegativeInt
    at_rest: bool


class RoundFinding(StrictModel):
    """What the verdict on the session of a round has against its node.

    live: whether the node may be drained by it. positive: whether it alone is evidence of a fault
    of the hardware, whatever keeps it from being live.
    """

    status: str
    rule: str
    sentence: str
    live: bool = False
    positive: bool = False


class Plan(StrictModel):
    """What a soak is to do.

    quiet_every: after how many rounds of load the node is measured quietly; 0: only at the start.
    quiet_set: the set that measures it; None for none. arguments: those of ReFrame.
    """

    hours: PositiveFloat
    round_minutes: PositiveFloat
    quiet_every: NonNegativeInt
    quiet_set: str | None
    arguments: tuple[str, ...] = ()


class Round(StrictModel):
    """One round, as its session measured it.

    soak: the name of the soak. plan: that of the soak when it ran. session: the name of its
    session. began_h: hours since the soak began, by the lengths of the rounds before. took_s: how
    long its programs ran; of a simulated node by the simulated clock. load_s: the part of it under
    load. cpu_s: time of processors that the load took. commits: of the programs; empty in records
    from before it was recorded. members, values: what was measured, by the
    same names. problem: why nothing of it can be judged, a clause. ended: why the soak ended with
    it before its hours, a clause.
    """

    form: Literal["fabricheck-round-1"] = "fabricheck-round-1"
    soak: Annotated[str, Field(pattern=f"^{marking.NAME}$")]
    plan: Plan
    phase: _Phase
    session: Annotated[str, Field(pattern=r"-\d{4,}$")]
    node: NodeName | None = None
    began: Moment
    began_h: NonNegativeFloat
    took_s: NonNegativeFloat
    load_s: NonNegativeFloat = 0.0
    cpu_s: NonNegativeFloat | None = None
    clock: Clock | None = None
    commits: list[str] = []
    members: dict[str, Member] = {}
    values: dict[str, Value] = {}
    devices: dict[int, DeviceRound] = {}
    wrong: list[WrongData] = []
    findings: list[RoundFinding] = []
    problem: str | None = None
    ended: str | None = None

    @property
    def middle_h(self) -> float:
        """The middle of the round, in hours since the soak began."""
        return self.began_h + self.took_s / 7200

    @property
    def number(self) -> int:
        """Its place in the soak, from 1 on, by the name of its session."""
        return int(self.session.rpartition("-")[2])


def session_name(soak: str, number: int) -> str:
    """Return the name of the session of a round, from 1 on."""
    return f"{soak}-{number:04}"


@dataclass(frozen=True)
class Soak:
    """The rounds of a soak in order. ended: why it is over before its hours, a clause."""

    name: str
    plan: Plan
    rounds: tuple[Round, ...] = ()
    ended: str | None = None

    @property
    def hours(self) -> float:
        """The hours that have passed: the lengths of all rounds."""
        return sum(each.took_s for each in self.rounds) / 3600

    @property
    def node(self) -> str | None:
        """The node that it is of; None where no round tells it."""
        for each in self.rounds:
            if each.node is not None:
                return each.node
        return None

    @cached_property
    def members(self) -> dict[str, Member]:
        """What has a value in a round, as the first of them has it."""
        members: dict[str, Member] = {}
        for each in self.rounds:
            members = {**each.members, **members}
        return members

    def of_phase(self, phase: Phase) -> list[Round]:
        """Return the rounds of a phase that can be judged, in order."""
        return [each for each in self.rounds if each.phase == phase and each.problem is None]


def write(outputs: Path, round_: Round) -> None:
    """Write the record of a round as a whole.

    :param outputs: the folder of its session's outputs.
    :raises NotFoundError: when it cannot be written; those of other rounds stay.
    """
    write_whole(outputs / NAME, round_.model_dump_json(exclude_defaults=True) + "\n")


def read(results: Path) -> list[Soak]:
    """Return the soaks of a results folder, the one that was written last at the end.

    :raises InvalidFile: when what should be the record of a round is none.
    """
    by_name: dict[str, list[Round]] = {}
    for path in sorted(results.glob(f"output/*/{NAME}"), key=lambda path: path.stat().st_mtime):
        round_ = read_model(path, Round)
        # Behind all others, because it was written after them.
        before = by_name.pop(round_.soak, [])
        by_name[round_.soak] = [*before, round_]
    return [_of_rounds(name, rounds) for name, rounds in by_name.items()]


def _of_rounds(name: str, rounds: Sequence[Round]) -> Soak:
    in_order = sorted(rounds, key=lambda each: each.number)
    last = in_order[-1]
    return Soak(name, last.plan, tuple(in_order), last.ended)


def measured(results: Results, soak: Soak, phase: Phase, session: str) -> Round:
    """Return what the session of the next round of a soak measured.

    :param session: the name of the session.
    """
    checks = list(results.checks)
    documents = [check.document for check in checks if check.document is not None]
    round_ = Round(
        soak=soak.name,
        plan=soak.plan,
        phase=phase,
        session=session,
        node=_node_of(checks),
        began=_began(results),
        began_h=soak.hours,
        took_s=sum(map(_seconds_of, documents)),
        clock=documents[0]["clock"] if documents else None,
        commits=sorted({document["program"]["commit"] for document in documents}),
    )
    if phase == "quiet":
        members, values = _of_metrics(results.metrics)
        return round_.model_copy(update={"members": members, "values": values})
    for check in checks:
        load = check.document.get("soak") if check.document is not None else None
        if check.document is not None and load is not None:
            return _of_load(check, check.document, load, round_)
    return round_.model_copy(update={"problem": _problem_of(checks)})


def _seconds_of(document: ResultDocument) -> float:
    """Return how long a program ran, by a clock that nobody sets; simulated by the node's."""
    if document["clock"] == "simulated":
        return document.get("simulated_s") or 0.0
    return document["duration_s"]


def _problem_of(checks: Sequence[Check]) -> str:
    """Return why a session left no load, a clause."""
    for check in checks:
        if check.reason:
            return check.reason
    return "its session left no load"


def _node_of(checks: Sequence[Check]) -> str | None:
    for check in checks:
        if check.document is not None:
            return node_name(check.document["host"])
    return None


def _began(results: Results) -> datetime:
    session = results.session
    return datetime.now().astimezone() if session is None else session.date.astimezone()


def _of_metrics(metrics: Iterator[Metric]) -> tuple[dict[str, Member], dict[str, Value]]:
    """Return the metrics of a quiet session with a direction and a noise, and their values."""
    members, values = {}, {}
    for metric in metrics:
        if metric.value is None or metric.better is None or metric.noise is None:
            continue
        name = f"{metric.check_row.check}.{metric.metric}"
        better: Better = "higher" if metric.better == "higher" else "lower"
        members[name] = Member(
            phase="quiet",
            group=name,
            devices=(),
            unit=metric.unit,
            better=better,
            noise=metric.noise,
        )
        values[name] = _value([metric.value])
    return members, values


def _of_load(check: Check, document: ResultDocument, load: SoakMember, round_: Round) -> Round:
    members, values = {}, {}
    moved: Counter[int] = Counter()
    works = []
    for series in table.series(check, None):
        work = _work_of(series)
        works.append(work)
        members[work] = _member(series)
        values[work] = _value(series.measured["samples"])
        number = series.bytes_moved * series.batch * series.n
        if series.device is not None and series.operation != "compute":
            moved[series.device] += number
    load_s = load["passes"][-1][1] if load["passes"] else 0.0
    clocks = _clocks(load)
    for index, clock in clocks.items():
        name = f"clock {index}"
        members[name] = Member(
            phase="load",
            group="clock",
            devices=(index,),
            unit="MHz",
            better="higher",
            noise="devices",
        )
        values[name] = _value(clock)
    wrong = [
        WrongData(
            at_h=round_.began_h + mismatch["at_s"] / 3600,
            work=works[mismatch["series"]],
            device=mismatch["device"],
            offset_bytes=mismatch["offset_bytes"],
            bits=mismatch["bits"],
            errors=mismatch["errors"],
            at_rest=mismatch["at_rest"],
        )
        for mismatch in load["wrong"]
    ]
    took_s = load_s if document["clock"] == "simulated" else round_.took_s
    return round_.model_copy(
        update={
            "members": members,
            "took_s": took_s,
            "load_s": load_s,
            "cpu_s": load["cpu_s"],
            "values": values,
            "devices": dict(_devices(document, load, moved)),
            "wrong": wrong,
        }
    )


def _work_of(series: Series) -> str:
    return f"{series.operation} {'-'.join(map(str, series.devices))}"


def _member(series: Series) -> Member:
    better: Better = "higher" if series.better == "higher" else "lower"
    return Member(
        phase="load",
        group=series.operation,
        devices=series.devices,
        unit=series.unit,
        better=better,
        noise=series.noise,
    )


def _value(samples: Sequence[float]) -> Value:
    middle = statistics.median(samples)
    low = high = middle
    if len(samples) > 1:
        deciles = statistics.quantiles(samples, n=_DECILES, method="inclusive")
        low, high = deciles[0], deciles[-1]
    return Value(middle=_rounded(middle), low=_rounded(low), high=_rounded(high), n=len(samples))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _clocks(load: SoakMember) -> Mapping[int, list[float]]:
    """Return the clocks of each device under load, in MHz."""
    clocks: dict[int, list[float]] = {}
    for reading in load["readings"]:
        for device in reading["devices"]:
            if device["clock_mhz"]:
                clocks.setdefault(device["index"], []).append(device["clock_mhz"])
    return clocks


def _devices(
    document: ResultDocument, load: SoakMember, moved: Mapping[int, int]
) -> Iterator[tuple[int, DeviceRound]]:
    seen = document.get("state")
    before = {each["index"]: each for each in seen["before"]["devices"]} if seen else {}
    last = seen["after"] if seen else None
    after = {each["index"]: each for each in last["devices"]} if last else {}
    half = load["readings"][len(load["readings"]) // 2 :]
    throttled = {each["index"]: each["throttled_s"] or {} for each in load.get("throttled", ())}
    for device in document["devices"]:
        index = device["index"]
        readings = [each for reading in half for each in reading["devices"]]
        of_device = [each for each in readings if each["index"] == index]
        first, final = before.get(index), after.get(index)
        yield (
            index,
            DeviceRound(
                pci_address=device["pci_address"],
                unique_id=device["unique_id"],
                temperature_c=_median(each["temperature_c"] for each in of_device),
                memory_temperature_c=_median(each["memory_temperature_c"] for each in of_device),
                power_w=_median(each["power_w"] for each in of_device),
                throttled_s={
                    kind: seconds for kind, seconds in throttled.get(index, {}).items() if seconds
                },
                before=state.counters(first) if first is not None else {},
                after=state.counters(final) if final is not None else {},
                moved_tb=moved[index] / 1e12,
            ),
        )


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
