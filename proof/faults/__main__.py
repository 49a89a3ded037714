"""Make the faults of the catalogue, and write the matrix."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from proof.faults import matrix
from proof.faults.catalogue import HOURS, ROWS
from proof.faults.rows import make, outcome
from proof.faults.sessions import Said, Site


def _make(number: int, folder: Path, references: str | None) -> Said:
    return make(ROWS[number], folder / str(number), Site(references))


def main() -> int:
    """Run the rows; 1 where a row is caught or not otherwise than the catalogue says."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--rows", help="their numbers, such as 4,16; without it all of them")
    parser.add_argument(
        "--without-hours",
        action="store_true",
        help="leave out what only hours of load show, which takes 20 minutes",
    )
    parser.add_argument("--references", help="judge simulated sessions by those of a site: lumi")
    parser.add_argument("--keep", type=Path, help="a folder for the sessions, kept")
    parser.add_argument("--workers", type=int, default=2, help="rows at the same time")
    options = parser.parse_args()
    wanted = {int(one) for one in options.rows.split(",")} if options.rows else None
    numbers = [i for i, row in enumerate(ROWS) if wanted is None or row.number in wanted]
    if options.without_hours:
        numbers = [i for i in numbers if ROWS[i] not in HOURS]
    started = time.monotonic()
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(options.workers) as pool:
        made = partial(_make, folder=options.keep or Path(scratch), references=options.references)
        for number, said in zip(numbers, pool.map(made, numbers), strict=True):
            found = outcome(ROWS[number], said)
            outcomes.append(found)
            caught = "caught " if found.caught else "not yet"
            print(f"{caught} {found.row.number:2} {found.row.fault}: {said.status}", flush=True)
    print(f"{sum(one.caught for one in outcomes)} of {len(outcomes)} are caught, after "
          f"{time.monotonic() - started:.0f} s.")  # fmt: skip
    if len(numbers) == len(ROWS) and options.references is None:
        matrix.write(outcomes)
    unexpected = [one.unexpected for one in outcomes if one.unexpected]
    print("\n".join(unexpected), file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
