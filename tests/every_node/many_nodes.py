#!/usr/bin/env python3
"""Runs every-node's driver over many stand-in nodes, and prints what it costs.

    python tests/every_node/many_nodes.py [NODES [DEAD [AT_ONCE]]]

The default is 1000 nodes, of which one in a hundred never begins, and 32 at once.

No Slurm is needed: srun, squeue and scancel are small scripts in a temporary folder. A session
begins after 1 s, leaves a report and ends after some more; a dead one says nothing until it is
ended. One line tells the driver's own processor time and largest memory (without what it starts),
its open files, how often nodes.json was written, and when the last session was started.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from fabricheck.results import requested_nodes
from fabricheck.run.every_node import driver, session
from fabricheck.schedulers.row import Allocation, Node
from fabricheck.schedulers.table import SLURM

#: Seconds from the start of a session to its first check, and from there to its end.
BEGINS_S, MEASURES_S = 1, 60

#: Nothing but the shell and one sleep: two processes, as an srun has.
SRUN = """#!/bin/sh
for option in "$@"; do case $option in --nodelist=*) node=${{option#*=}} ;; esac; done
[ ! -e "{dead}/$node" ] || exec sleep 100000
sleep {begins}
echo "[==========] Running 1 check(s)"
sleep {measures}
mkdir "$FABRICHECK_RESULTS/reports"
: > "$FABRICHECK_RESULTS/reports/run-0.json"
"""

SQUEUE = """#!/bin/sh
cat "{steps}"
"""


def main() -> int:
    """Run, and print one line."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    dead = int(sys.argv[2]) if len(sys.argv) > 2 else nodes // 100
    at_once = int(sys.argv[3]) if len(sys.argv) > 3 else 32
    names = [f"n{number:05}" for number in range(nodes)]
    writes = 0
    written = requested_nodes.write

    def counted(path, requested) -> None:
        nonlocal writes
        writes += 1
        written(path, requested)

    requested_nodes.write = counted
    # What a stand-in takes: the shell and its sleep.
    session.TASKS, session.BYTES = 2, 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "dead").mkdir()
        for node in random.Random(1).sample(names, dead):
            (folder / "dead" / node).touch()
        (folder / "steps").write_text(
            "".join(f"7.{i}|fabricheck-every-node|{node}\n" for i, node in enumerate(names))
        )
        srun = SRUN.format(dead=folder / "dead", begins=BEGINS_S, measures=MEASURES_S)
        squeue = SQUEUE.format(steps=folder / "steps")
        for program, text in (("srun", srun), ("squeue", squeue), ("scancel", "#!/bin/sh\n")):
            (folder / "bin" / program).write_text(text)
            (folder / "bin" / program).chmod(0o755)
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        allocation = Allocation(
            SLURM,
            "7",
            {node: Node(state="ALLOCATED") for node in names},
            requested_nodes.now() + timedelta(hours=3),
        )
        # Ended a while after the last healthy one.
        run = driver.Driver(
            ("reframe",), allocation, folder / "results", lambda _: None,
            chosen=("-t", "smoke"), minutes=1.5, at_once=at_once,
        )  # fmt: skip
        began = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_SELF)
        files, last = 0, began
        look = run._look

        def looked(*arguments) -> None:
            nonlocal files, last
            files = max(files, len(list(Path("/proc/self/fd").iterdir())))
            if run._running:
                last = max(last, next(reversed(run._running.values())).began)
            look(*arguments)

        run._look = looked
        run.run()
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        ended = sum(one.how_ended is None for one in run.nodes.nodes.values())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{nodes} nodes, {dead} dead: {took:.0f} s; the driver {cpu:.1f} s of processor time, "
        f"{after.ru_maxrss / 1024:.0f} MiB, {files} open files; nodes.json written {writes} times; "
        f"last start after {last - began:.0f} s; {ended} ended well"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
