"""The cases of recorded rounds: our values, those of the tools, ratios and verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fabricheck.core.errors import UsageError
from fabricheck.core.statistics import FEWEST_FOR_INTERVAL, median_interval
from fabricheck.tools.rounds import manifest as manifests
from fabricheck.tools.rounds.cases import CASES, Case, Cell
from fabricheck.tools.rounds.manifest import Manifest
from fabricheck.tools.rounds.reading import OurOutput, ToolOutput

Verdict = Literal["reached", "equal within the spread", "missed", "not judged (one round)"]

#: Short of the target, by nobody knows how much in spreads: one round tells none.
ONE_ROUND: Verdict = "not judged (one round)"


@dataclass(frozen=True)
class Values:
    """One value of each round that has one, in the case's unit.

    half_width: of ours the largest relative half width of a round's 95 % interval; of a tool, which
        tells none, 0.
    """

    values: tuple[float, ...]
    half_width: float = 0.0

    @property
    def median(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float | None:
        """Half the width of what holds the true median of rounds, over the median.

        From six rounds on that is the 95 % interval, below it their range (five: 93.75 %). Never
        less than the half width inside a round. None for one round, which tells nothing of others.
        """
        if len(self.values) < 2:
            return None
        interval = (min(self.values), max(self.values))
        if len(self.values) >= FEWEST_FOR_INTERVAL:
            interval = median_interval(self.values) or interval
        return max((interval[1] - interval[0]) / 2 / self.median, self.half_width)


@dataclass(frozen=True)
class Row:
    """One case in one folder: our values, None without any, and those of each cell with some."""

    case: Case
    ours: Values | None
    tools: tuple[tuple[Cell, Values], ...]

    @property
    def best(self) -> tuple[Cell, Values] | None:
        """The best tool, by its median: the highest bandwidth or the shortest time."""
        if not self.tools:
            return None
        choose = max if self.case.higher_is_better else min
        return choose(self.tools, key=lambda one: one[1].median)

    @property
    def ratio(self) -> float | None:
        """Our median over that of the best tool."""
        if self.ours is None or self.best is None:
            return None
        return self.ours.median / self.best[1].median

    @property
    def half_width(self) -> float | None:
        """Half width of the ratio: both spreads, as independent ones; None where one is unknown."""
        if self.ours is None or self.best is None or self.ratio is None:
            return None
        spreads = (self.ours.spread, self.best[1].spread)
        if spreads[0] is None or spreads[1] is None:
            return None
        return self.ratio * math.hypot(spreads[0], spreads[1])

    @property
    def verdict(self) -> Verdict | None:
        """Against the case's target; None without one, or where there is nothing to compare."""
        if self.ratio is None or self.case.target is None:
            return None
        short = self.case.target - self.ratio
        if not self.case.higher_is_better:
            short = -short
        if short <= 0:
            return "reached"
        if self.half_width is None:
            return ONE_ROUND
        return "equal within the spread" if short <= self.half_width else "missed"


@dataclass(frozen=True)
class Occasion:
    """What one folder holds; folder is its name, with as many above it as tell it from others."""

    folder: str
    manifest: Manifest
    rows: tuple[Row, ...]


def read_all(folders: Sequence[Path]) -> list[Occasion]:
    """Read recorded rounds of several folders, and name each so that it is told from the others.

    :raises UsageError: when a folder is named twice.
    :raises FabricheckError: as `read`.
    """
    places = [folder.resolve() for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{folder} is named twice, and would count twice.")
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


def read(folder: Path) -> Occasion:
    """Read recorded rounds.

    Launches that failed give no value; every other one has to be whole.

    :raises NotFoundError: when the folder holds no rounds, or a file of a launch is gone.
    :raises InvalidDocument: when the manifest or a document is invalid, or of other devices.
    :raises FabricheckError: when a tool's output is damaged.
    """
    manifest = manifests.load(folder)
    ours: dict[str, list[OurOutput]] = {}
    theirs: dict[str, list[ToolOutput]] = {}
    for ran in manifest.launches:
        path = folder / ran.output
        if ran.failure is not None:
            continue
        if ran.tool is None:
            found = OurOutput(path, ran.name)
            found.check(manifest.devices)
            ours.setdefault(ran.name, []).append(found)
        else:
            output = ToolOutput(path, ran.tool, ran.name)
            output.check(path, len(manifest.devices))
            theirs.setdefault(ran.name, []).append(output)
    rows = tuple(_row(case, ours.get(case.ours.launch, []), theirs) for case in CASES)
    return Occasion(folder.resolve().name, manifest, rows)


def _row(case: Case, ours: Sequence[OurOutput], theirs: dict[str, list[ToolOutput]]) -> Row:
    told = [output.value(case) for output in ours]
    mine = None
    if told:
        mine = Values(tuple(value for value, _ in told), max(width for _, width in told))
    tools = []
    for cell in case.tools:
        values = [output.value(cell) for output in theirs.get(cell.launch or cell.tool, [])]
        there = tuple(value for value in values if value is not None)
        if there:
            tools.append((cell, Values(there)))
    return Row(case, mine, tuple(tools))
