"""Possible causes of a value: what was seen of a device, its links, or the host, as a clause.

Each names its device, process or host; `results.state` finds them in a document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import ClassVar, Literal, Protocol, TypeVar, cast

from fabricheck.core.grouping import grouped
from fabricheck.core.show import cut, enumerated, listed, numbered
from fabricheck.core.text import capitalized, count, printable, printable_line
from fabricheck.core.vocabulary import (
    LINK_ERROR_NOUNS,
    LINK_ERROR_WEIGHS,
    LogKind,
    Throttle,
)
from fabricheck.results import log_lines
from fabricheck.results.model import (
    BusyProcess,
)

#: Cores that other processes may keep busy: daemons and the session itself use parts of one.
BUSY_CORES = 1.0

#: The same as a share of all cores: on a host with many cores a few busy ones do no harm.
BUSY_SHARE = 0.05

#: The share of the cores' time that a hypervisor may take; the run waits for all of it.
STOLEN_SHARE = 0.01

#: What new errors of a kind mean: an uncorrected one names hardware, a corrected one cost time at
#: most, and of others it is not known.
Weight = Literal["corrected", "uncorrected", "unclear"]

_WEIGHS: Mapping[str, Weight] = {
    "uncorrected memory error": "uncorrected",
    "corrected memory error": "corrected",
    "PCIe replay": "corrected",
    **{noun: cast(Weight, LINK_ERROR_WEIGHS[kind]) for kind, noun in LINK_ERROR_NOUNS.items()},
}

#: The most characters of a line of a log that are quoted.
LONGEST_LINE = 200


@dataclass(frozen=True, order=True)
class NamedDevice:
    """A device by its index and, where it is known, its PCI address."""

    index: int
    pci_address: str | None

    def text(self, address: bool = True) -> str:
        """Return ``device 6 (0000:df:00.0)``, or without the address."""
        return f"device {self if address else self.index}"

    def __str__(self) -> str:
        return f"{self.index} ({self.pci_address})" if self.pci_address else str(self.index)


class When(Flag):
    """When something was seen: in the snapshot before or after the run, or during the run."""

    BEFORE = auto()
    AFTER = auto()
    MEANWHILE = auto()

    def __str__(self) -> str:
        if When.MEANWHILE in self:
            return "meanwhile"
        sides = [str(side.name).lower() for side in (When.BEFORE, When.AFTER) if side in self]
        return f"{enumerated(sides)} the measurement"


_Self = TypeVar("_Self", bound="Cause")


class Cause(Protocol):
    """A possible cause of a value. SAME: what it has in common with itself in another run."""

    SAME: ClassVar[tuple[str, ...]] = ("device",)

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies the same cause in another run."""
        return (type(self), *(getattr(self, name) for name in self.SAME))

    def clause(self, address: bool = True) -> str:
        """Return it as a clause.

        :param address: whether a device is named with its PCI address.
        """

    def with_(self: _Self, other: _Self) -> _Self:
        """Combine the same cause of two runs."""


def sentence_of(cause: Cause) -> str:
    """Return a cause as a sentence."""
    clause = cause.clause()
    return f"{capitalized(clause)}."


def with_causes(sentence: str, causes: Iterable[Cause], addresses: bool = False) -> str:
    """Append causes to a sentence: ``... is required; device 6 was throttled ...``.

    :param addresses: whether devices are named with their PCI address, which the sentence lacks.
    """
    clauses = "".join(f"; {cause.clause(addresses)}" for cause in causes)
    return f"{sentence.rstrip('.')}{clauses}." if clauses else sentence


@dataclass(frozen=True)
class Use(Cause):
    """Another process that used devices."""

    SAME = ("pid", "user", "command")

    pid: int
    user: str | None
    command: str | None
    devices: tuple[NamedDevice, ...]
    when: When

    def clause(self, address: bool = True) -> str:
        """Return ``process 4711 (copy_loop of user ada) used device 2 (...) before ...``."""
        return (
            f"process {self.pid}{self._who()} used {numbered('device', self.devices)} {self.when}"
        )

    def _who(self) -> str:
        # A process of another container shows neither.
        parts = [self.command or "", f"of user {self.user}" if self.user else ""]
        who = " ".join(part for part in parts if part)
        return f" ({printable_line(who)})" if who else ""

    def with_(self, other: Use) -> Use:
        """Combine devices and times."""
        devices = tuple(sorted({*self.devices, *other.devices}))
        return replace(self, devices=devices, when=self.when | other.when)


