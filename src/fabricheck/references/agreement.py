"""What a centre and a vendor agree on before a machine is accepted: the file `acceptance.yaml`.

It has the system, its nodes, the sets that must pass, criteria with limits of their own, how many
nodes may fail at first, who signs, and the waivers. `read` looks at the file by itself, so that an
old one can be read on any machine; `require_measured` asks whether this checkout measures it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, NonNegativeFloat, NonNegativeInt, model_validator

from fabricheck.core import models, nodelists, yaml_files
from fabricheck.core.errors import InvalidFile, UsageError
from fabricheck.core.models import StrictModel
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.site import sets

#: In place of a commit, for a simulated system: that of the checkout that reads the file.
THIS_CHECKOUT = "this-checkout"

#: How a criterion that is no metric is named: the verdict on a set, and the soak.
OF_SET, SOAK = "set-", "soak"

_NAME = r"^[a-z][a-z0-9-]{0,40}$"

#: A commit as git and our programs write it: a hash, or a tag with the hash behind it.
_COMMIT = r"^(?:[0-9A-Za-z._/-]+-g)?[0-9a-f]{7,40}$"

Line = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, Field(pattern=_NAME)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PublicKey = Annotated[str, Field(pattern=r"^(ssh|ecdsa|sk)-[\w@.-]+ [A-Za-z0-9+/=]+( .*)?$")]
Percent = Annotated[float, Field(gt=0, le=100)]


class Metric(StrictModel):
    """A criterion: a metric of the suite, with one of four limits.

    at_least, at_most: in `unit`. percent_of_peak: of what the node model allows the transfer.
    limit: the calibrated one of the partition.
    """

    name: Name
    check: Annotated[str, Field(pattern=r"^\w+$")]
    metric: Annotated[str, Field(pattern=r"^\w+$")]
    at_least: float | None = None
    at_most: float | None = None
    unit: Literal["GB/s", "us", "count", "%"] | None = None
    percent_of_peak: Percent | None = None
    limit: Literal["calibrated"] | None = None

    @model_validator(mode="after")
    def _has_one_limit(self) -> Metric:
        is_own = self.at_least is not None or self.at_most is not None
        kinds = [is_own, self.percent_of_peak is not None, self.limit is not None]
        if kinds.count(True) != 1:
            raise ValueError(
                "state one limit: at_least or at_most with a unit, percent_of_peak, or limit: "
                "calibrated"
            )
        if is_own and self.unit is None:
            raise ValueError("at_least and at_most need a unit, such as GB/s")
        if not is_own and self.unit is not None:
            raise ValueError("a unit goes with at_least and at_most only")
        least, most = self.at_least, self.at_most
        if least is not None and most is not None and least > most:
            raise ValueError("at_least is above at_most, which no value reaches")
        return self


class Signer(StrictModel):
    """Who signs. key: the public key of ssh, as in a file that ends with .pub."""

    name: Name
    role: Line
    key: PublicKey | None = None


class Waiver(StrictModel):
    """What is let through on a node: which criterion, why, by whom, and until the end of which day.

    The day is one of UTC.
    """

    node: Line
    criterion: Name
    reason: Line
    by: Line
    until: date

    @property
    def ends(self) -> datetime:
        """The last moment at which it holds."""
        return datetime.combine(self.until, time.max, UTC)

    def holds(self, now: datetime) -> bool:
        """Whether it has not ended."""
        return now <= self.ends


@dataclass(frozen=True)
class Criterion:
    """One column of the table: the verdict on a set, hours of soak, or a metric.

    Exactly one of set, hours and metric is not None.
    """

    name: str
    set: str | None = None
    hours: float | None = None
    metric: Metric | None = None


class Agreement(StrictModel):
    """The file.

    system: ReFrame's, ``system:partition``. nodes: a host list. simulated: whether the system is
    one. commit: of the programs. begins: sessions before it do not count. programs: the SHA-256 of
    each by its name; without them the commit alone is compared, and all nodes must have the same.
    """

    form: Literal["fabricheck-acceptance-1"]
    title: Line
    system: Annotated[str, Field(pattern=r"^[\w-]+:[\w.-]+$")]
    nodes: Line
    simulated: bool = False
    commit: Annotated[str, Field(pattern=rf"{_COMMIT}|^{THIS_CHECKOUT}$")]
    begins: AwareDatetime
    programs: dict[str, Digest] = {}
    sets: Annotated[list[str], Field(min_length=1)]
    soak_hours: NonNegativeFloat = 0.0
    criteria: list[Metric] = []
    may_fail_at_first: NonNegativeInt = 0
    signers: Annotated[list[Signer], Field(min_length=1)]
    waivers: list[Waiver] = []

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes, each once."""
        return tuple(dict.fromkeys(nodelists.unfolded(self.nodes)))

    @cached_property
    def columns(self) -> tuple[Criterion, ...]:
        """All criteria: the sets, the soak, the metrics."""
        columns = [Criterion(f"{OF_SET}{name}", set=name) for name in self.sets]
        if self.soak_hours:
            columns.append(Criterion(SOAK, hours=self.soak_hours))
        columns += [Criterion(metric.name, metric=metric) for metric in self.criteria]
        return tuple(columns)

    def waiver(self, node: str, criterion: str) -> Waiver | None:
        """Return the waiver of a node for a criterion; of several the one that ends last."""
        waivers = [
            waiver
            for waiver in self.waivers
            if (waiver.node, waiver.criterion) == (node, criterion)
        ]
        return max(waivers, key=lambda waiver: waiver.until, default=None)


