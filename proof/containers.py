"""What is told in containers that hide something: each by bubblewrap, on this machine.

python -m proof.containers                   # all containers; five minutes of an idle machine
python -m proof.containers --only user,shm   # some of them
python -m proof.containers --write           # into docs/evidence/containers.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forbidden
from driver_trees import Tree
from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT
from nic_trees import FRONTIER

PAGE = ROOT / "docs" / "evidence" / "containers.md"

#: A site of this machine's memory with small arrays: what is told is asked, and no speed.
SITE = """
import runpy

site = runpy.run_path({local!r})["site_configuration"]
(system,) = site["systems"]
system |= {{"partitions": system["partitions"][:1]}}
system["partitions"][0]["extras"] |= {{
    "array_bytes": 16 << 20, "arrays_fit_caches": True, "mpi_bytes": 1 << 20,
}}
environment = site["environments"][0] | {{"target_systems": ["local"]}}
site_configuration = {{"systems": [system], "environments": [environment]}}
"""

#: The folder in which each container has its own results and the composed node.
PLACE = "{place}"


@dataclass(frozen=True)
class Container:
    """A container: what it hides, and how.

    options: of bwrap. variables: of the environment. group: the file of a control group's quota
    and its text. refused: whether its profile refuses calls about the places of memory. node:
    whether `fabricheck node health` looks at a composed node, in place of a session.
    """

    name: str
    hides: str
    options: Sequence[str] = ()
    variables: Sequence[tuple[str, str]] = ()
    before: Sequence[str] = ()
    quota: float | None = None
    refused: bool = False
    node: bool = False


def masked(*files: str) -> list[str]:
    """Return the options that put an empty file in the place of each."""
    return [word for file in files for word in ("--ro-bind", f"{PLACE}/empty", file)]


#: Where the composed node shows interfaces of its NICs.
_INTERFACES = (
    "sys/class/net",
    "sys/class/cxi",
    *(
        f"sys/devices/pci0000:{number}0/{bridge}/{nic}/net"
        for number, (bridge, _, nic, _) in enumerate(FRONTIER)
    ),
)

CONTAINERS = (
    Container("plain", "nothing; all but the results is read-only"),
    Container("sys", "`/sys`", ["--tmpfs", "/sys"]),
    Container("cores", "all cores but one", before=["taskset", "--cpu-list", "0"]),
    Container("quota", "time: a quota of half a core", quota=0.5),
    Container(
        "user",
        "the names of users: the user is a number",
        ["--unshare-user", "--uid", "12345", "--gid", "12345"],
        [("USER", ""), ("LOGNAME", "")],
    ),
    Container(
        "folders",
        "`/tmp` and the home, which are read-only or missing",
        ["--remount-ro", "/tmp"],
        [("HOME", "/nonexistent")],
    ),
    Container(
        "results", "the results folder, which is read-only",
        ["--ro-bind", f"{PLACE}/results", f"{PLACE}/results"],
    ),
    Container(
        "shm", "`/dev/shm` of the machine: its own has 64 MiB",
        ["--size", str(64 << 20), "--tmpfs", "/dev/shm"],
    ),
    Container("dev", "all devices, the kernel's log among them", ["--dev", "/dev"]),
    Container(
        "proc",
        "`/proc/meminfo`, `cpuinfo`, `stat` and `loadavg`, which are empty",
        masked("/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/loadavg"),
    ),
    Container("pid", "the processes of the machine", ["--unshare-pid"]),
    Container(
        "name",
        "the network and the name of the machine",
        ["--unshare-net", "--unshare-uts", "--hostname", "3f2a9c0de1b2"],
    ),
    Container("profile", "where pages are: the calls are refused", refused=True),
    Container("node", "nothing, of a composed node with eight dies", node=True),
    Container(
        "two",
        "six of eight devices, whose files are missing",
        ["--tmpfs", f"{PLACE}/tree/dev/dri",
         "--dev-bind", "/dev/null", f"{PLACE}/tree/dev/dri/renderD128",
         "--dev-bind", "/dev/null", f"{PLACE}/tree/dev/dri/renderD129"],
        node=True,
    ),
    Container("node-sys", "`/sys` of that node", ["--tmpfs", f"{PLACE}/tree/sys"], node=True),
    Container(
        "log", "the kernel's log of that node, which nobody may read",
        ["--bind", f"{PLACE}/dev", f"{PLACE}/tree/dev"],
        node=True,
    ),
    Container(
        "nics", "the network of that node: a network namespace of its own",
        [word for folder in _INTERFACES for word in ("--tmpfs", f"{PLACE}/tree/{folder}")],
        node=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What was told in a container: the exit code, the status and the sentences."""

    code: int
    status: str
    reasons: Sequence[str]
    caveats: Sequence[str]


