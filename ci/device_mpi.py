#!/usr/bin/env python3
"""Prints the collectives that this machine's MPI crashes in on device buffers: PROGRAM RANKS.

Each trial of the program ends at its first crash, so it is repeated without that collective. `all`
means that not even messages between two devices arrive.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: What a trial tries, in its order.
MESSAGES = "exchange"
COLLECTIVES = ("bcast", "allgather", "reduce", "allreduce", "reduce_scatter")

#: Seconds of a trial, which takes two.
LIMIT_S = 120


def main() -> None:
    """Repeat the trial until it ends well."""
    program, ranks = sys.argv[1:]
    without: list[str] = []
    while len(without) < len(COLLECTIVES):
        left = trial(program, ranks, without)
        if left is None or MESSAGES in left:
            print("all")
            return
        crashed = [name for name in COLLECTIVES if name in left and name not in without]
        if not crashed:
            break
        without.append(crashed[0])
    print(",".join(without))


def trial(program: str, ranks: str, without: list[str]) -> list[str] | None:
    """Return what a trial did not finish or left out; None where it wrote no document."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "trial.json")
        command = ["mpirun", "-np", ranks, program, "--trial", "--types", "float"]
        command += ["--counts", "1009", "--output", str(output)]
        command += ["--without", ",".join(without)] if without else []
        try:
            subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
            return [entry["operation"] for entry in json.loads(output.read_text())["skipped"]]
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            return None


if __name__ == "__main__":
    main()
