"""A soak: rounds of load on a node for hours, with a record of each round in one file.

Each round is a session of its own. Its record has what is judged over rounds, so that sessions in
between may be deleted. Time is counted by the lengths of rounds: a clock that is set, a reboot or a
break between two parts of a soak does not move it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from fabricheck.core.forms import NodeName
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.vocabulary import Better, Clock
from fabricheck.core.whole_files import write_whole
from fabricheck.results import marking, state, table
from fabricheck.results.model import DeviceState, ResultDocument, SoakMember, node_name
from fabricheck.results.reading import Results
from fabricheck.results.requested_nodes import Moment
from fabricheck.results.rows import Check, Metric, Series
from fabricheck.results.series import Noise

#: The folder of the records in a results folder, with one file for each soak.
FOLDER = "soaks"

#: What a round measures: everything under load, or the node with nothing else on it.
Kind = Literal["load", "quiet"]

#: Significant digits of a value in a record.
_DIGITS = 6

_DECILES = 10


class Member(StrictModel):
    """What has a value in each round: a kind of work on a device or a pair, a clock, or a metric.

    group: what it shares with its peers. devices: the device, or the two of a pair. noise: what its
    noise from one session to the next is that of.
    """

    kind: Kind
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
    throttled_s: seconds by kind. before, after: counters of errors. moved_tb: what it moved, in
    1e12 bytes.
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


class Round(StrictModel):
    """One round, as its session measured it.

    session: the name of its session. began_h: hours since the soak began, by the lengths of the
    rounds before. took_s: its length; of a simulated node by the simulated clock. load_s: the part
    of it under load. cpu_s: time of processors that the load took. is_whole: whether the files of
    its session are there. problem: why nothing of it can be judged, a clause.
    """

    kind: Kind
    session: str
    began: Moment
    began_h: NonNegativeFloat
    took_s: NonNegativeFloat
    load_s: NonNegativeFloat = 0.0
    cpu_s: NonNegativeFloat | None = None
    clock: Clock | None = None
    values: dict[str, Value] = {}
    devices: dict[int, DeviceRound] = {}
    wrong: list[WrongData] = []
    findings: list[RoundFinding] = []
    is_whole: bool = True
    problem: str | None = None

    @property
    def middle_h(self) -> float:
        """The middle of the round, in hours since the soak began."""
        return self.began_h + self.took_s / 7200


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


class Soak(StrictModel):
    """The record of a soak. ended: why it is over before its hours, a clause."""

    form: Literal["fabricheck-soak-1"] = "fabricheck-soak-1"
    name: Annotated[str, Field(pattern=f"^{marking.NAME}$")]
    node: NodeName | None = None
    began: Moment
    plan: Plan
    members: dict[str, Member] = {}
    rounds: list[Round] = []
    ended: str | None = None

    @property
    def hours(self) -> float:
        """The hours that have passed: the lengths of all rounds."""
        return sum(each.took_s for each in self.rounds) / 3600

    def of_kind(self, kind: Kind) -> list[Round]:
        """Return the rounds of a kind that can be judged, in order."""
        return [each for each in self.rounds if each.kind == kind and each.problem is None]


def path_of(results: Path, name: str) -> Path:
    """Return the file of a soak in a results folder."""
    return results / FOLDER / f"{name}.json"


def read(path: Path) -> Soak:
    """Read a record.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it is no record.
    """
    return read_model(path, Soak)


def write(results: Path, soak: Soak) -> None:
    """Write a record as a whole.

    :raises NotFoundError: when it cannot be written; the former record stays.
    """
    path = path_of(results, soak.name)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, soak.model_dump_json(exclude_defaults=True) + "\n")


def measured(results: Results, kind: Kind, began_h: float) -> tuple[dict[str, Member], Round]:
    """Return what the session of a round measured: its members, and the round.

    :param began_h: when it began, in hours since the soak began.
    """
    checks = list(results.checks)
    documents = [check.document for check in checks if check.document is not None]
    round_ = Round(
        kind=kind,
        session=results.name,
        began=_began(results),
        began_h=began_h,
        took_s=sum(document.get("simulated_s") or 0.0 for document in documents),
        clock=documents[0]["clock"] if documents else None,
    )
    if kind == "quiet":
        members, values = _of_metrics(results.metrics)
        return members, round_.model_copy(update={"values": values})
    for check in checks:
        load = check.document.get("soak") if check.document is not None else None
        if check.document is not None and load is not None:
            return _of_load(check, check.document, load, round_)
    problem = "its session left no load"
    for check in checks:
        if check.reason:
            problem = check.reason
            break
    return {}, round_.model_copy(update={"problem": problem})


def node_of(results: Results) -> str | None:
    """Return the node of a session's documents; None where none tells it."""
    for check in results.checks:
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
            kind="quiet",
            group=name,
            devices=(),
            unit=metric.unit,
            better=better,
            noise=metric.noise,
        )
        values[name] = _value([metric.value])
    return members, values


def _of_load(
    check: Check, document: ResultDocument, load: SoakMember, round_: Round
) -> tuple[dict[str, Member], Round]:
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
            kind="load",
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
    return members, round_.model_copy(
        update={
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
        kind="load",
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
                throttled_s=_throttled(first, final),
                before=state.counters(first) if first is not None else {},
                after=state.counters(final) if final is not None else {},
                moved_tb=moved[index] / 1e12,
            ),
        )


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _throttled(first: DeviceState | None, final: DeviceState | None) -> dict[str, float]:
    if first is None or final is None:
        return {}
    return {kind: s for kind, s in state.throttled_s(first, final).items() if s > 0}
