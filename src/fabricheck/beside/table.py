"""The results of recorded rounds: their manifest, our values, those of the tools, ratios, verdicts,
and their tables as Markdown.

The manifest has the launches, their order, and the failures.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fabricheck.beside.cases import ARRAY_BYTES, CHASE_BYTES, Cell, Comparison
from fabricheck.beside.launches import COMPARISONS, NAMES, TOOLS, order
from fabricheck.beside.outputs import PlacedValues
from fabricheck.core import amounts, show, statistics
from fabricheck.core.errors import InvalidFile, NotFoundError, OtherRunError, UsageError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.show import listed
from fabricheck.core.text import count, read_text
from fabricheck.core.whole_files import write_whole
from fabricheck.results import document
from fabricheck.results.model import ResultDocument

#: Its file name in the folder.
FILE = "rounds.json"


class Failure(StrictModel):
    """Why a launch gave no value: one sentence, and fabricheck's exit code for it.

    code: 128 + n if signal n ended the rounds.
    """

    code: int
    sentence: str


class LaunchRecord(StrictModel):
    """One launch, as it was started.

    round: from 1. command: without folders; output: the file in the same folder. exit_code: None
    after a time limit, its own or that of the rounds, or when it could not be started; 128 + n if
    signal n ended it.
    """

    round: int
    name: str
    tool: str | None
    command: str
    output: str
    exit_code: int | None
    seconds: float
    failure: Failure | None = None

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the rounds while it ran."""
        return self.failure is not None and self.failure.code > 128


class Device(StrictModel):
    """One device, as our documents describe it."""

    index: int
    name: str
    pci_address: str | None
    unique_id: str | None


class Manifest(StrictModel, frozen=False):
    """The manifest; launches are in the order in which they ran.

    started, finished: dates of ISO 8601. finished is None in an unfinished folder.

    runtime: of our programs.

    planned: the launches of each round, in the order of the first.

    left_out: tools that did not run, and why.

    versions: of our programs, of each tool that reports one, of runtime and driver.

    failures: those of the launches, and those that belong to no launch.
    """

    format: Literal["fabricheck-rounds"] = "fabricheck-rounds"
    format_version: Literal[1] = 1
    started: str
    finished: str | None = None
    rounds: int
    runtime: Literal["cuda", "rocm"]
    devices: tuple[Device, ...]
    versions: dict[str, str]
    left_out: dict[str, str]
    planned: tuple[str, ...]
    launches: list[LaunchRecord] = []
    failures: list[Failure] = []

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the rounds."""
        return next((failure.code - 128 for failure in self.failures if failure.code > 128), None)

    def missing(self) -> dict[int, tuple[str, ...]]:
        """Return by round the launches that did not finish, in the order of the round."""
        ended = {(launch.round, launch.name) for launch in self.launches if not launch.interrupted}
        missing = {
            number: tuple(
                launch for launch in order(self.planned, number) if (number, launch) not in ended
            )
            for number in range(1, self.rounds + 1)
        }
        return {number: names for number, names in missing.items() if names}


def load(folder: Path) -> Manifest:
    """Load the manifest of a folder.

    :raises NotFoundError: when there is none.
    :raises InvalidFile: when it cannot be read, is not a manifest, or has a launch of unknown
        name.
    """
    path = folder / FILE
    if not path.exists():
        raise NotFoundError(f"{folder} contains no recorded rounds: it has no {FILE}.")
    manifest = read_model(path, Manifest)
    for number, launch in enumerate(manifest.launches):
        known = NAMES.get(launch.tool, ("unknown tool",))
        if launch.name not in known:
            whose = launch.tool or "our programs"
            reason = f"{launch.name} is not a launch of {whose} ({listed(known)})"
            raise InvalidFile(path, f"launches[{number}]", reason)
    return manifest


def save(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a folder; a concurrent reader sees the previous one.

    :raises NotFoundError: when it cannot be written; the previous one then stays.
    """
    text = json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n"
    write_whole(folder / FILE, text)


Verdict = Literal[
    "reached",
    "equal within the spread",
    "missed",
    "not judged (one round)",
    "not judged",
    "nothing to compare",
]

#: Below the target; one round has no spread to compare the difference with.
_ONE_ROUND: Verdict = "not judged (one round)"