@dataclass(frozen=True)
class BusyHost(Cause):
    """Other processes kept cores of the host busy, or a hypervisor took them.

    busy_cores, stolen_cores: mean numbers of cores. cores: all of them. processes: the recorded
    ones that used most.
    """

    SAME = ()

    busy_cores: float
    stolen_cores: float
    cores: int | None
    processes: tuple[BusyProcess, ...]
    when: When

    @property
    def busy(self) -> bool:
        """Whether others used more than a run tolerates."""
        return self.busy_cores > max(BUSY_CORES, BUSY_SHARE * (self.cores or 0))

    @property
    def share(self) -> float | None:
        """The share of the cores that others kept busy or the hypervisor took."""
        return (self.busy_cores + self.stolen_cores) / self.cores if self.cores else None

    def clause(self, address: bool = True) -> str:
        """Return ``others kept 15.8 of 16 cores busy meanwhile, most of it bash of user ...``."""
        of_cores = f" of {count(self.cores, 'core')}" if self.cores else " cores"
        if not self.busy:
            return f"the hypervisor took {self.stolen_cores:.2g}{of_cores} {self.when}"
        steal = (
            f", and the hypervisor took {self.stolen_cores:.2g}"
            if self.stolen_cores > STOLEN_SHARE * (self.cores or 1)
            else ""
        )
        return f"others kept {self.busy_cores:.1f}{of_cores} busy {self.when}{self._who()}{steal}"

    def _who(self) -> str:
        alike = grouped(
            ((process["command"], process["user"]), process["cores"]) for process in self.processes
        )
        if not alike:
            return ""
        (command, user), cores_of_each = max(alike.items(), key=lambda process: sum(process[1]))
        who = f"{command or 'an unknown command'}{f' of user {user}' if user else ''}"
        who = printable_line(who)  # ReFrame prints what a user calls a process
        many, cores = len(cores_of_each), sum(cores_of_each)
        how = "1 process" if many == 1 else f"{many} processes"
        # Only a few processes are recorded: the one that used most is not always among them.
        if cores >= self.busy_cores / 2:
            return f", most of it {who} ({how})"
        return f", {cores:.1f} of them {who} ({how})"

    def with_(self, other: BusyHost) -> BusyHost:
        """Return the busier one, with the times of both."""
        busier = max(self, other, key=lambda side: side.busy_cores + side.stolen_cores)
        return replace(busier, when=self.when | other.when)


@dataclass(frozen=True)
class Throttled(Cause):
    """A device that ran below its clock.

    reasons: why. seconds: time in s throttled by the longest reason, of ``of_seconds`` of the run;
    None where the driver does not count it. clock_mhz: its clock while a snapshot showed a reason;
    None where only the counters did. clock_max_mhz: its highest.
    """

    device: NamedDevice
    reasons: tuple[Throttle, ...]
    seconds: float | None
    of_seconds: float
    clock_mhz: float | None
    clock_max_mhz: float | None
    when: When

    def clause(self, address: bool = True) -> str:
        """Return ``device 6 (...) was throttled by power meanwhile (1,310 of 1,700 MHz)``."""
        facts = []
        if self.seconds is not None:
            facts.append(f"{self.seconds:.3g} of {self.of_seconds:.3g} s")
        if self.clock_mhz is not None:
            most = f" of {self.clock_max_mhz:,.0f}" if self.clock_max_mhz is not None else ""
            facts.append(f"{self.clock_mhz:,.0f}{most} MHz")
        by = enumerated(_BY.get(reason, reason) for reason in self.reasons)
        shown = f" ({listed(facts)})" if facts else ""
        return f"{self.device.text(address)} was throttled by {by} {self.when}{shown}"

    def with_(self, other: Throttled) -> Throttled:
        """Combine reasons and seconds, and keep the lower clock."""
        slower = min(
            self, other, key=lambda side: math.inf if side.clock_mhz is None else side.clock_mhz
        )
        counted = [side for side in (self, other) if side.seconds is not None]
        return replace(
            slower,
            reasons=tuple(dict.fromkeys((*self.reasons, *other.reasons))),
            seconds=sum(side.seconds or 0 for side in counted) if counted else None,
            of_seconds=sum(side.of_seconds for side in counted),
            when=self.when | other.when,
        )


#: Nouns for the schema's words that are not nouns.
_BY = {
    "thermal": "temperature",
    "hardware": "its hardware",
    "other": "another reason reported by its driver",
}


