"""Draw slips by a seed, run the tests that `make check` would choose, and write which saw each.

With `--record FILE` each outcome is appended to a file at once, and those that are there are not
made again: a run can be ended and taken up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path

from proof.mutants import chosen
from proof.mutants.runs import ROOT, NotRunError
from proof.slips import cpp, page
from proof.slips.drawing import ROOMS, Slip, drawn
from proof.slips.record import Outcome, Record


def outcome(slip: Slip, scratch: str) -> Outcome:
    """Make a slip in a copy of the tree, and run the tests that are chosen for it.

    A module that cannot be imported any more is seen by whatever starts.

    :param scratch: the folder of the copies.
    """
    tree = chosen.copied(scratch)
    module = ".".join(Path(slip.path).relative_to("src").with_suffix("").parts)
    environment = {**os.environ, "PYTHONPATH": str(tree.folder / "src")}
    with tree.changed(slip.path, slip.after):
        imported = subprocess.run(
            [sys.executable, "-c", f"import {module}"], env=environment, capture_output=True
        )
    if imported.returncode:
        return Outcome(slip, "(it cannot be imported)")
    return Outcome(slip, chosen.see(slip, scratch).test)


def outcome_of_cpp(slip: Slip, scratch: str) -> Outcome:
    """Compile a slip of C++ in a copy of the tree, and run the tests that see it.

    It does not count where it does not compile or changes nothing.
    """
    try:
        return Outcome(slip, cpp.see(slip, scratch))
    except NotRunError as error:
        print(f"not counted, {error}: {slip.name}", flush=True)
        return Outcome(slip, None, counts=False)


def outcomes_of_cpp(
    seed: int, number: int, scratch: str, pool: Pool, record: Record
) -> Iterator[Outcome]:
    """Yield what comes of so many slips of C++ that change a program."""
    slips = cpp.drawn(ROOT, seed)
    while number > 0:
        # Some do not compile, and others are drawn for them.
        part = list(islice(slips, number))
        for each in record.completed(part, partial(outcome_of_cpp, scratch=scratch), pool):
            if each.counts:
                number -= 1
                yield each


def main() -> int:
    """Draw and run the slips; 1 where one survives that is no mutant since and has no reason."""
    parser = argparse.ArgumentParser(prog="make slips", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--number", type=int, default=300, help="slips to draw")
    parser.add_argument("--cpp", type=int, default=60, help="slips of C++ to draw")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="rooms of the package")
    parser.add_argument("--workers", type=int, default=2, help="slips at the same time")
    parser.add_argument("--record", type=Path, help="file of outcomes, to take a run up")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    started = time.monotonic()
    slips = list(drawn(ROOT, options.seed, options.number, options.rooms.split(",")))
    print(
        f"{len(slips)} slips of Python are drawn, after {time.monotonic() - started:.0f} s.",
        flush=True,
    )
    record = Record(options.record)
    with tempfile.TemporaryDirectory() as scratch, Pool(options.workers) as pool:
        outcomes = record.completed(slips, partial(outcome, scratch=scratch), pool)
        outcomes += outcomes_of_cpp(options.seed, options.cpp, scratch, pool, record)
    seen = sum(each.seen_by is not None for each in outcomes)
    print(f"{seen} of {len(outcomes)} are seen, after {time.monotonic() - started:.0f} s.")
    if options.write:
        page.write(options.seed, outcomes)
    return 1 if any(each.is_unexplained for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
