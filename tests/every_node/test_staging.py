"""The archive that sessions read, and what a node does with it, without Slurm and ReFrame."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from fabricheck.core import checkout
from fabricheck.run.every_node import staging
from fabricheck.schedulers.row import Allocation
from fabricheck.schedulers.table import SLURM

#: In place of ReFrame: says where it is, waits if it is told to, and ends with the given status.
REFRAME = """#!/bin/sh
echo "$0 $RFM_CONFIG_FILES"
[ "$1" != wait ] || sleep 30
exit "$1"
"""

SETTINGS = str(checkout.ROOT / "config" / "settings.py")


class Node:
    """A node with a shared folder and a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.own = folder / "shared", folder / "own"
        self.sent = self.own / "sent.tar.gz"
        self.archive = self.shared / staging.ARCHIVE
        self.own.mkdir()
        (self.shared / "bin").mkdir(parents=True)
        for name, text in (("reframe", REFRAME), ("true", "#!/bin/sh\n")):
            (self.shared / "bin" / name).write_text(text)
            (self.shared / "bin" / name).chmod(0o755)
        with tarfile.open(self.archive, "w:gz") as archive:
            archive.add(self.shared / "bin", "bin")

    def start(self, *arguments: str, sent: str = "") -> subprocess.Popen[str]:
        reframe = str(self.shared / "bin" / "reframe")
        return subprocess.Popen(
            ["/bin/sh", "-c", staging._SESSION, "sh", sent, str(self.archive), reframe, *arguments],
            env=os.environ | {"TMPDIR": str(self.own), "RFM_CONFIG_FILES": "shared.py"},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, sent: str = "") -> tuple[int, list[str]]:
        process = self.start(*arguments, sent=sent)
        text, _ = process.communicate(timeout=30)
        return process.returncode, text.splitlines()

    def copies(self) -> list[str]:
        return [path.name for path in self.own.glob("fabricheck-*")]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_session_runs_from_its_copy_which_is_removed(node):
    status, (line,) = node.run("7")
    assert status == 7
    command, settings = line.split()
    assert command.startswith(f"{node.own}/fabricheck-{os.getuid()}.")
    assert settings == command.replace("bin/reframe", "checkout/config/settings.py")
    assert node.copies() == []


def test_what_sbcast_brought_is_read_and_removed(node):
    node.archive.rename(node.sent)
    status, (line,) = node.run("0", sent=str(node.sent))
    assert status == 0 and line.startswith(f"{node.own}/fabricheck-")
    assert not node.sent.exists()


def test_half_of_an_archive_is_not_taken(node):
    node.sent.write_bytes(node.archive.read_bytes()[:100])
    status, (line,) = node.run("0", sent=str(node.sent))
    assert status == 0 and line.startswith(f"{node.own}/fabricheck-")


def test_a_node_without_a_copy_reads_the_shared_files_and_says_so(node):
    node.archive.write_bytes(node.archive.read_bytes()[:100])
    status, (said, line) = node.run("3")
    assert status == 3 and line == f"{node.shared}/bin/reframe shared.py"
    assert said.startswith(
        f"This node reads the shared files, not a copy of {node.archive}: it cannot be unpacked in "
    )
    assert node.copies() == []


def test_a_signal_ends_the_session_and_the_copy(node):
    process = node.start("wait")
    began = time.monotonic()
    process.stdout.readline()
    assert len(node.copies()) == 1
    # As Slurm does: to all of the step.
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=20) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 20
    assert node.copies() == []


def test_copies_of_killed_sessions_are_removed_by_the_next(node):
    dead = subprocess.Popen(["true"])
    dead.wait()
    own = f"fabricheck-{os.getuid()}"
    (node.own / f"{own}.{dead.pid}.abcdef").mkdir()
    (node.own / f"{own}.{os.getpid()}.abcdef").mkdir()
    node.run("0")
    assert node.copies() == [f"{own}.{os.getpid()}.abcdef"]


@pytest.fixture
def few_modules(monkeypatch):
    """Let a session load two modules, so that packing is quick."""
    code = """
import fabricheck, json, tabulate
print(json.dumps({one.__name__: one.__file__ for one in (fabricheck, json, tabulate)}))
"""
    monkeypatch.setattr(staging, "_LOADS", code)


