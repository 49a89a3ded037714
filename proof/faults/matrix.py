"""docs/evidence/faults.md: each fault, how it is made, and what the last run said of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from proof.faults.rows import Outcome, Row
from proof.faults.sessions import ROOT

PAGE = ROOT / "docs" / "evidence" / "faults.md"
#: The most characters of a sentence.
_LONGEST = 300
_COLUMNS = ("#", "fault", "by", "required", "result", "diagnosis")

_HEAD = """# Faults that the suite is tested against

<!-- Written by `make faults`, not by hand. -->

A check that has never been seen to fail proves nothing. `make faults` injects each fault of this
catalogue (`proof/faults/catalogue.py` says how), runs the checks that concern it and some that do
not, and writes the result here. It fails where a row is not caught without a reason, or caught with
one; the quick rows run with all other tests.

- **S**: on the simulated node `local:sim-mi250x`, by
  [an overlay](../reference/node-model.md#overlays).
  **P**: injected by a program (`--inject-fault`). **L**: a substitute for a program, a launcher or
  a tool. **F**: in files, such as documents with counters of a driver that no machine at hand has.
  **H**: recorded on two H200.
- *Required*: the status of the node, what a sentence of that status names, the component that is
  [diagnosed](diagnosis.md), and the nodes with a [live drain line](../result.md#drain). A row is
  *caught* if all of that appears, no other component and no other line, and the checks that the
  fault does not concern pass.
- Values are simulated, but for programs of `local:host`, recordings, and what substitutes and
  documents make up. Nothing here ran on a device of AMD.

`make faults FAULTS="--rows 4,16"` makes some of them, `FAULTS=--without-hours` all but those that
only hours of load show; with `FAULTS="--references lumi"` simulated sessions are judged by the
references of that site instead. None of these writes this page.
"""


def page(outcomes: Sequence[Outcome]) -> str:
    """Return the page of a run of all rows."""
    caught = sum(one.caught for one in outcomes)
    lines = [
        _HEAD,
        f"{caught} of {len(outcomes)} rows are caught.\n",
        _cells(_COLUMNS),
        _cells("---" for _ in _COLUMNS),
        *(line(one) for one in outcomes),
        "",
        "## Not yet",
        "",
        *_not_yet(outcomes),
    ]
    return "\n".join(lines) + "\n"


def line(outcome: Outcome) -> str:
    """Return the line of a row."""
    row, said = outcome.row, outcome.said
    result = "caught" if outcome.caught else f"{said.status}, **not yet**"
    return _cells([*fixed(row), result, _short(said.diagnosis)])


def fixed(row: Row) -> list[str]:
    """Return the cells of a row that no run changes."""
    return [str(row.number), row.fault, row.by, str(row.must)]


def cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the page."""
    for one in text.splitlines():
        if re.match(r"\| \d", one):
            yield [cell.replace(r"\|", "|") for cell in re.split(r"(?<!\\) \| ", one[2:-2])]


def _cells(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def _short(sentence: str) -> str:
    """Return a sentence without what differs from run to run."""
    text = re.sub(r"\s*\n\s*", " ", re.sub(r"/\S*/(?=[\w.]+\.(json|yaml)\b)", ".../", sentence))
    text = re.sub(r"/tmp/\S*/", ".../", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+\d", "(a time)", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _not_yet(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for one in outcomes:
        if not one.caught:
            yield f"- {one.row.number}, {one.row.fault}: {one.row.not_yet}."


def write(outcomes: Sequence[Outcome], path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(outcomes), encoding="utf-8")
