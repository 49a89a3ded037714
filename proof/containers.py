"""What is told in containers that hide something: each by bubblewrap, on this machine.

python -m proof.containers                   # all containers; five minutes of an idle machine
python -m proof.containers --only user,shm   # some of them
python -m proof.containers --write           # all of them, into docs/evidence/containers.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import forbidden
from driver_trees import Tree
from fabricheck.core import show, whole_files
from fabricheck.core.checkout import ROOT
from fabricheck.judge.verdict import evidence, judging
from fabricheck.results import reading
from fabricheck.tools import runner
from nic_trees import FRONTIER
from proof.faults.sessions import HOST, Session

PAGE, BLOCK = ROOT / "docs" / "evidence" / "containers.md", "containers by bubblewrap"

#: The most seconds of what is started in a container.
LIMIT_S = 900

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

    options: of bwrap. variables: of the environment. before: what starts bwrap. quota: the cores
    whose time its control group grants. node: whether `fabricheck node health` looks at a composed
    node, in place of a session.
    """

    name: str
    hides: str
    options: Sequence[str] = ()
    variables: Sequence[tuple[str, str]] = ()
    before: Sequence[str] = ()
    quota: float | None = None
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
#: The first of them, by its class.
_FIRST = {"net": "hsn0", "cxi": "cxi0"}

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
        ["--ro-bind", f"{PLACE}/results/results", f"{PLACE}/results/results"],
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
    Container(
        "pod",
        "the name of the machine, in a pod of Kubernetes",
        ["--unshare-uts", "--hostname", "accept-x7k2p"],
        [("KUBERNETES_SERVICE_HOST", "10.0.0.1")],
    ),
    Container(
        "profile", "where pages are: the calls are refused",
        before=[sys.executable, forbidden.__file__],
    ),
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
    Container(
        "nic", "one NIC of that node, which is in another network namespace",
        ["--tmpfs", f"{PLACE}/tree/{_INTERFACES[2]}",
         *(word for name in _FIRST
           for word in ("--ro-bind", f"{PLACE}/without/{name}", f"{PLACE}/tree/sys/class/{name}"))],
        node=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What was told in a container: the exit code, the status and the sentences."""

    code: int | None
    status: str
    reasons: Sequence[str]
    caveats: Sequence[str]


class Machine:
    """A folder with what containers read and write.

    checks: of a session; none for those of the set smoke.
    """

    def __init__(self, place: Path, checks: Sequence[str] = ()) -> None:
        self.place, self.checks = place, checks
        (place / "sites").mkdir()
        (place / "sites" / "local.py").write_text(
            SITE.format(local=str(ROOT / "config" / "sites" / "local.py"))
        )
        (place / "empty").touch()
        Tree(place / "tree")
        shutil.copytree(place / "tree" / "dev", place / "dev")
        (place / "dev" / "kmsg").unlink()
        for name, first in _FIRST.items():
            without = place / "without" / name
            shutil.copytree(place / "tree" / "sys" / "class" / name, without, symlinks=True)
            shutil.rmtree(without / first)

    def ask(self, container: Container) -> Told:
        """Start what is asked in a container, and return what was told."""
        folder = self.place / container.name
        results = folder / "results"
        results.mkdir(parents=True)
        return self._look(container, folder) if container.node else self._session(container, folder)

    def _session(self, container: Container, folder: Path) -> Told:
        variables = {"FABRICHECK_SITES": str(self.place / "sites"), "TMPDIR": "/tmp"}
        variables |= dict(container.variables)
        session = Session(self.checks, system=HOST, variables=variables, mode="smoke")
        started = session.command(folder)
        ended = self._run(container, started["args"], started["env"])
        results = folder / "results"
        if not (results / "reports").is_dir():
            return Told(ended.code, "no session", [self._last(ended)], [])
        verdicts = judging.judge(reading.read([str(results)]))
        (node,) = verdicts
        reasons = [f"{each.rule}: {each.sentence}" for each in node.reasons]
        total = evidence.session_verdict(container.name, verdicts)
        return Told(total.exit_code, node.status, reasons, [*node.settings, *node.caveats])

    def _look(self, container: Container, folder: Path) -> Told:
        command = [
            str(Path(sys.executable).with_name("fabricheck")), "node", "health", "mi250x",
            f"--root={self.place}/tree", f"--programs={ROOT / 'build' / 'host' / 'bin'}",
            f"--state={folder}/results/look.json", "--json",
        ]  # fmt: skip
        ended = self._run(container, command, os.environ)
        if not ended.out:
            return Told(ended.code, "no look", [self._last(ended)], [])
        found = json.loads(ended.out)
        node = found["verdict"]
        reasons = [f"{each['rule']}: {each['sentence']}" for each in node["reasons"]]
        return Told(ended.code, node["status"], reasons, found["notes"])

    def _last(self, ended: runner.Output) -> str:
        """Return the sentence of an error, or the last line, without the place of this folder."""
        lines = (ended.err.strip() or ended.out.strip() or "nothing was said").splitlines()
        errors = [line for line in lines if line.startswith(("ERROR: ", "fabricheck: "))]
        return (errors[0] if errors else lines[-1]).replace(str(self.place), "")

    def _run(
        self, container: Container, command: Sequence[str], environment: Mapping[str, str]
    ) -> runner.Output:
        options = [word.replace(PLACE, str(self.place)) for word in container.options]
        box = [
            "bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc",
            "--tmpfs", "/tmp", "--ro-bind", str(ROOT), str(ROOT),
            "--bind", str(self.place), str(self.place), "--chdir", str(ROOT),
            "--die-with-parent", *options,
        ]  # fmt: skip
        shell = ["bash", "-c", f'{_TEMPORARY}\nexec "$@"', "bash"]
        with _quota(container.quota) as within:
            words = [*within, *container.before, *box, *shell, *command]
            return runner.run(words, LIMIT_S, environment)


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


def lines(asked: Sequence[tuple[Container, Told]]) -> Iterator[str]:
    """Yield the table: what is told of a container, and not of the one that hides nothing."""
    usual: dict[bool, set[str]] = {True: set(), False: set()}
    cells = []
    for container, told in asked:
        if container.name in ("plain", "node"):
            usual[container.node] = {_without_numbers(each) for each in told.caveats}
        caveats = [
            each for each in told.caveats if _without_numbers(each) not in usual[container.node]
        ]
        sentences = [each.replace("|", "\\|").replace("\n", " ") for each in told.reasons]
        sentences += [f"caveat: {each}" for each in caveats]
        shown = "<br>".join(sentences) or "as ever"
        cells.append((container.hides, str(told.code), told.status, shown))
    yield from show.markdown(("hidden", "exit code", "status", "reported"), cells)


def _without_numbers(sentence: str) -> str:
    """Return what a sentence begins with, without names, times, loads and processes."""
    words = sentence.partition(",")[0].split()
    if words[0] == "Node":
        del words[1]
    return " ".join(words[:3])


def main() -> None:
    """Ask in each container, and show or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of containers, with commas")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else []
    if names and options.write:
        parser.error("--write writes the table of all containers, and --only names some")
    asked = []
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="fabricheck-containers-") as folder:
        machine = Machine(Path(folder))
        for container in CONTAINERS:
            if not names or container.name in names:
                asked.append((container, machine.ask(container)))
                print(container.name, asked[-1][1], flush=True)
    table = "\n".join(lines(asked))
    if options.write:
        whole_files.rewrite_block(PAGE, {BLOCK: f"\n{table}\n\n"})
    else:
        print(table)


if __name__ == "__main__":
    main()