def test_the_archive_has_what_a_session_reads(few_modules, tmp_path):
    archive, copy = tmp_path / "staged.tar.gz", tmp_path / "copy"
    bin_ = Path(sys.executable).parent
    staging.pack(archive, bin_ / "reframe", SETTINGS)
    with tarfile.open(archive) as file:
        file.extractall(copy)
    for part in ("config/settings.py", "reframe_checks", "reference_values", "config/nodes"):
        assert (copy / "checkout" / part).exists()
    assert (copy / "python" / "tabulate").exists() or (copy / "python" / "tabulate.py").exists()
    # The package looks for its files in the copy, and for programs and git in the checkout.
    asked = "import json, fabricheck.core.checkout as c; print(c.ROOT, c.ORIGIN, c.commit())"
    said = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"PYTHONPATH": f"{copy}/checkout/src:{copy}/python"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said == [f"{copy}/checkout", str(checkout.ROOT), checkout.commit()]
    # ReFrame is the copy's, with commands of the copy beside the interpreter, and programs that it
    # starts have their own modules.
    cli = copy / "python" / "reframe" / "frontend" / "cli.py"
    cli.parent.mkdir(parents=True)
    for folder in (cli.parent, cli.parent.parent):
        (folder / "__init__.py").touch()
    cli.write_text(
        "import json, os, sys\n"
        "def main():\n"
        "    paths = os.environ.get('PYTHONPATH')\n"
        "    print(json.dumps([sys.argv, sys.executable, paths, json.__file__]))\n"
    )
    said = subprocess.run(
        [copy / "bin" / "reframe", "-r"],
        env=os.environ | {"PYTHONPATH": "/one:/two"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    arguments, python, paths, _ = json.loads(said)
    assert arguments == [str(bin_ / "reframe"), "-r"]
    assert (python, paths) == (f"{copy}/bin/python", "/one:/two")
    assert subprocess.check_output([python, "-c", "print(1)"], text=True) == "1\n"


@pytest.mark.parametrize(
    ("reframe", "settings", "sentence"),
    [
        ("/x/bin/reframe", "/x/settings.py", "the settings /x/settings.py are not those of "),
        ("/x/bin/reframe", SETTINGS, "there is no python beside /x/bin/reframe"),
    ],
)
def test_what_cannot_be_packed_is_said(tmp_path, reframe, settings, sentence):
    with pytest.raises(staging.CannotStage, match=sentence):
        staging.pack(tmp_path / "staged.tar.gz", Path(reframe), settings)
    assert list(tmp_path.iterdir()) == []


def test_python_that_cannot_load_a_session_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_LOADS", "import no_such_module")
    with pytest.raises(
        staging.CannotStage, match="found out: python ended with exit code 1: Modul"
    ):
        staging.pack(tmp_path / "a", Path(sys.executable).with_name("reframe"), SETTINGS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_python_says_first_is_no_list_of_modules(tmp_path, monkeypatch):
    """As a site's start-up file of Python may."""
    monkeypatch.setattr(staging, "_LOADS", f"print('Welcome to node1.'); {staging._LOADS}")
    staging.pack(tmp_path / "a", Path(sys.executable).with_name("reframe"), SETTINGS)
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("sbcast", "whole", "is_sent", "how"),
    [
        ("exit 0", True, True, "which sbcast brought to all nodes"),
        ("exit 0", False, False, "read once by each node"),
        (
            "echo node3 is gone >&2; exit 1",
            True,
            True,
            "read once by each node that sbcast did not reach (sbcast ended with exit code 1: "
            "node3 is gone)",
        ),
    ],
)
def test_the_archive_is_sent_to_all_nodes_of_a_job(
    tmp_path, monkeypatch, sbcast, whole, is_sent, how
):
    (tmp_path / "sbcast").write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/said"\n{sbcast}\n')
    (tmp_path / "sbcast").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    target, said = staging._send(tmp_path / "a", Allocation(SLURM, "7", {}, None, is_whole=whole))
    assert said == how
    assert bool(target) is is_sent
    if is_sent:
        assert (tmp_path / "said").read_text() == f"--force {tmp_path}/a {target}\n"
