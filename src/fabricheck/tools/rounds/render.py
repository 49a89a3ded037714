"""The table of recorded rounds as Markdown, and a file's part that is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_whole
from fabricheck.tools.rounds.cases import ARRAY_BYTES, TOOLS, Tool
from fabricheck.tools.rounds.manifest import Manifest
from fabricheck.tools.rounds.table import ONE_ROUND, Occasion, Row, Values

#: The lines between which a file is made; what is around them stays.
BEGIN = "<!-- begin: fabricheck tools table -->"
END = "<!-- end: fabricheck tools table -->"

#: Said once, above the tables.
_LEGEND = f"""\
Programs and tools ran in turn, every second round backwards. Arrays are of {ARRAY_BYTES >> 20} MiB,
GB/s is 1e9 bytes per second, bytes count once. A value is the median over the rounds, with their
range and number n; in a round ours is the median of its samples, and ± the largest half width of
a round's 95 % interval. Ratio: our median over the best tool's, ± what the rounds of both are
apart: half of their range (from six rounds on, of their 95 % interval; at least the ± of ours), as
the root of the sum of squares. Target: of the ratio, at least, of times (us, ns) at most. *Equal
within the spread*: short of the target, by no more than that ±; of one round nothing tells it.
"""


def section(occasions: Sequence[Occasion]) -> str:
    """Return all tables, one for each folder, with what they mean; ends with a line's end."""
    if not occasions:
        return "Nothing is recorded yet.\n"
    parts = [_LEGEND, *("\n".join(_occasion(one)) + "\n" for one in occasions)]
    return "\n".join(parts)


def rewrite(path: Path, text: str) -> str:
    """Return a file's text with what stands between its markers replaced.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: when it has not each marker once, on a line of its own, in order.
    """
    lines = read_text(path).splitlines(keepends=True)
    places = [[i for i, line in enumerate(lines) if line.strip() == m] for m in (BEGIN, END)]
    if [len(found) for found in places] != [1, 1] or places[0] > places[1]:
        raise InvalidInputError(f"{path} needs the lines {BEGIN} and {END}, once each, in order.")
    begin, end = places[0][0], places[1][0]
    return "".join([*lines[: begin + 1], "\n", text, "\n", *lines[end:]])


def write(path: Path, text: str) -> None:
    """Replace what stands between a file's markers.

    :raises NotFoundError: when there is no such file, or it can not be written: then it stays.
    :raises InvalidInputError: as `rewrite`.
    """
    write_whole(path, rewrite(path, text))


def _occasion(one: Occasion) -> Iterator[str]:
    manifest = one.manifest
    yield f"## {one.folder}"
    yield ""
    yield f"- {manifest.started}, {_rounds(manifest)}."
    for device in manifest.devices:
        ids = f"{device.pci_address or 'no PCI address'}, {device.unique_id or 'no id'}"
        yield f"- Device {device.index}: {device.name}, {ids}."
    told = dict(manifest.versions)
    ran = {launch.tool for launch in manifest.launches}
    for tool, name in TOOLS.items():
        if tool in ran:
            told.setdefault(name, "of a version that it does not tell")
    yield f"- Versions: {', '.join(f'{name} {version}' for name, version in told.items())}."
    for name, why in manifest.left_out.items():
        yield f"- {name} is left out: {why}."
    yield ""
    yield from _table(one.rows)
    yield ""
    judged = [row for row in one.rows if row.case.target is not None]
    counted: list[str | None] = [row.verdict for row in judged]
    words = ["reached", "equal within the spread", "missed"]
    words += [ONE_ROUND] * (ONE_ROUND in counted)
    yield f"Of {len(counted)} targets: {', '.join(f'{counted.count(w)} {w}' for w in words)}."
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
    asked = f"{manifest.rounds} round{'s' * (manifest.rounds > 1)}"
    if manifest.complete:
        return asked
    how = "broken off" if manifest.signal is None else f"ended by signal {manifest.signal}"
    for number, names in manifest.missing().items():
        return f"{asked} asked for, {how} in round {number}, launch {names[0]}"
    return f"{asked} asked for, {how} after the last launch that is known"


def _failures(one: Occasion) -> Iterator[str]:
    manifest = one.manifest
    missing = [
        f"round {number}: {'all' if len(names) == len(manifest.names) else ', '.join(names)}"
        for number, names in manifest.missing().items()
    ]
    if missing:
        yield f"Missing: {'; '.join(missing)}."
    if one.manifest.failures:
        yield ""
        yield "Failures:"
        yield ""
        yield from (f"- {failure.sentence}" for failure in one.manifest.failures)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    heads = ["case", "unit", "fabricheck", *TOOLS.values(), "ratio", "target", "verdict", "note"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join(['---'] * len(heads))}|"
    for row in rows:
        yield f"| {' | '.join(_cells(row))} |"


def _cells(row: Row) -> Iterator[str]:
    case = row.case
    yield case.name
    yield case.unit
    yield "not measured" if row.ours is None else _values(row.ours, own=True)
    for tool in TOOLS:
        yield _of_tool(row, tool)
    yield _ratio(row)
    target = case.target
    yield "none" if target is None else f"{'>=' if case.higher_is_better else '<='} {target:.2f}"
    yield _verdict(row)
    yield case.note


def _of_tool(row: Row, tool: Tool) -> str:
    found = [values for cell, values in row.tools if cell.tool == tool]
    if not found:
        return "no value" if any(cell.tool == tool for cell in row.case.tools) else ""
    return "; ".join(_values(values) for values in found)


def _values(values: Values, own: bool = False) -> str:
    low, high = min(values.values), max(values.values)
    width = f" ± {100 * values.half_width:.2f} %" if own else ""
    count = len(values.values)
    return f"{_number(values.median)}{width} ({_number(low)} to {_number(high)}, n={count})"


def _number(value: float) -> str:
    """Return five significant digits, as many as the tools print."""
    before = len(str(int(value)))
    return f"{value:.{max(5 - before, 0)}f}" if value >= 1 else f"{value:.4f}"


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