@dataclass(frozen=True)
class Errors(Cause):
    """Errors of a device, or of host memory, counted during the run.

    device: the device, or ``memory controller mc8 (MI200)``. what: ``uncorrected memory error``,
    ``corrected memory error``, ``PCIe replay``, or a noun of `LINK_ERROR_NOUNS`. links: the links
    that had them, where the driver tells. between: whether no program of the session ran then.
    """

    SAME = ("device", "what", "between")

    device: NamedDevice | str
    what: str
    number: int
    links: tuple[int, ...] = ()
    between: bool = False

    @property
    def weighs(self) -> Weight:
        """What new errors of this kind mean."""
        return _WEIGHS[self.what]

    @property
    def of_links(self) -> bool:
        """Whether they are of links, whose errors the vocabulary lists."""
        return self.what in LINK_ERROR_NOUNS.values()

    def clause(self, address: bool = True) -> str:
        """Return ``device 3 (...) had 2 new uncorrected memory errors meanwhile``."""
        on = f" on {numbered('link', self.links)}" if self.links else ""
        errors = count(self.number, f"new {self.what}")
        who = self.device if isinstance(self.device, str) else self.device.text(address)
        return f"{who} had {errors}{on} {'between programs' if self.between else 'meanwhile'}"

    def with_(self, other: Errors) -> Errors:
        """Add both."""
        links = tuple(sorted({*self.links, *other.links}))
        return replace(self, number=self.number + other.number, links=links)


@dataclass(frozen=True)
class CountersBack(Cause):
    """A device whose counters of errors are lower after the run than before it."""

    device: NamedDevice
    whats: tuple[str, ...]

    def clause(self, address: bool = True) -> str:
        """Return ``counters of device 3 (...) went back meanwhile (PCIe replay): ...``."""
        return (
            f"counters of {self.device.text(address)} went back meanwhile ({listed(self.whats)}): "
            "its driver was loaded again or they were set back, and new errors may be missing"
        )

    def with_(self, other: CountersBack) -> CountersBack:
        """Combine what is counted."""
        return replace(self, whats=tuple(dict.fromkeys((*self.whats, *other.whats))))


@dataclass(frozen=True)
class NarrowPcie(Cause):
    """A device whose link to the host uses fewer lanes than it supports.

    most: the lanes that both ends support, or the device where its port is unknown. both_ends:
    whether both are known, and the link was read after the load of a run.
    """

    device: NamedDevice
    width: int
    most: int
    both_ends: bool = False

    def clause(self, address: bool = True) -> str:
        """Return ``the PCIe link of device 3 (...) has 8 of 16 lanes``."""
        return f"the PCIe link of {self.device.text(address)} has {self.width} of {self.most} lanes"

    def with_(self, other: NarrowPcie) -> NarrowPcie:
        """Keep the narrower one."""
        return min(self, other, key=lambda side: side.width)


@dataclass(frozen=True)
class LinksDown(Cause):
    """Links of a device that went down during the run."""

    device: NamedDevice
    links: tuple[int, ...]

    def clause(self, address: bool = True) -> str:
        """Return ``device 3 (...) lost link 2 meanwhile``."""
        return f"{self.device.text(address)} lost {numbered('link', self.links)} meanwhile"

    def with_(self, other: LinksDown) -> LinksDown:
        """Combine the links."""
        return replace(self, links=tuple(sorted({*self.links, *other.links})))


@dataclass(frozen=True)
class Logged(Cause):
    """What a log says of a device, since a program began that ended badly.

    row: that of the table of lines; None where the line has none. device: the device, or a PCI
    address that is none of the document's devices; None where the line names none. text: of the
    first line. number: of the lines of this row on this device.
    """

    SAME = ("node", "kind", "row", "device", "distinct")

    node: str
    kind: LogKind
    row: str | None
    device: NamedDevice | str | None
    text: str
    number: int = 1

    def clause(self, address: bool = True) -> str:
        """Return ``a log of node n1 names hardware of device 2: an uncorrectable ...: "..."``."""
        device = self.device
        who = device.text(address) if isinstance(device, NamedDevice) else device
        if self.kind == "hardware":
            says = f"names hardware of {who}" if who else "names hardware"
        else:
            says = f"has a line{f' on {who}' if who else ''}, no evidence by itself"
        # A text of another's document may have several lines.
        quoted = cut(printable(" ".join(self.text.split())), LONGEST_LINE)
        more = f" and {self.number - 1} more" if self.number > 1 else ""
        return f'a log of node {self.node} {says}: {self._explained()}: "{quoted}"{more}'

    @property
    def distinct(self) -> str | None:
        """The text of a line on hardware without a row, which an older document has."""
        return self.text if self.row is None and self.kind == "hardware" else None

    def _explained(self) -> str:
        row = log_lines.rows().get(self.row or "")
        if row is None or row.meaning is None:
            return "a line of unknown meaning"
        return f"{row.meaning} ({row.advice})" if row.advice else row.meaning

    def with_(self, other: Logged) -> Logged:
        """Add the lines of both."""
        return replace(self, number=self.number + other.number)


def merged(causes: Iterable[_Self]) -> list[_Self]:
    """Return causes, each once: equal causes of several runs are combined."""
    by_key: dict[tuple[object, ...], _Self] = {}
    for cause in causes:
        by_key[cause.key] = by_key[cause.key].with_(cause) if cause.key in by_key else cause
    return list(by_key.values())
