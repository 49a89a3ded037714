"""The results of recorded rounds: our values, those of the tools, ratios and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fabricheck.beside import manifest as manifests
from fabricheck.beside.cases import ARRAY_BYTES, CHASE_BYTES, Cell, Comparison, Ours
from fabricheck.beside.launches import COMPARISONS, TOOLS
from fabricheck.beside.manifest import Device, Manifest
from fabricheck.beside.outputs import PlacedValues
from fabricheck.core import statistics
from fabricheck.core.errors import InvalidFile, OtherRunError, UsageError
from fabricheck.core.text import read_text
from fabricheck.results import document
from fabricheck.results.model import ResultDocument, Series

Verdict = Literal["reached", "equal within the spread", "missed", "not judged (one round)"]

#: Below the target; one round has no spread to compare the difference with.
ONE_ROUND: Verdict = "not judged (one round)"

#: Factors from a document's unit to a comparison's.
_FACTORS = {("GB/s", "GB/s"): 1.0, ("us", "us"): 1.0, ("us", "ns"): 1000.0}


class OurOutput:
    """The result document of one of our launches, verified and complete."""

    def __init__(self, path: Path, launch: str) -> None:
        """Read the document.

        :param launch: its name.
        :raises NotFoundError: when there is none.
        :raises InvalidFile: when it is invalid, or that of a failed run.
        """
        self.path, self.launch = path, launch
        self.document: ResultDocument = document.load(path)
        outcome = self.document["outcome"]
        if not self.document["complete"] or outcome["status"] != "good":
            said = outcome["message"] or f"the run ended as {outcome['status']}"
            raise InvalidFile(path, None, said.rstrip("."))

    def check(self, devices: Sequence[Device], runtime: str) -> None:
        """Check that it has all compared values of this runtime, and is of these devices.

        :raises InvalidFile: when something is missing, or the devices differ.
        """
        if devices_of(self.document) != tuple(devices):
            raise InvalidFile(self.path, None, "has other devices than its manifest")
        for comparison in COMPARISONS[runtime]:
            if comparison.ours.launch == self.launch:
                self.value(comparison)

    def value(self, comparison: Comparison) -> tuple[float, float]:
        """Return the median in the comparison's unit, bytes once, and its relative half width.

        :raises InvalidFile: when there is not exactly one such series, or it has other sizes.
        """
        ours, name = comparison.ours, comparison.name
        found = [series for series in self.document["series"] if _is(ours, series)]
        # A set of several pairs has shares and a sum; a set of one pair has a single series.
        if len(found) != 1:
            reason = (
                f"has {len(found)} series of {ours.operation} ({name}); exactly one is required"
            )
            raise InvalidFile(self.path, None, reason)
        (series,) = found
        factor = _FACTORS.get((series["unit"], comparison.unit))
        if factor is None:
            reason = f"{ours.operation} is in {series['unit']}, but {name} in {comparison.unit}"
            raise InvalidFile(self.path, None, reason)
        wanted = {"GB/s": ARRAY_BYTES, "us": series["bytes"], "ns": CHASE_BYTES}[comparison.unit]
        if series["bytes"] != wanted:
            reason = f"{ours.operation} is of {series['bytes']} B, but {name} of {wanted} B"
            raise InvalidFile(self.path, None, reason)
        if series["bytes_counted"] == "read+write":
            factor /= 2
        return factor * series["median"], series["relative_half_width"] or 0.0


def devices_of(document: ResultDocument) -> tuple[Device, ...]:
    """Return the devices of a document as a manifest names them."""
    return tuple(
        Device.model_validate({name: device[name] for name in Device.model_fields})  # type: ignore[literal-required]
        for device in document["devices"]
    )


def _is(ours: Ours, series: Series) -> bool:
    return (
        series["operation"] == ours.operation
        and series["role"] in ours.roles
        and ours.direction in (None, series["direction"])
        and ours.to_host in (None, series["destination"]["memory"] != "device")
    )


def read_printed(path: Path, tool: str, launch: str, devices: Sequence[Device]) -> PlacedValues:
    """Parse the output of a tool.

    :param launch: the name of the launch.
    :param devices: the devices that our programs see.
    :raises FabricheckError: when it is cut off or damaged, as the parsers of `outputs` say.
    :raises OtherRunError: when the tool saw another number of devices, or others.
    """
    count = len(devices)
    found = TOOLS[tool].parse(read_text(path), str(path), launch, count)
    if found.devices and len(found.devices) != count:
        reason = f"it has {len(found.devices)} devices, but our programs see {count}"
        raise OtherRunError(str(path), None, reason)
    for device, address in zip(devices, found.addresses, strict=False):
        own = device.pci_address
        if own is not None and own.partition(":")[2] != address:
            reason = f"its device {device.index} is at {address}, that of our programs at {own}"
            raise OtherRunError(str(path), None, reason)
    return found


@dataclass(frozen=True)
class Values:
    """One value for each round that has one, in the comparison's unit.

    half_width: for our programs, the largest relative half width of a round's 95 % interval; 0 for
    a tool, which reports none.
    """

    values: tuple[float, ...]
    half_width: float = 0.0

    @property
    def median(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float | None:
        """Half the width of an interval around the true median of rounds, over the median.

        From six rounds on this is the 95 % interval, below that their range (five: 93.75 %). It is
        never below the half width inside a round. It is None for one round, which has no spread.
        """
        if len(self.values) < 2:
            return None
        between = statistics.relative_half_width(self.values)
        if between is None:
            between = (max(self.values) - min(self.values)) / 2 / self.median
        return max(between, self.half_width)


@dataclass(frozen=True)
class Row:
    """One comparison in one folder: our values, None without any, and those of cells with some."""

    comparison: Comparison
    ours: Values | None
    tools: tuple[tuple[Cell, Values], ...]

    @property
    def best(self) -> tuple[Cell, Values] | None:
        """The best tool by its median: the highest bandwidth or the shortest time."""
        if not self.tools:
            return None
        choose = max if self.comparison.higher_is_better else min
        return choose(self.tools, key=lambda one: one[1].median)

    @property
    def ratio(self) -> float | None:
        """Our median over that of the best tool."""
        if self.ours is None or self.best is None:
            return None
        return self.ours.median / self.best[1].median

    @property
    def half_width(self) -> float | None:
        """Half width of the ratio, from independent spreads; None if one is unknown."""
        if self.ours is None or self.best is None or self.ratio is None:
            return None
        spreads = (self.ours.spread, self.best[1].spread)
        if spreads[0] is None or spreads[1] is None:
            return None
        return self.ratio * math.hypot(spreads[0], spreads[1])

    @property
    def verdict(self) -> Verdict | None:
        """The verdict against the target; None without a target, or with nothing to compare."""
        if self.ratio is None or self.comparison.target is None:
            return None
        short = self.comparison.target - self.ratio
        if not self.comparison.higher_is_better:
            short = -short
        if short <= 0:
            return "reached"
        if self.half_width is None:
            return ONE_ROUND
        return "equal within the spread" if short <= self.half_width else "missed"


@dataclass(frozen=True)
class Campaign:
    """The content of one folder; ``folder`` is its name, with enough parents to be unique."""

    folder: str
    manifest: Manifest
    rows: tuple[Row, ...]


def read_all(folders: Sequence[Path]) -> list[Campaign]:
    """Read recorded rounds of several folders, each with a unique name.

    :raises UsageError: when a folder is named twice.
    :raises FabricheckError: as `read`.
    """
    places = [folder.resolve() for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{folder} is named twice and would count twice.")
    return [
        replace(read(folder), folder=_name(place, places))
        for folder, place in zip(folders, places, strict=True)
    ]


def _name(place: Path, places: Sequence[Path]) -> str:
    for count in range(1, len(place.parts)):
        parts = place.parts[-count:]
        if sum(other.parts[-count:] == parts for other in places) == 1:
            return "/".join(parts)
    return str(place)


def read(folder: Path) -> Campaign:
    """Read recorded rounds.

    Failed launches give no value; every other one must be complete.

    :raises NotFoundError: when the folder has no rounds, or the file of a launch is missing.
    :raises InvalidFile: when the manifest or a document is invalid, or has other devices.
    :raises FabricheckError: when a tool's output is damaged.
    """
    manifest = manifests.load(folder)
    ours: dict[str, list[OurOutput]] = {}
    printed: dict[str, list[PlacedValues]] = {}
    for launch in manifest.launches:
        path = folder / launch.output
        if launch.failure is not None:
            continue
        if launch.tool is None:
            found = OurOutput(path, launch.name)
            found.check(manifest.devices, manifest.runtime)
            ours.setdefault(launch.name, []).append(found)
        else:
            output = read_printed(path, launch.tool, launch.name, manifest.devices)
            printed.setdefault(launch.name, []).append(output)
    rows = tuple(
        _row(comparison, ours.get(comparison.ours.launch, []), printed)
        for comparison in COMPARISONS[manifest.runtime]
    )
    return Campaign(folder.resolve().name, manifest, rows)


def _row(
    comparison: Comparison, ours: Sequence[OurOutput], printed: Mapping[str, Sequence[PlacedValues]]
) -> Row:
    values = [output.value(comparison) for output in ours]
    mine = None
    if values:
        mine = Values(tuple(value for value, _ in values), max(width for _, width in values))
    tools = []
    for cell in comparison.tools:
        outputs = printed.get(cell.launch, [])
        there = tuple(
            cell.factor * output.values[cell.place]
            for output in outputs
            if cell.place in output.values
        )
        if there:
            tools.append((cell, Values(there)))
    return Row(comparison, mine, tuple(tools))