def read(path: Path) -> Agreement:
    """Read an agreement.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it is none, or contradicts itself: one sentence with file and key.
    """
    content = yaml_files.read(path)
    for place, key, known in _unknown_keys(content):
        raise InvalidFile(path, place, f"this key is unknown{nearest(key, known)}")
    agreement = models.validated(Agreement, content, path)
    for place, reason in _faults(agreement):
        raise InvalidFile(path, place, reason)
    return agreement


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is nearest to one that is not known, as the end of a sentence."""
    close = difflib.get_close_matches(word, [*known], n=1, cutoff=0.4)
    return f"; the nearest is {close[0]}" if close else ""


#: The sections of the file that are lists of mappings.
_LISTS: Mapping[str, type[StrictModel]] = {
    "criteria": Metric,
    "signers": Signer,
    "waivers": Waiver,
}


def _unknown_keys(content: Any) -> Iterator[tuple[str, str, Collection[str]]]:
    """Yield the place of each unknown key, the key, and those that are known there."""
    if not isinstance(content, dict):
        return
    known = Agreement.model_fields
    yield from ((str(key), str(key), known) for key in content if key not in known)
    for section, kind in _LISTS.items():
        entries = content.get(section)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            for key in entry if isinstance(entry, dict) else ():
                if key not in kind.model_fields:
                    yield f"{section}[{number}].{key}", str(key), kind.model_fields


def _faults(agreement: Agreement) -> Iterator[tuple[str, str]]:
    """Yield the place of each contradiction, and what it is."""
    try:
        nodes = agreement.node_names
    except UsageError as error:
        yield "nodes", str(error).removesuffix(".")
        return
    for name in agreement.sets:
        if name not in sets.known():
            yield "sets", f"there is no set '{name}'{nearest(name, sets.known())}"
    if agreement.commit == THIS_CHECKOUT and not agreement.simulated:
        yield "commit", f"{THIS_CHECKOUT} is for a simulated system only: state a commit"
    yield from _twice("sets", agreement.sets)
    yield from _twice("criteria", [column.name for column in agreement.columns])
    yield from _twice("signers", [signer.name for signer in agreement.signers])
    names = [column.name for column in agreement.columns]
    for number, waiver in enumerate(agreement.waivers):
        if waiver.node not in nodes:
            reason = f"'{waiver.node}' is none of the nodes{nearest(waiver.node, nodes)}"
            yield f"waivers[{number}].node", reason
        if waiver.criterion not in names:
            reason = f"there is no criterion '{waiver.criterion}'{nearest(waiver.criterion, names)}"
            yield f"waivers[{number}].criterion", reason


def _twice(place: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield place, f"'{name}' is there twice"


@dataclass(frozen=True)
class Measured:
    """A check of a partition: its tags, and its metrics with their units, where they are known."""

    tags: Collection[str]
    units: Mapping[str, str | None]


def require_measured(path: Path, agreement: Agreement, checks: Mapping[str, Measured]) -> None:
    """Refuse a criterion that nothing measures: its check, its metric, or in another unit.

    :param path: of the agreement, for the error.
    :param checks: those of the partition, by name.
    :raises InvalidFile: with the nearest names.
    """
    for number, metric in enumerate(agreement.criteria):
        place = f"criteria[{number}]"
        check = checks.get(metric.check)
        if check is None:
            reason = f"{agreement.system} has no check '{metric.check}'"
            raise InvalidFile(path, f"{place}.check", f"{reason}{nearest(metric.check, checks)}")
        if metric.metric not in check.units:
            reason = f"{metric.check} measures no '{metric.metric}'"
            near = nearest(metric.metric, check.units)
            raise InvalidFile(path, f"{place}.metric", f"{reason}{near}")
        if not {*agreement.sets} & {*check.tags}:
            reason = f"{metric.check} is in none of the sets {listed(agreement.sets)}"
            among = [name for name in sets.known() if name in check.tags]
            others = f", but in {listed(among)}" if among else ""
            raise InvalidFile(path, f"{place}.check", f"{reason}{others}: nothing would measure it")
        _require_unit(path, place, metric, check.units[metric.metric])


def _require_unit(path: Path, place: str, metric: Metric, unit: str | None) -> None:
    if unit is None:
        return
    if metric.unit is not None and metric.unit != unit:
        raise InvalidFile(path, f"{place}.unit", f"{metric.metric} is in {unit}, not {metric.unit}")
    if metric.percent_of_peak is not None and unit != "GB/s":
        raise InvalidFile(
            path, f"{place}.percent_of_peak", f"{metric.metric} has no peak in {unit}"
        )
    if unit not in ("GB/s", "us") or metric.at_least is metric.at_most is None:
        return
    smaller = unit in SMALLER_IS_BETTER
    if smaller and metric.at_most is None:
        raise InvalidFile(path, place, f"of {metric.metric} in {unit} less is better: use at_most")
    if not smaller and metric.at_least is None:
        raise InvalidFile(path, place, f"of {metric.metric} in {unit} more is better: use at_least")
