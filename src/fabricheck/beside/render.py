"""The tables of recorded rounds as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricheck.beside.cases import ARRAY_BYTES
from fabricheck.beside.launches import TOOLS
from fabricheck.beside.table import ONE_ROUND, Campaign, Manifest, Row, Values
from fabricheck.core import amounts, show

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
    if not campaigns:
        return "Nothing is recorded yet.\n"
    parts = [_LEGEND, *("\n".join(_campaign(campaign)) + "\n" for campaign in campaigns)]
    return "\n".join(parts)


def _campaign(one: Campaign) -> Iterator[str]:
    manifest = one.manifest
    yield f"## {one.folder}"
    yield ""
    yield f"- {manifest.started}, {_rounds(manifest)}."
    for device in manifest.devices:
        ids = f"{device.pci_address or 'no PCI address'}, {device.unique_id or 'no id'}"
        yield f"- Device {device.index}: {device.name}, {ids}."
    versions = dict(manifest.versions)
    ran = {launch.tool for launch in manifest.launches}
    for name, tool in TOOLS.items():
        if name in ran:
            versions.setdefault(tool.title, "of a version that it does not tell")
    yield f"- Versions: {show.listed(f'{name} {version}' for name, version in versions.items())}."
    for name, why in manifest.left_out.items():
        yield f"- {name} is left out: {why}."
    yield ""
    tools = [name for name, tool in TOOLS.items() if manifest.runtime in tool.runtimes]
    columns = ["case", "unit", "fabricheck", *(TOOLS[name].title for name in tools), *_JUDGED]
    yield from show.markdown(columns, (_cells(row, tools) for row in one.rows))
    yield ""
    judged = [row for row in one.rows if row.comparison.target is not None]
    counted: list[str | None] = [row.verdict for row in judged]
    words = ["reached", "equal within the spread", "missed"]
    words += [ONE_ROUND] * (ONE_ROUND in counted)
    yield f"Of {len(counted)} targets: {show.listed(f'{counted.count(w)} {w}' for w in words)}."
    nothing = counted.count(None)
    if nothing:
        yield f"Nothing to compare in {nothing}."
    yield from _failures(one)
    yield ""
    yield "Commands of the first round:"
    yield ""
    yield "```text"
    yield from (launch.command for launch in manifest.launches if launch.round == 1)
    yield "```"


def _rounds(manifest: Manifest) -> str:
    rounds = f"{manifest.rounds} round{'s' * (manifest.rounds > 1)}"
    if manifest.finished is not None:
        return rounds
    how = "broken off" if manifest.signal is None else f"ended by signal {manifest.signal}"
    for number, names in manifest.missing().items():
        return f"{rounds} requested, {how} in round {number}, launch {names[0]}"
    return f"{rounds} requested, {how} after the last launch that is known"


def _failures(one: Campaign) -> Iterator[str]:
    manifest = one.manifest
    missing = [
        f"round {number}: {'all' if len(names) == len(manifest.planned) else show.listed(names)}"
        for number, names in manifest.missing().items()
    ]
    if missing:
        yield f"Missing: {'; '.join(missing)}."
    if one.manifest.failures:
        yield ""
        yield "Failures:"
        yield ""
        yield from (f"- {failure.sentence}" for failure in one.manifest.failures)


def _cells(row: Row, tools: Sequence[str]) -> Iterator[str]:
    case = row.comparison
    yield case.name
    yield case.unit
    yield "not measured" if row.ours is None else _values(row.ours, own=True)
    for tool in tools:
        yield _of_tool(row, tool)
    yield _ratio(row)
    target = case.target
    yield "none" if target is None else f"{'>=' if case.higher_is_better else '<='} {target:.2f}"
    yield _verdict(row)
    yield case.note


def _of_tool(row: Row, tool: str) -> str:
    found = [values for cell, values in row.tools if cell.tool == tool]
    if not found:
        return "no value" if any(cell.tool == tool for cell in row.comparison.tools) else ""
    return "; ".join(_values(values) for values in found)


def _values(values: Values, own: bool = False) -> str:
    median, low, high = map(amounts.number, (values.median, min(values.values), max(values.values)))
    width = f" ± {100 * values.half_width:.2f} %" if own else ""
    return f"{median}{width} ({low} to {high}, n={len(values.values)})"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    width = row.half_width
    return f"{row.ratio:.3f} ± {'unknown' if width is None else f'{width:.4f}'}"


def _verdict(row: Row) -> str:
    if row.ratio is None:
        return "nothing to compare"
    if row.verdict is None:
        return "not judged"
    return "**missed**" if row.verdict == "missed" else row.verdict