class Machine:
    """A folder with what containers read, and the programs of a build."""

    def __init__(
        self, place: Path, programs: Path, checks: Sequence[str] = ("--mode=smoke",)
    ) -> None:
        self.place, self.programs, self.checks = place, programs, checks
        (place / "sites").mkdir()
        (place / "sites" / "local.py").write_text(
            SITE.format(local=str(ROOT / "config" / "sites" / "local.py"))
        )
        (place / "empty").touch()
        Tree(place / "tree")
        shutil.copytree(place / "tree" / "dev", place / "dev")
        (place / "dev" / "kmsg").unlink()

    def ask(self, container: Container) -> Told:
        """Start what is asked in a container, and return what was told."""
        return self._health(container) if container.node else self._session(container)

    def _session(self, container: Container) -> Told:
        results = self.place / container.name
        results.mkdir()
        reframe = Path(sys.executable).with_name("reframe")
        command = [reframe, "--nocolor", "--system=local:host", *self.checks, "-r"]
        ended = self._run(container, results, command)
        if not (results / "reports").is_dir():
            return Told(ended.returncode, "no session", [self._last(ended)], [])
        judged = self._run(Container("", ""), results, [*_FABRICHECK, "verdict", "--json"])
        (node,) = json.loads(judged.stdout)["nodes"]
        reasons = [f"{each['rule']}: {each['sentence']}" for each in node["reasons"]]
        caveats = [*node["settings"], *node["caveats"]]
        return Told(judged.returncode, node["status"], reasons, caveats)

    def _health(self, container: Container) -> Told:
        results = self.place / container.name
        results.mkdir()
        command = [
            *_FABRICHECK, "node", "health", "mi250x", f"--root={self.place}/tree", "--json",
            f"--programs={self.programs}", f"--state={results}/look.json",
        ]  # fmt: skip
        ended = self._run(container, results, command)
        if not ended.stdout:
            return Told(ended.returncode, "no look", [self._last(ended)], [])
        found = json.loads(ended.stdout)
        node = found["verdict"]
        reasons = [f"{each['rule']}: {each['sentence']}" for each in node["reasons"]]
        return Told(ended.returncode, node["status"], reasons, found["notes"])

    def _last(self, ended: subprocess.CompletedProcess[str]) -> str:
        """Return the sentence of an error, or the last line, without the place of this folder."""
        lines = (ended.stderr.strip() or ended.stdout.strip() or "nothing was said").splitlines()
        errors = [line for line in lines if line.startswith(("ERROR: ", "fabricheck: "))]
        return (errors[0] if errors else lines[-1]).replace(str(self.place), "")

    def _run(
        self, container: Container, results: Path, command: Sequence[Any]
    ) -> subprocess.CompletedProcess[str]:
        options = [word.replace(PLACE, str(self.place)) for word in container.options]
        environment = os.environ | {
            "FABRICHECK_RESULTS": str(results),
            "FABRICHECK_SITES": str(self.place / "sites"),
            "FABRICHECK_HOST_PROGRAMS": str(self.programs),
            "FABRICHECK_SESSION": "",
            "RFM_CONFIG_FILES": str(ROOT / "config" / "settings.py"),
            "TMPDIR": "/tmp",
        }
        environment |= dict(container.variables)
        box = [
            "bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc",
            "--tmpfs", "/tmp", "--ro-bind", ROOT, ROOT, "--bind", self.place, self.place,
            "--die-with-parent", *options,
        ]  # fmt: skip
        shell = ["bash", "-c", f'{_TEMPORARY}\nexec "$@"', "bash"]
        refuse: Callable[[], None] | None = None
        if container.refused:
            refuse = forbidden.forbid_memory_calls
        with _quota(container.quota) as within:
            return subprocess.run(
                [*within, *container.before, *map(str, box), *shell, *map(str, command)],
                env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
                preexec_fn=refuse,
            )  # fmt: skip