#: Without a value of ours, or of a tool.
NOTHING: Verdict = "nothing to compare"

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
            reason = outcome["message"] or f"the run ended as {outcome['status']}"
            raise InvalidFile(path, None, reason.rstrip("."))

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

        :raises InvalidFile: when there is not exactly one such series, or it has another unit or
            size.
        """
        ours, name = comparison.ours, comparison.name
        matching = [
            series
            for series in self.document["series"]
            if series["operation"] == ours.operation
            and series["role"] in ours.roles
            and ours.direction in (None, series["direction"])
            and ours.to_host in (None, series["destination"]["memory"] != "device")
        ]
        # A set of several pairs has shares and a sum; a set of one pair has a single series.
        if len(matching) != 1:
            reason = (
                f"has {len(matching)} series of {ours.operation} ({name}); exactly one is required"
            )
            raise InvalidFile(self.path, None, reason)
        (series,) = matching
        if (factor := _FACTORS.get((series["unit"], comparison.unit))) is None:
            raise InvalidFile(
                self.path,
                None,
                f"{ours.operation} is in {series['unit']}, but {name} in {comparison.unit}",
            )
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


def read_printed(path: Path, tool: str, launch: str, devices: Sequence[Device]) -> PlacedValues:
    """Parse the output of a tool.

    :param launch: the name of the launch.
    :param devices: the devices that our programs see.
    :raises FabricheckError: when it is cut off or damaged, as the parsers of `outputs` say.
    :raises OtherRunError: when the tool saw another number of devices, or others.
    """
    count = len(devices)
    printed = TOOLS[tool].launches[launch].parse(read_text(path), str(path), count)
    if printed.devices and len(printed.devices) != count:
        reason = f"it has {len(printed.devices)} devices, but our programs see {count}"
        raise OtherRunError(str(path), None, reason)
    for device, address in zip(devices, printed.addresses, strict=False):
        seen_at = device.pci_address
        if seen_at is not None and seen_at.partition(":")[2] != address:
            reason = f"its device {device.index} is at {address}, that of our programs at {seen_at}"
            raise OtherRunError(str(path), None, reason)
    return printed


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
        choose = max if self.comparison.higher_is_better else min
        return choose(self.tools, key=lambda tool: tool[1].median, default=None)

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
    def verdict(self) -> Verdict:
        """The verdict against the target, or why there is none."""
        if self.ratio is None:
            return NOTHING
        if self.comparison.target is None:
            return "not judged"
        short = self.comparison.target - self.ratio
        if not self.comparison.higher_is_better:
            short = -short
        if short <= 0:
            return "reached"
        if self.half_width is None:
            return _ONE_ROUND
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
    ends = (place.parts[-number:] for number in range(1, len(place.parts) + 1))
    return "/".join(
        next(end for end in ends if sum(other.parts[-len(end) :] == end for other in places) == 1)
    )


def read(folder: Path) -> Campaign:
    """Read recorded rounds.

    Failed launches give no value; every other one must be complete.

    :raises NotFoundError: when the folder has no rounds, or the file of a launch is missing.
    :raises InvalidFile: when the manifest or a document is invalid, or has other devices.
    :raises FabricheckError: when a tool's output is damaged.
    """
    manifest = load(folder)
    ours: dict[str, list[OurOutput]] = {}
    printed: dict[str, list[PlacedValues]] = {}
    for launch in manifest.launches:
        path = folder / launch.output
        if launch.failure is not None:
            continue
        if launch.tool is None:
            measured = OurOutput(path, launch.name)
            measured.check(manifest.devices, manifest.runtime)
            ours.setdefault(launch.name, []).append(measured)
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


#: The part of a page with the tables, see `fabricheck.core.whole_files`.
BLOCK = "fabricheck beside table"

#: The columns after those of the values.
_JUDGED = ("ratio", "target", "verdict", "note")

#: The introduction above the tables.
_LEGEND = f"""\
Programs and tools ran in turn, every second round backwards. Arrays are of {ARRAY_BYTES >> 20} MiB,
GB/s is 1e9 bytes per second, bytes count once. A value is the median over the rounds, with their
range and number n; in a round ours is the median of its samples, and ± the largest half width of
a round's 95 % interval. Ratio: our median over the best tool's, ± what the rounds of both are
apart: half of their range (from six rounds on, of their 95 % interval; at least the ± of ours), as
the root of the sum of squares. Target: of the ratio, at least, of times (us, ns) at most. *Equal
within the spread*: short of the target, by no more than that ±; of one round nothing tells it.
"""


def section(campaigns: Sequence[Campaign]) -> str:
    """Return all tables, one for each folder, with their explanation; ends with a newline."""
    parts = [_LEGEND, *("\n".join(_campaign(campaign)) + "\n" for campaign in campaigns)]
    return "\n".join(parts)


def _campaign(campaign: Campaign) -> Iterator[str]:
    manifest = campaign.manifest
    yield f"## {campaign.folder}"
    yield ""
    yield f"- {manifest.started}, {_rounds(manifest)}."
    for device in manifest.devices:
        ids = f"{device.pci_address or 'no PCI address'}, {device.unique_id or 'no id'}"
        yield f"- Device {device.index}: {device.name}, {ids}."
    ran = {TOOLS[launch.tool].title for launch in manifest.launches if launch.tool is not None}
    versions = manifest.versions | {
        title: "of a version that it does not tell"
        for title in (tool.title for tool in TOOLS.values())
        if title in ran - manifest.versions.keys()
    }
    yield f"- Versions: {show.listed(f'{name} {version}' for name, version in versions.items())}."
    for name, why in manifest.left_out.items():
        yield f"- {name} is left out: {why}."
    yield ""
    tools = [name for name, tool in TOOLS.items() if manifest.runtime in tool.runtimes]
    columns = ["case", "unit", "fabricheck", *(TOOLS[name].title for name in tools), *_JUDGED]
    yield from show.markdown(columns, (_cells(row, tools) for row in campaign.rows))
    yield ""
    judged = [row for row in campaign.rows if row.comparison.target is not None]
    counts = Counter(row.verdict for row in judged)
    words: list[Verdict] = ["reached", "equal within the spread", "missed"]
    if _ONE_ROUND in counts:
        words.append(_ONE_ROUND)
    yield f"Of {len(judged)} targets: {show.listed(f'{counts[w]} {w}' for w in words)}."
    if counts[NOTHING]:
        yield f"Nothing to compare in {counts[NOTHING]}."
    yield from _failures(campaign)
    yield ""
    yield "Commands of the first round:"
    yield ""
    yield "```text"
    yield from (launch.command for launch in manifest.launches if launch.round == 1)
    yield "```"


def _rounds(manifest: Manifest) -> str:
    rounds = count(manifest.rounds, "round")
    if manifest.finished is not None:
        return rounds
    how = "broken off" if manifest.signal is None else f"ended by signal {manifest.signal}"
    for number, names in manifest.missing().items():
        return f"{rounds} requested, {how} in round {number}, launch {names[0]}"
    return f"{rounds} requested, {how} after the last launch that is known"


def _failures(campaign: Campaign) -> Iterator[str]:
    manifest = campaign.manifest
    missing = [
        f"round {number}: {'all' if len(names) == len(manifest.planned) else show.listed(names)}"
        for number, names in manifest.missing().items()
    ]
    if missing:
        yield f"Missing: {'; '.join(missing)}."
    if campaign.manifest.failures:
        yield ""
        yield "Failures:"
        yield ""
        yield from (f"- {failure.sentence}" for failure in campaign.manifest.failures)


def _cells(row: Row, tools: Sequence[str]) -> list[str]:
    case = row.comparison
    side = ">=" if case.higher_is_better else "<="
    return [
        case.name,
        case.unit,
        "not measured" if row.ours is None else _values(row.ours, is_ours=True),
        *(_of_tool(row, tool) for tool in tools),
        _ratio(row),
        "none" if case.target is None else f"{side} {case.target:.2f}",
        "**missed**" if row.verdict == "missed" else row.verdict,
        case.note,
    ]


def _of_tool(row: Row, tool: str) -> str:
    values_of_tool = [values for cell, values in row.tools if cell.tool == tool]
    if not values_of_tool:
        return "no value" if any(cell.tool == tool for cell in row.comparison.tools) else ""
    return "; ".join(_values(values) for values in values_of_tool)


def _values(values: Values, is_ours: bool = False) -> str:
    median, low, high = map(amounts.number, (values.median, min(values.values), max(values.values)))
    width = f" ± {100 * values.half_width:.2f} %" if is_ours else ""
    return f"{median}{width} ({low} to {high}, n={len(values.values)})"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    width = row.half_width
    return f"{row.ratio:.3f} ± {'unknown' if width is None else f'{width:.4f}'}"
