"""What a value is of: two values are compared when that is the same, and never otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from fabricheck.core.vocabulary import ENGINE_SWITCHES
from fabricheck.results import split_checks
from fabricheck.results.model import Place, ResultDocument, Series

#: The experiment of every NUMA domain with every device.
OF_DOMAINS = "E4"

#: Kind of memory and the device that holds it.
End = tuple[str, int | None]


@dataclass(frozen=True)
class Terms:
    """On what terms a series was measured: values on other terms are not comparable.

    size: in bytes, of one array or message. domains: of source and destination, where the NUMA
    domain is what is measured (E4); elsewhere it is the one near the device or rank, whatever its
    number. engines_off: the variables that turn AMD's copy engines off. shared_by: how many engines
    share a copy, where it is known and more than one.
    """

    unit: str
    bytes_counted: str
    size: int
    block_size: int | None
    datatype: str | None
    movement: str | None
    in_place: bool | None
    domains: tuple[int | None, ...]
    engines_off: tuple[str, ...]
    shared_by: int | None

    def differs(self, other: Terms) -> list[str]:
        """Return in words each term that is another one."""
        return [
            f"{field.name.replace('_', ' ')} {_said(mine)} and {_said(others)}"
            for field in fields(self)
            if (mine := getattr(self, field.name)) != (others := getattr(other, field.name))
        ]


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join("none" if one is None else str(one) for one in value) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class Transfer:
    """What a series is of, but for its terms; ``check`` is of its document, by its name today."""

    check: str
    program: str
    experiment: str
    operation: str
    role: str
    device: int | None
    device_set: tuple[int, ...]
    source: End
    destination: End
    engine: str
    direction: str
    ranks: tuple[int, ...] | None
    placement: str | None


@dataclass(frozen=True)
class Subject:
    """What one series is of, whole."""

    transfer: Transfer
    terms: Terms

    @property
    def check(self) -> str:
        """The check, or the folder of a document outside of a session."""
        return self.transfer.check

    @property
    def kind(self) -> str:
        """What is alike in a group of series: experiment, operation, memory and role."""
        own = self.transfer
        memory = "-".join(
            dict.fromkeys(end[0].removeprefix("host-") for end in (own.source, own.destination))
        )
        parts = [own.experiment, own.operation, memory.replace("device-peer", "peer")]
        if own.role != "single":
            parts.append(own.role)
        if own.direction == "both-ways" and "both" not in own.operation:
            parts.append("both ways")
        return " ".join([*parts, *([self.terms.movement] if self.terms.movement else [])])

    @property
    def place(self) -> str:
        """Which device, pair or ranks, NUMA domains, and how many others are at work."""
        own = self.transfer
        ends = (own.source[1], own.destination[1])
        if own.device is None and own.ranks and own.direction != "collective":
            text = "{} to {}".format(*own.ranks) if len(own.ranks) == 2 else f"{len(own.ranks)}"
            text = f"ranks {text}"
        elif own.ranks and own.direction == "collective":
            text = f"{len(own.ranks)} ranks"
        elif own.device is None:
            own_set = ",".join(map(str, own.device_set))
            text = f"devices {own_set}" if len(own.device_set) > 1 else f"device {own_set}"
        elif None not in ends and ends[0] != ends[1]:
            text = "{} to {}".format(*ends)
        else:
            text = f"device {own.device}"
            others = {*own.device_set, *(end for end in ends if end is not None)} - {own.device}
            if others and own.role == "share":
                text += f" of {len(own.device_set)}"
            elif others:
                text += f" and {','.join(map(str, sorted(others)))}"
        domains = [f"N{one}" for one in dict.fromkeys(self.terms.domains) if one is not None]
        block = [f"block {self.terms.block_size}"] if self.terms.block_size else []
        in_place = ["in place"] if self.terms.in_place else []
        datatype = self.terms.datatype
        typed = [datatype] if datatype and own.experiment == "E12" else []
        return ", ".join([" ".join([text, *domains]), *block, *typed, *in_place])

    @property
    def bytes(self) -> int | None:
        """The size of one array or message."""
        return self.terms.size

    @property
    def unit(self) -> str:
        """GB/s (1e9 bytes per second) or us."""
        return self.terms.unit


@dataclass(frozen=True)
class Metric:
    """A value that ReFrame recorded of a check."""

    check: str
    name: str
    unit: str

    kind = "metric"
    bytes = None

    @property
    def place(self) -> str:
        """Its name."""
        return self.name


def of_document(check: str, document: ResultDocument) -> Iterator[tuple[Subject, Series]]:
    """Yield each series of a document with what it is of, by the check of today that has it."""
    off: tuple[str, ...] = ()
    if document["program"]["runtime"] in ("rocm", "sim"):
        environment = document["environment"]
        off = tuple(name for name in ENGINE_SWITCHES if environment.get(name) == "0")
    for one in document["series"]:
        ranks = one.get("ranks")
        transfer = Transfer(
            split_checks.of_series(check, one),
            document["program"]["name"],
            one["experiment"],
            one["operation"],
            one["role"],
            one["device"],
            tuple(one["device_set"]),
            _end(one["source"]),
            _end(one["destination"]),
            one["engine"],
            one["direction"],
            None if ranks is None else tuple(ranks),
            one.get("placement"),
        )
        terms = Terms(
            one["unit"],
            one["bytes_counted"],
            one["bytes"],
            one["block_size"],
            one.get("datatype"),
            one.get("movement"),
            one.get("in_place"),
            (one["source"]["numa_domain"], one["destination"]["numa_domain"])
            if one["experiment"] == OF_DOMAINS
            else (),
            off,
            count if (count := one.get("engines") or 1) > 1 else None,
        )
        yield Subject(transfer, terms), one


def _end(place: Place) -> End:
    return place["memory"], place["device"]
