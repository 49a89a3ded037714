"""The ten commands with stand-ins for all programs: what is kept, and what is not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import factories
from fabricheck.cli.first_hour import headline
from fabricheck.core.errors import NotFoundError
from fabricheck.judge.verdict.model import Verdict, as_json
from fabricheck.results import archive
from fabricheck.run import first_hour
from fabricheck.run.site_check import Machine as NodeSeen
from fabricheck.site.partitions import Target
from fabricheck.tools.runner import start
from full_disk import files_of_at_most
from session_builder import SessionBuilder

MEMCPY = """
echo "tool starts" >&2
echo ":3:rocdevice.cpp :2265: 1 us: [pid:1 tid:0x1] get_mempolicy() succeed with mode 2" >&2
echo ":3:hip_memory.cpp :643: 2 us: hipHostMalloc of 8 bytes" >&2
echo ":4:hip_other.cpp :1: 3 us: says nothing of memory" >&2
echo "tool says something" >&2
"""
#: Writes the document that is prepared, to what follows --output.
PROGRAM = """
while [ $# -gt 1 ]; do [ "$1" = --output ] && cp "$PREPARED/result.json" "$2"; shift; done
"""


class Machine:
    """A PATH of stand-ins, a home, and a partition with these programs."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("sh", "env", "cat", "cp", "sleep", "echo", "[", "ldd"):
            found = shutil.which(name)
            assert found
            (self.bin / name).symlink_to(found)
        self.home = folder / "alice"
        self.home.mkdir()
        variables = {"PATH": str(self.bin), "HOME": str(self.home), "PREPARED": str(folder / "was")}
        for name, value in (variables | {"SITE_API_TOKEN": "planted"}).items():
            monkeypatch.setenv(name, value)
        for name in [name for name in os.environ if name.startswith("SLURM")]:
            monkeypatch.delenv(name)
        environment = {"HSA_XNACK": "1"}
        document = factories.document(environment=environment, arguments=[f"{self.home}/memcpy"])
        factories.write(folder / "was" / "result.json", document)
        results = folder / "was" / "results"
        SessionBuilder(results).add(factories.case(), factories.document()).write()
        self.tool("reframe", 'cp -r "$PREPARED"/results/. "$FABRICHECK_RESULTS"')
        self.tool("fabricheck", 'echo "fabricheck $1 $FABRICHECK_RESULTS"')
        self.tool("inventory", 'echo "{} says it"')
        self.tool("memcpy", MEMCPY + PROGRAM)
        for name in ("p2p", "managed"):
            self.tool(name, PROGRAM)

    def tool(self, name: str, body: str) -> None:
        """Put a stand-in on the PATH, which is the folder of programs too."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    @property
    def place(self) -> first_hour.Place:
        """A partition with real devices, as far as the commands know."""
        extras = {"node": "mi250x", "array_bytes": 1 << 20, "copy_sizes": "256:1MiB"}
        partition = {"name": "gpu", "extras": extras, "devices": [{"num_devices": 8}]}
        target = Target({"name": "site"}, partition, [])
        features = frozenset({"memcpy", "p2p", "managed", "affinity"})
        return first_hour.Place(target, "rocm", self.bin, features)

    @property
    def archive(self) -> Path:
        """Where the archive is to be."""
        return self.folder / "hour.tar.gz"

    def hour(self, limit_s: float | None = None) -> first_hour.FirstHour:
        """Return the ten commands; a verdict's line is that of its JSON."""
        folder = self.folder / "hour"
        return first_hour.FirstHour(self.place, folder, limit_s, lambda line: None, headline)

    def collect(self, limit_s: float | None = None) -> first_hour.FirstHour:
        """Run the ten commands."""
        hour = self.hour(limit_s)
        hour.collect(self.archive)
        return hour

    def packed(self) -> dict[str, bytes]:
        """Return the files of the archive."""
        with tarfile.open(self.archive) as found:
            members = [one for one in found.getmembers() if one.isfile()]
            return {one.name: found.extractfile(one).read() for one in members}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def endings(hour):
    """Return how each step ended, its lines together."""
    found = {}
    for one in hour.ran:
        found.setdefault(one.step, []).append(one.ending)
    return found


def test_all_is_in_one_archive_and_commands_read_it(command, machine):
    hour = machine.collect()
    assert {end for ends in endings(hour).values() for end in ends} == {"good"}
    files = machine.packed()
    about, versions, settings = (
        json.loads(files[f"hour/{name}.json"]) for name in ("about", "versions", "settings")
    )
    assert [one["step"] for one in about["ran"]].count("gang") == 2
    assert len({one["step"] for one in about["ran"]}) == 10
    assert versions["fabricheck"] and versions["kernel"] and versions["python"]
    assert "proc/sys/kernel/numa_balancing" in settings["files"]
    assert settings["limits"]
    assert files["hour/topology/inventory.txt"].startswith(b"{}")
    result = command("results", "show", machine.archive)
    assert "session run-0 (1/1 passed), 7 documents" in result.words


def test_the_runtimes_own_lines_are_kept_where_they_tell_something(machine):
    hour = machine.collect()
    log = machine.packed()["hour/steps/03-host-memory/1/runtime-log.txt"].decode().splitlines()
    assert log[0] == "2 of 3 lines of the runtime, the most significant ones"
    assert "get_mempolicy() succeed with mode 2" in log[1] and "hipHostMalloc" in log[2]
    errors = machine.packed()["hour/steps/03-host-memory/1/errors.txt"].decode()
    assert errors == "tool starts\ntool says something\n"
    said = next(one.says for one in hour.ran if one.step == "host-memory")
    assert said == "get_mempolicy() succeed with mode 2"


def test_a_long_log_is_cut(machine):
    machine.tool("memcpy", "i=0; while [ $i -lt 2500 ]; do echo ':3: copy' >&2; i=$((i+1)); done")
    machine.collect()
    log = machine.packed()["hour/steps/03-host-memory/1/runtime-log.txt"].decode().splitlines()
    assert log[0].startswith("2000 of 2500 lines") and len(log) == 2001


def test_only_what_is_listed_is_packed(machine):
    results = machine.folder / "was" / "results"
    for name in ("notes.txt", "logs/reframe.log", "stage/local/host/host/stream_local/rfm_job.sh"):
        factories.write(results / name, "planted")
    (results / "reports" / "link.json").symlink_to(machine.home / ".netrc")
    (machine.home / ".netrc").write_text("planted")
    machine.collect()
    files = machine.packed()
    assert "hour/results/reports/run-0.json" in files
    assert not [name for name, content in files.items() if b"planted" in content]
    # Of the environment there is what documents may have.
    assert "SITE_API_TOKEN" not in files["hour/settings.json"].decode()


def test_a_long_log_is_cut_between_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_TEXT_BYTES", 100)
    folder = tmp_path / "hour" / "steps" / "01-a"
    folder.mkdir(parents=True)
    (folder / "output.txt").write_text("".join(f"line {number}.\n" for number in range(100)))
    archive.pack(tmp_path / "hour", tmp_path / "hour.tar.gz", archive.OF_FIRST_HOUR, "hour")
    with tarfile.open(tmp_path / "hour.tar.gz") as packed:
        text = packed.extractfile("hour/steps/01-a/output.txt").read().decode()
    before, after = re.split(r"\[\d+ bytes left out\]\n", text)
    assert re.fullmatch(r"(line \d\.\n)+", before) and re.fullmatch(r"(line 9\d\.\n)+", after)


def test_one_that_fails_or_is_missing_does_not_end_the_hour(machine):
    machine.tool("p2p", "echo 'p2p: device 1 is lost' >&2; exit 4")
    (machine.bin / "reframe").unlink()
    machine.tool("inventory", "exit 2")
    hour = machine.collect()
    found = endings(hour)
    assert found["gang"] == ["failed", "failed"] and found["smoke"] == ["failed"]
    assert found["managed"] == found["verdict"] == ["good"]
    said = {one.step: (one.code, one.says) for one in hour.ran}
    assert said["gang"] == (4, "p2p: device 1 is lost")
    assert "hour/topology/inventory.txt" in machine.packed()
    assert said["smoke"][0] == 127 and "reframe" in said["smoke"][1]


def test_devices_that_cannot_be_asked_for_do_not_end_the_hour(machine):
    (machine.bin / "inventory").unlink()
    hour = machine.collect()
    assert endings(hour)["gang"] == ["good", "good"]


@pytest.mark.parametrize(("code", "ending"), [(0, "good"), (12, "failed")])
def test_the_verdict_is_that_of_its_object_however_it_ended(machine, code, ending):
    verdict = Verdict(
        of="smoke", made=datetime.now(UTC), by="1", exit_code=code, counts={}, nodes=[], notes=[]
    )
    (machine.folder / "verdict.json").write_text(json.dumps(as_json(verdict)))
    machine.tool("fabricheck", f"cat {machine.folder}/verdict.json; exit {code}")
    ran = machine.collect().ran[-1]
    assert (ran.step, ran.ending, ran.code) == ("verdict", ending, code)
    assert ran.says == headline(json.dumps(as_json(verdict)))


def test_a_command_whose_output_cannot_be_written_does_not_end_the_hour(machine, monkeypatch):
    def refused(line, *rest):
        if "p2p" in " ".join(line):
            raise OSError(28, "No space left on device", "output.txt")
        return start(line, *rest)

    monkeypatch.setattr(first_hour, "start", refused)
    hour = machine.collect()
    assert endings(hour)["gang"] == ["failed", "failed"]
    assert endings(hour)["managed"] == ["good"]
    assert "No space left on device" in {one.step: one.says for one in hour.ran}["gang"]


def test_one_that_hangs_is_ended(machine, monkeypatch, wording):
    monkeypatch.setattr(first_hour, "_LIMIT_S", 0.3)
    machine.tool("managed", "sleep 60")
    hour = machine.collect(limit_s=0.3)
    ran = {one.step: one for one in hour.ran}
    assert ran["managed"].ending == "time limit" and ran["managed"].seconds < 10
    wording(ran["managed"].says)
    assert ran["large-copy"].ending == "good"


def test_a_program_without_devices_is_not_possible_here(machine):
    machine.tool("p2p", PROGRAM + "exit 3")
    assert endings(machine.collect())["gang"] == ["not possible here"] * 2


def test_without_a_program_its_steps_are_not_possible(machine, monkeypatch):
    monkeypatch.setattr(
        Machine, "place", first_hour.Place(machine.place.target, "host", machine.bin, frozenset())
    )
    found = endings(machine.collect())
    assert found["topology"] == found["host-memory"] == ["not possible here"]
    assert found["smoke"] == ["good"]


@pytest.mark.parametrize("size", [1000, 20_000])
def test_a_full_disk_keeps_the_folder(machine, size, wording):
    hour = machine.hour()
    (machine.folder / "hour" / "long.json").write_text(os.urandom(50_000).hex())
    with files_of_at_most(size), pytest.raises(NotFoundError) as error:
        hour.collect(machine.archive)
    wording(str(error.value))
    assert (machine.folder / "hour" / "steps" / "10-verdict" / "1" / "output.txt").exists()
    assert not machine.archive.exists() and not list(machine.folder.glob("*.partial"))


#: As the command line does it, with the stand-ins of the tests.
SCRIPT = """
import sys
from pathlib import Path
from fabricheck.cli import first_hour
from fabricheck.run import first_hour as hour
from fabricheck.site.partitions import Target
import typer
extras = {"node": "mi250x", "array_bytes": 1, "copy_sizes": "256:1MiB"}
target = Target({"name": "site"}, {"name": "gpu", "extras": extras, "devices": []}, [])
place = hour.Place(target, "rocm", Path(sys.argv[1]), frozenset({"memcpy", "p2p", "managed"}))
hour.place = lambda name: place
first_hour._require_node = lambda: None
app = typer.Typer()
app.command()(first_hour.first_hour)
app(["site:gpu", "--output", sys.argv[2]])
"""


def test_ctrl_c_ends_the_running_and_packs_what_is_there(machine, wording):
    begun = machine.folder / "begun"
    machine.tool("managed", f'[ "$1" = --version ] || {{ echo > {begun}; sleep 60; }}')
    line = [sys.executable, "-c", SCRIPT, str(machine.bin), str(machine.archive)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not begun.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    wording(line for line in said.splitlines() if "SIGINT" in line)
    assert json.loads(machine.packed()["hour/about.json"])["signal"] == signal.SIGINT
    assert not (machine.folder / "hour").exists()
    ran = [one["step"] for one in json.loads(machine.packed()["hour/about.json"])["ran"]]
    assert ran[-1] == "small-copies"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 2, "There is no site 'nowhere'"),
        (["local"], 2, "local is several partitions or environments: name one of local:host"),
        (["local:host", "--output", "x.zip"], 2, "x.zip must end with .tar.gz"),
        (["local:host", "--output", "{there}"], 2, "already exists: name another --output"),
        (["local:host", "--output", "/proc/none/x.tar.gz"], 3, "/proc/none/x cannot be created"),
    ],
)
def test_bad_usage(command, tmp_path, arguments, code, said):
    there = tmp_path / "there.tar.gz"
    there.touch()
    given = [one.format(there=there) for one in arguments]
    result = command("site", "first-hour", *given, code=code)
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_devices_and_allocation_nothing_is_submitted(
    command, monkeypatch, tmp_path, wording
):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(NodeSeen, "_judged", (False, "no driver has devices"))
    result = command("site", "first-hour", "lumi:gpu", code=3)
    wording(result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_on_a_login_node_the_command_to_type_is_said(command, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid005001")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    result = command("site", "first-hour", "lumi:gpu", code=2)
    assert "srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none --nodelist=nid005001" in (
        result.stderr
    )
