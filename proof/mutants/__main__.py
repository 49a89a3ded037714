"""Make the mutants of the catalogue, run their tests, and write which test saw each."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from proof.mutants import page
from proof.mutants.catalogue import MUTANTS
from proof.mutants.mutant import Mutant, Outcome, run
from proof.mutants.runs import NotRunError, Tree

_T = TypeVar("_T")
_R = TypeVar("_R")


def _on_trees(
    do: Callable[[_T, Tree], _R], what: Iterable[_T], trees: Sequence[Tree]
) -> Iterator[_R]:
    """Do something in as many processes as there are trees, each of which one has at a time."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(each: _T) -> _R:
        tree = free.get()
        try:
            return do(each, tree)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        yield from pool.map(one, what)


def _unchanged(tests: Sequence[str], tree: Tree) -> str | None:
    try:
        return tree.first_failure(tests)
    except NotRunError as error:
        return f"{' '.join(tests)} ({error})"


def _made(mutant: Mutant, tree: Tree) -> Outcome | str:
    try:
        return run(mutant, tree)
    except NotRunError as error:
        return f"{mutant.name}: its tests did not run: {error}"


def main() -> int:
    """Run the mutants; 1 where one is otherwise than the catalogue says."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", help="those whose names have this text")
    parser.add_argument("--workers", type=int, default=2, help="mutants at the same time")
    options = parser.parse_args()
    wanted = [one for one in MUTANTS if (options.only or "") in one.name]
    if not wanted:
        parser.error(f"no mutant has '{options.only}' in its name")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        trees = [Tree.copied(Path(scratch) / str(one)) for one in range(options.workers)]
        tests = list(dict.fromkeys(tuple(mutant.tests) for mutant in wanted))
        failures = list(filter(None, _on_trees(_unchanged, tests, trees)))
        if failures:
            print(f"These fail without a mutant: {', '.join(failures)}.", file=sys.stderr)
            return 1
        took = time.monotonic() - started
        print(f"All tests pass without a mutant, after {took:.0f} s.", flush=True)
        outcomes: list[Outcome] = []
        unexpected: list[str] = []
        for made in _on_trees(_made, wanted, trees):
            if isinstance(made, str):
                unexpected.append(made)
                continue
            outcomes.append(made)
            unexpected += filter(None, [made.unexpected])
            print(f"{made.killed_by or 'SURVIVES'}: {made.mutant.name}", flush=True)
    seen = sum(one.killed_by is not None for one in outcomes)
    print(f"{seen} of {len(wanted)} are seen, after {time.monotonic() - started:.0f} s.")
    if options.only is None and not unexpected:
        page.write(outcomes)
    print("\n".join(unexpected), file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
