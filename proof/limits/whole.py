"""Whole sessions of the set node on simulated nodes that are healthy: whether one of them fails.

The parts of a node have fixed factors of their own, of the sizes that `drawn` assumes, and each
sample has noise.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fabricheck.node import load
from limits.drawn_sessions import SIGMAS
from proof.faults.sessions import Said, Session, Site

#: The noise of a sample, a part of it: between that of kernels and that of host links on H200.
NOISE = "0.005"


def node(seed: int) -> list[dict[str, object]]:
    """Return what makes a node of the healthy one: of each part its bandwidth."""
    model, part, pageable = load("mi250x"), SIGMAS["kernel or engine"], SIGMAS["pageable"]
    sigmas = {f"memory of domain{one.index}": part for one in model.domains}
    for device in range(len(model.devices)):
        sigmas |= {
            f"memory of device{device}": part,
            f"host link * device{device}": part,
            f"copy engine of * device{device}-*": part,
            f"pageable copies * device{device}": pageable,
        }
    cables = {(f"link {a}-{b}", f"link {b}-{a}"): part for a, b in model.links}
    rng = random.Random(seed)
    return [
        {"names": [names] if isinstance(names, str) else list(names),
         "bandwidth_factor": round(1 + rng.gauss(0, sigma), 5)}
        for names, sigma in (*sigmas.items(), *cables.items())
    ]  # fmt: skip


def run(folder: Path, seed: int, references: str | None) -> Said:
    """Run a session of the set node in a folder, and return what is said of it."""
    folder.mkdir(parents=True)
    session = Session(overlay={"resources": node(seed)}, variables={"FABRICHECK_SIM_NOISE": NOISE})
    return session(folder, Site(references))


def lines(count: int) -> Iterator[str]:
    """Run sessions judged by each set of limits, two at a time; yield how they ended."""
    for references, partition in ((None, "local:sim-mi250x"), ("lumi", "lumi:gpu")):
        with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
            folders = [Path(scratch) / str(seed) for seed in range(count)]
            every = list(pool.map(run, folders, range(count), [references] * count))
        ended = Counter(said.status for said in every)
        how = ", ".join(f"{number} {status}" for status, number in ended.most_common())
        passed = sum(len(said.passed) for said in every)
        yield f"- limits of `{partition}`: {how} of {count} sessions; {passed} checks passed."
        for said in every:
            yield from (f"  - {status}: {sentence}" for status, sentence in said.sentences)
