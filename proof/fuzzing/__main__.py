"""Feed the readers of foreign text with damaged text; kill sessions at random moments."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT
from proof.fuzzing import kills
from proof.fuzzing.judging import CHANGED, RIGHT, SENTENCE, UNSEEN
from proof.fuzzing.readers import readers
from proof.fuzzing.running import Fuzzer

PAGE, BLOCK = ROOT / "docs" / "evidence" / "fuzzing.md", "recorded run"

#: Failures that are shown of one reader.
SHOWN = 6


def main() -> int:
    """Do what the command line says; 1 where a reader did what it must not."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, help="of each reader, instead of a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", action="append", help="its name; without it all of them")
    parser.add_argument("--case", help="one case again: SEED.NUMBER as a failure says it")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--kills", type=int, help="kill so often, instead of damaging texts")
    options = parser.parse_args()
    if options.kills is not None:
        return kill(options.kills, options.seed)
    every = readers()
    names = options.reader or list(every)
    unknown = [name for name in names if name not in every]
    if unknown:
        parser.error(f"there is no reader {unknown[0]}; there are {', '.join(every)}")
    chosen = {name: every[name] for name in names}
    with tempfile.TemporaryDirectory(prefix="fabricheck-fuzzing-") as folder:
        if options.case is not None:
            seed, _, number = options.case.partition(".")
            fuzzer = Fuzzer(chosen, Path(folder), int(seed))
            for name in names:
                print(fuzzer.case(name, int(number)) or f"{name}: {fuzzer.counts[name].outcomes}")
            return 1 if fuzzer.failures else 0
        fuzzer = Fuzzer(chosen, Path(folder), options.seed)
        began = time.monotonic()
        shown: Counter[str] = Counter()
        for failure in fuzzer.run(options.seconds, options.cases):
            shown[failure.reader] += 1
            if shown[failure.reader] <= SHOWN:
                print(failure, flush=True)
        told = report(fuzzer, time.monotonic() - began)
        print(told)
        if options.write:
            whole_files.rewrite_block(PAGE, {BLOCK: f"{told}\n"})
    return 1 if fuzzer.failures else 0


def kill(count: int, seed: int) -> int:
    """Kill programs and sessions, and print what was lost; 1 where anything was."""
    began = time.monotonic()
    left = []
    with tempfile.TemporaryDirectory(prefix="fabricheck-kills-") as folder:
        for one in kills.run(count, seed, Path(folder)):
            left.append(one)
            print(f"{len(left):3} killed after {one.after_s:.2f} s: {one.kept} series were kept, "
                  f"{one.lost} are lost; the last file was {one.age_s:.2f} s old",
                  *one.problems, sep="\n      ", flush=True)  # fmt: skip
    kept, lost = sum(one.kept for one in left), sum(one.lost for one in left)
    early, oldest = sum(one.kept == 0 for one in left), max(one.age_s for one in left)
    print(f"{len(left)} kills, seed {seed}: {kept} series were in files right before, {lost} are "
          f"lost; {early} came before any was in one; the last file was at most {oldest:.1f} s "
          f"old; {time.monotonic() - began:.0f} s.")  # fmt: skip
    return 1 if lost else 0


def report(fuzzer: Fuzzer, seconds: float) -> str:
    """Return what came of the cases: a table with a row for each reader, and a sentence."""
    words = (SENTENCE, RIGHT, CHANGED, UNSEEN, "failure")
    lines = [f"| reader | cases | {' | '.join(words)} |", f"|---|{'---|' * (len(words) + 1)}"]
    total: Counter[str] = Counter()
    for name, counts in fuzzer.counts.items():
        total += counts.outcomes
        cells = " | ".join(str(counts.outcomes[word]) for word in words)
        lines.append(f"| {name} | {counts.cases} | {cells} |")
    lines.append(f"| all | {total.total()} | {' | '.join(str(total[word]) for word in words)} |")
    sentence = (
        f"{len(fuzzer.failures)} failures in {total.total()} cases of {len(fuzzer.counts)} "
        f"readers, seed {fuzzer.seed}, after {seconds:.0f} s."
    )
    return "\n".join([*lines, "", sentence])


if __name__ == "__main__":
    sys.exit(main())
