"""What is told of a node's topology, in one form for `inventory` and all vendors' tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, TypeVar

from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.core.lines import Line
from fabricheck.core.show import enumerated
from fabricheck.core.text import count
from fabricheck.node import best_subsets

T = TypeVar("T")
Matrix = tuple[tuple[T, ...], ...]

#: Names of tools for a type that the driver does not tell.
UNKNOWN_TYPES = frozenset({"N/A", "UNKNOWN", "XXXX"})


@dataclass(frozen=True)
class Reported:
    """The devices of a node as they are told; ``None`` is not reported.

    Devices are numbered as by their source: `inventory` as the runtime does, a vendor's tool
    possibly otherwise. Matrices are devices x devices: ``links`` counts the direct links of a pair
    (0: none), ``link_peak_gbs`` is the peak of a single link in GB/s per direction, ``link_types``
    is the tool's name of the type. ``numa`` and ``cpus`` have one entry per device. ``may_be_cut``
    marks a list of devices with an unconfirmed end, which needs another report with a table of all
    pairs. ``description`` is what `inventory` wrote.
    """

    origin: str
    vendor: Literal["amd", "nvidia"]
    count: int
    links: Matrix[int] | None = None
    link_peak_gbs: float | None = None
    link_types: Matrix[str] | None = None
    numa: tuple[int | None, ...] | None = None
    cpus: tuple[str | None, ...] | None = None
    pci: tuple[str, ...] | None = None
    may_be_cut: bool = False
    description: Mapping[str, Any] | None = None

    @property
    def numbered_by_tool(self) -> bool:
        """Whether the devices have the numbers of rocm-smi, and those of HIP may be others."""
        return self.description is None and self.pci is None and self.vendor == "amd"

    def best_subsets(self, k: int) -> tuple[tuple[int, ...], ...]:
        """Return the best sets of k devices by their links, the first in order first.

        :raises UsageError: when the links are not told, or when k is not a number of devices.
        """
        if self.links is None:
            raise UsageError(f"The number of links is not reported in {self.origin}.")
        return best_subsets(self.links, k, self.origin)


@dataclass(frozen=True)
class Mismatch:
    """What differs between a node and its model; see `fabricheck.results.model.Difference`."""

    sentence: str
    devices: tuple[int, ...] = ()
    found: int | None = None
    lost: bool = False


@dataclass(frozen=True)
class Table:
    """A square table of devices, as vendors' tools print it; damage is always an error.

    labels: those that rows and columns share. rows: the lines.
    """

    labels: tuple[str, ...]
    cells: Matrix[str]
    rows: tuple[Line, ...]

    def place(self, a: int, b: int) -> str:
        """Describe a cell in a sentence."""
        return f"'{self.cells[a][b]}' ({self.labels[a]} to {self.labels[b]})"

    def require_symmetry(self, diagonal: str) -> None:
        """Check that both directions of each pair agree, and that each device has the diagonal.

        :raises GarbledOutput: naming the pair and the line of its second direction.
        """
        for a, label in enumerate(self.labels):
            if self.cells[a][a] != diagonal:
                raise self.rows[a].garbled(
                    f"'{self.cells[a][a]}' ({label} to itself) is out of place"
                )
            for b in range(a):
                if self.cells[a][b] != self.cells[b][a]:
                    raise self.rows[a].garbled(
                        f"{label} to {self.labels[b]} is '{self.cells[a][b]}', "
                        f"the way back is '{self.cells[b][a]}'"
                    )


def links_text(links: int) -> str:
    """Return the number of links of a pair as text."""
    return "no direct link" if links == 0 else count(links, "link")


def symmetric(links: Matrix[int]) -> Matrix[int]:
    """Return the links of each pair that both directions have."""
    n = range(len(links))
    return tuple(tuple(min(links[a][b], links[b][a]) for b in n) for a in n)


def _permuted(report: Reported, order: Sequence[int]) -> Reported:
    """Renumber the devices: the new device i is the old device ``order[i]``."""

    def square(matrix: Matrix[T] | None) -> Matrix[T] | None:
        if matrix is None:
            return None
        return tuple(tuple(matrix[a][b] for b in order) for a in order)

    def row(values: tuple[T, ...] | None) -> tuple[T, ...] | None:
        return None if values is None else tuple(values[a] for a in order)

    return replace(
        report,
        links=square(report.links),
        link_types=square(report.link_types),
        numa=row(report.numa),
        cpus=row(report.cpus),
        pci=row(report.pci),
    )


def by_pci(report: Reported, addresses: Sequence[str]) -> Reported:
    """Renumber the devices of a report with addresses, so that device i is at ``addresses[i]``.

    :raises InvalidInputError: when it has other addresses.
    """
    if report.pci is None:
        return report
    for address in addresses:
        if address not in report.pci:
            raise InvalidInputError(
                f"There is no device at PCI address {address} in {report.origin}."
            )
    return _permuted(report, [report.pci.index(address) for address in addresses])


def merge(reports: Sequence[Reported]) -> Reported:
    """Merge several reports about the same node, in the first one's numbering.

    Reports with PCI addresses are matched by them, others by number.

    :raises InvalidInputError: when two reports contradict each other, naming both and the device.
    """
    # A report with addresses comes first, because any other can then be matched with it.
    ordered = sorted(reports, key=lambda report: report.pci is None)
    merged = ordered[0]
    for report in ordered[1:]:
        if report.count != merged.count or report.vendor != merged.vendor:
            raise InvalidInputError(
                f"The node has {merged.count} {merged.vendor} devices in {merged.origin}, "
                f"{report.count} {report.vendor} devices in {report.origin}."
            )
        if merged.pci is not None:
            report = by_pci(report, merged.pci)
        _agree(merged, report)
        merged = replace(
            merged,
            origin=enumerated(dict.fromkeys((merged.origin, report.origin))),
            links=merged.links or report.links,
            link_peak_gbs=merged.link_peak_gbs or report.link_peak_gbs,
            link_types=merged.link_types or report.link_types,
            numa=merged.numa or report.numa,
            cpus=merged.cpus or report.cpus,
            may_be_cut=merged.may_be_cut and report.may_be_cut,
            description=merged.description or report.description,
        )
    return merged


def _agree(first: Reported, second: Reported) -> None:
    for a in range(first.count):
        for b in range(a + 1, first.count):
            if first.links and second.links and first.links[a][b] != second.links[a][b]:
                raise InvalidInputError(
                    f"Pair {a}-{b}: {first.links[a][b]} links in {first.origin}, "
                    f"{second.links[a][b]} in {second.origin}."
                )
            types = [
                (report, report.link_types[a][b])
                for report in (first, second)
                if report.link_types and report.link_types[a][b] not in UNKNOWN_TYPES
            ]
            if len({kind for _, kind in types}) > 1:
                raise InvalidInputError(
                    f"Pair {a}-{b}: {types[0][1]} in {first.origin}, {types[1][1]} in "
                    f"{second.origin}."
                )
            for report, (described, kind) in product((first, second), types):
                links = report.links[a][b] if report.links else 0
                if first.vendor == "amd" and links and kind != "XGMI":
                    raise InvalidInputError(
                        f"Pair {a}-{b}: {count(links, 'link')} in {report.origin}, {kind} in "
                        f"{described.origin}."
                    )
        if first.numa and second.numa and first.numa[a] != second.numa[a]:
            raise InvalidInputError(
                f"Device {a}: NUMA domain {first.numa[a]} in {first.origin}, "
                f"{second.numa[a]} in {second.origin}."
            )
