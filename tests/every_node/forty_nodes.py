#!/usr/bin/env python3
"""Measures the same simulated nodes, three of them faulty, over one way to reach them.

    python tests/every_node/forty_nodes.py slurm|ssh|flux [NODES]

The command `fabricheck every-node` is killed when all sessions, or half of the checks by ssh, have
begun. What goes on without it is waited for and judged: one line tells the statuses, then the lines
that drain, and how long it took. For flux FLUX_URI is an instance whose nodes are node1, node2 ...;
the others are started here, on this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "rfm")]

# ruff: noqa: E402
import real_slurm
import real_ssh

from fabricheck.node import load, node_directory
from fabricheck.node.system import platform_json

#: What is wrong with which node.
FAULTY = {
    "node7": "device-3-memory-slow",
    "node19": "link-0-1-half-width",
    "node33": "link-0-6-gone",
}

#: A program that measures another node where its node is a faulty one.
PROGRAM = """#!/bin/sh
name=${{FABRICHECK_NODE_NAME:-$SLURMD_NODENAME}}
: > "{folder}/begun/$name"
[ ! -e "{folder}/$name.json" ] || FABRICHECK_SIMULATED_NODE={folder}/$name.json
export FABRICHECK_SIMULATED_NODE
exec {program} "$@"
"""

#: In the allocation of Slurm, which would end with the command.
IN_JOB = """
fabricheck "$@" &
echo $! > "{folder}/command"
wait
left() {{ squeue --noheader --steps --jobs=$SLURM_JOB_ID --format=%j; }}
while left | grep -q fabricheck-every-node; do sleep 1; done
"""


def prepare(folder: Path) -> dict[str, str]:
    """Write programs, nodes and site; return the environment of the command."""
    (folder / "begun").mkdir()
    (folder / "bin").mkdir()
    (folder / "sites").mkdir()
    healthy = json.loads(platform_json(load("mi250x")))
    for node, overlay in FAULTY.items():
        file = node_directory() / "overlays" / f"{overlay}.yaml"
        faulty = json.loads(platform_json(load("mi250x", str(file))))
        # What it claims to be is healthy.
        (folder / f"{node}.json").write_text(json.dumps({**faulty, "node": healthy["node"]}))
    for program in (ROOT / "build" / "sim" / "bin").iterdir():
        target = folder / "bin" / program.name
        if program.name in ("stream", "p2p", "inventory"):
            target.write_text(PROGRAM.format(folder=folder, program=program))
            target.chmod(0o755)
        else:
            target.symlink_to(program)
    # What the programs were built from is not what is looked at here.
    site = (ROOT / "tests" / "rfm" / "cluster_site.py").read_text()
    extras = '"node": "mi250x",'
    accepts = f'{extras} "accepts": ["other-programs"],'
    (folder / "sites" / "cluster_site.py").write_text(site.replace(extras, accepts))
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FABRICHECK_RESULTS": str(folder / "results"),
        "FABRICHECK_SITES": str(folder / "sites"),
        "FABRICHECK_SIM_PROGRAMS": str(folder / "bin"),
        "FABRICHECK_HOST_PROGRAMS": str(ROOT / "build" / "host" / "bin"),
        "RFM_CONFIG_FILES": str(ROOT / "config" / "settings.py"),
    }


def checks(partition: str) -> list[str]:
    """Return the arguments of ReFrame."""
    topics = [f"reframe_checks/{topic}" for topic in ("stream", "p2p", "topology", "best_devices")]
    path = [word for topic in topics for word in ("-c", topic)]
    return ["--", *path, f"--system=cluster:{partition}", "--mode=smoke"]


def running(results: Path) -> bool:
    """Return whether a session of these results runs."""
    wanted = f"FABRICHECK_RESULTS={results}".encode()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_session = b"bin/reframe" in (folder / "cmdline").read_bytes()
            if is_session and wanted in (folder / "environ").read_bytes():
                return True
    return False


def until(state, what: str) -> None:
    """Wait, for half an hour at most."""
    ends = time.monotonic() + 1800
    while not state():
        assert time.monotonic() < ends, what
        time.sleep(0.5)


def measure(way: str, nodes: int, folder: Path) -> None:
    """Measure, kill the command, and print what was judged."""
    environment = prepare(folder)
    begun = folder / "begun"
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        every_node = ["every-node", "--minutes", "25", "--at-once", str(nodes), "--no-stage"]
        if way == "ssh":
            hosts = stack.enter_context(real_ssh.started(folder / "ssh", nodes))
            environment |= {"SSH_CONFIG": str(hosts.config), "FABRICHECK_SESSION": "forty"}
            command = ["fabricheck", "every-node", "--hosts", f"node[1-{nodes}]", *checks("hosts")]
        elif way == "slurm":
            cluster = stack.enter_context(real_slurm.started(folder / "s", nodes=nodes))
            environment["SLURM_CONF"] = str(cluster / "slurm.conf")
            command = [
                *("salloc", "--quiet", "--no-kill", "--exclusive", f"--nodes={nodes}"),
                *("--gpus-per-node=8", "--time=30", "bash", "-c", IN_JOB.format(folder=folder)),
                *("bash", *every_node, "--no-network", *checks("allocation")),
            ]
        else:
            command = ["fabricheck", *every_node, "--no-network", *checks("flux")]
        with (folder / "said").open("w") as said:
            run = subprocess.Popen(
                command, env=environment, cwd=ROOT, stdout=said, stderr=said, text=True
            )
        until(lambda: len(list(begun.iterdir())) == nodes, "all nodes have begun")
        killed = int((folder / "command").read_text()) if way == "slurm" else run.pid
        os.kill(killed, 9)
        at = time.monotonic() - began
        run.wait()
        until(lambda: not running(folder / "results"), "all sessions have ended")
        took = time.monotonic() - began
    (name, *_) = [
        "forty" if way == "ssh" else path.name
        for path in (folder / "results").glob("every-node/*" if way != "ssh" else "reports")
    ]
    judged = subprocess.run(
        ["fabricheck", "verdict", name], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    (file,) = (folder / "results").rglob("verdict.json")
    rows = json.loads(file.read_text())["nodes"]
    print(
        f"{way}: {nodes} nodes, command killed after {at:.0f} s, all ended after {took:.0f} s; "
        f"exit code {judged.returncode}; {dict(Counter(row['status'] for row in rows))}"
    )
    for row in rows:
        if row["status"] != "PASS":
            print(f"  {row['node']} {row['status']}: {row['reasons'][0]['sentence']}")
    print(*(line for line in judged.stdout.splitlines() if line.startswith("# ")), sep="\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="n") as _name:
        if sys.argv[1] == "ssh":
            (Path(_name) / "ssh").mkdir()
        measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40, Path(_name))