_FABRICHECK = [Path(sys.executable).with_name("fabricheck")]

#: As env.sh has it.
_TEMPORARY = """if ! [ -w "${TMPDIR:-/tmp}" ]; then
  export TMPDIR="$FABRICHECK_RESULTS/tmp"
  mkdir -p "$TMPDIR"
fi"""


@contextlib.contextmanager
def _quota(cores: float | None) -> Iterator[Sequence[str]]:
    """Give the words that start a command in a control group with a quota of time.

    The groups are those of version 1 or 2, and only root may make one.
    """
    if cores is None:
        yield []
        return
    first = Path("/sys/fs/cgroup/cpu")
    group = (first if first.is_dir() else first.parent) / f"fabricheck-proof-{os.getpid()}"
    group.mkdir()
    try:
        if first.is_dir():
            (group / "cpu.cfs_quota_us").write_text(str(int(100_000 * cores)))
        else:
            (group / "cpu.max").write_text(f"{int(100_000 * cores)} 100000")
        yield ["bash", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "bash"]
    finally:
        group.rmdir()


def rows(asked: Sequence[tuple[Container, Told]]) -> Iterator[str]:
    """Yield the table: what is told of a container, and not of the one that hides nothing."""
    yield "| hidden | exit code | status | reported |"
    yield "|---|---|---|---|"
    usual: dict[bool, set[str]] = {True: set(), False: set()}
    for container, told in asked:
        if container.name in ("plain", "node"):
            usual[container.node] = {_without_numbers(each) for each in told.caveats}
        caveats = [
            each for each in told.caveats if _without_numbers(each) not in usual[container.node]
        ]
        sentences = [each.replace("|", "\\|").replace("\n", " ") for each in told.reasons]
        sentences += [f"caveat: {each}" for each in caveats]
        shown = "<br>".join(sentences) or "as ever"
        yield f"| {container.hides} | {told.code} | {told.status} | {shown} |"


def _without_numbers(sentence: str) -> str:
    """Return a sentence in which times, loads and names of processes are left out."""
    return " ".join(sentence.split(",")[0].split()[:3])


#: Between these the page has the table.
BEGIN, END = "<!-- Written by `python -m proof.containers --write`. -->", "<!-- The end of it. -->"


def written(page: str, table: Sequence[str]) -> str:
    """Return the page with a table, and with the rows of containers that were not asked now."""
    before, _, rest = page.partition(BEGIN)
    former, _, after = rest.partition(END)
    kept = {line.split(" | ")[0]: line for line in former.splitlines() if line.startswith("| ")}
    now = {line.split(" | ")[0]: line for line in table}
    order = [f"| {container.hides}" for container in CONTAINERS]
    lines = [*table[:2], *(({**kept, **now})[name] for name in order if name in {**kept, **now})]
    return "\n".join([before + BEGIN, "", *lines, "", END + after])


def main() -> None:
    """Ask in each container, and show or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of containers, with commas")
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "host" / "bin")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    chosen = [
        each for each in CONTAINERS if not options.only or each.name in options.only.split(",")
    ]
    asked = []
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="fabricheck-containers-") as folder:
        machine = Machine(Path(folder), options.programs)
        for container in chosen:
            asked.append((container, machine.ask(container)))
            print(container.name, asked[-1][1], flush=True)
    table = [*rows(asked)]
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        whole_files.write_whole(PAGE, written(page, table))
    else:
        print("\n".join(table))


if __name__ == "__main__":
    main()
