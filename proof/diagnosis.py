"""Draw faults on four node models, diagnose them, and count what is named.

python -m proof.diagnosis            # 500 single and 500 double faults; 12 minutes
python -m proof.diagnosis --write    # into docs/evidence/diagnosis.md
python -m proof.diagnosis --simulate    # the healthy nodes anew, no more
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from diagnosis import planted, sessions
from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT

PAGE = ROOT / "docs" / "evidence" / "diagnosis.md"

BLOCK = "drawn faults"

#: The most sessions on the page whose faults were not named.
MOST_WRONG = 6


@cache
def _node(model: str) -> planted.Node:
    return planted.Node(model)


def count(model: str, number: int, faults: int, seed: int) -> tuple[Counter[str], float, list[str]]:
    """Draw sessions with faults until so many miss a limit; return what was named of them.

    :param faults: of each session; without any the session is healthy.
    :returns: counts, the longest time of a diagnosis in s, and sentences on what was not named.
    """
    node, rng, seen = _node(model), random.Random(f"{model} {faults} {seed}"), Counter[str]()
    longest, wrong = 0.0, []
    with sessions.chosen_once():
        while seen["sessions"] < number:
            drawn = [node.draw(rng) for _ in range(faults)]
            hidden = faults > 1 and node.hidden(rng, drawn)
            session = node.sample(rng, drawn)
            if faults and not session.misses:
                seen["no limit missed"] += 1
                continue
            seen["hidden" if hidden else "sessions"] += 1
            began = time.process_time()
            found = planted.diagnosis(node, session)
            longest = max(longest, time.process_time() - began)
            if not faults:
                seen["missed a limit"] += bool(session.misses)
                seen["diagnosed"] += bool(found and found.degraded)
                continue
            planted_names = {one.component.label for one in drawn}
            named = planted.named(found)
            hit = {one for one in planted_names if any(one in names for names in named)}
            alone = [next(iter(names)) for names in named if len(names) == 1]
            false = [one for one in alone if one not in planted_names]
            if hidden:
                seen["hidden named"] += hit == planted_names
                seen["hidden false"] += bool(false)
                continue
            seen["named"] += hit == planted_names
            seen["alone"] += planted_names <= set(alone)
            seen["healthy named alone"] += bool(false)
            if hit != planted_names or false:
                told = ", ".join(
                    f"{one.component.label} -{100 * (1 - one.left):.1f} %" for one in drawn
                )
                wrong.append(f"{model}: {told}: {found.sentence if found else 'no diagnosis'}")
    return seen, longest, wrong


def lines(number: int, seed: int, shares: int) -> Iterator[str]:
    """Yield the table of what was named, and what was not."""
    yield f"Drawn with the seed {seed}; the longest diagnosis is in seconds of a core:"
    yield ""
    columns = ("faults", "model", "sessions", "all named", "named alone",
               "a healthy one named alone", "longest")  # fmt: skip
    yield f"| {' | '.join(columns)} |"
    yield "|" + len(columns) * "---|"
    wrong: list[str] = []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for faults in (1, 2):
            total: Counter[str] = Counter()
            for model in sessions.MODELS:
                own = number // len(sessions.MODELS)
                parts = [own // shares + (one < own % shares) for one in range(shares)]
                jobs = [pool.submit(count, model, part, faults, seed * 100 + one)
                        for one, part in enumerate(parts)]  # fmt: skip
                seen, longest = Counter[str](), 0.0
                for one in jobs:
                    counted, took, said = one.result()
                    seen += counted
                    longest = max(longest, took)
                    wrong += said
                total += seen
                yield _row(faults, model, seen, f"{longest:.1f} s")
            yield _row(faults, "all", total, "")
    yield ""
    yield (
        f"In {total['hidden']} further sessions one of two faults was not to be seen beside the "
        f"other; both were named in {total['hidden named']} of them, and a healthy one alone in "
        f"{total['hidden false']}."
    )
    healthy = [count(model, 50, 0, seed) for model in sessions.MODELS]
    diagnosed = sum(one["diagnosed"] for one, _, _ in healthy)
    missed = sum(one["missed a limit"] for one, _, _ in healthy)
    yield ""
    yield f"Healthy: of 200 sessions {missed} missed a limit, and {diagnosed} had a diagnosis."
    yield ""
    yield "Where one was not named, or a healthy one was named alone:"
    yield ""
    yield from (f"- {one}" for one in wrong[:MOST_WRONG])
    if len(wrong) > MOST_WRONG:
        yield f"- and {len(wrong) - MOST_WRONG} more."


def _row(faults: int, model: str, seen: Counter[str], longest: str) -> str:
    sessions_ = seen["sessions"]
    cells = [faults, model, sessions_, *(
        f"{100 * seen[one] / sessions_:.1f} %" for one in ("named", "alone", "healthy named alone")
    ), longest]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="single and double faults each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write it into the page")
    parser.add_argument("--simulate", action="store_true", help="the healthy nodes anew, no more")
    chosen = parser.parse_args(arguments)
    if chosen.simulate:
        for model in sessions.MODELS:
            path = sessions.write(model)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} KB")
        return
    found = []
    for line in lines(chosen.count, chosen.seed, shares=2):
        print(line, flush=True)
        found.append(line)
    if chosen.write:
        whole_files.rewrite_block(PAGE, {BLOCK: "\n".join(found) + "\n"})


if __name__ == "__main__":
    main()
