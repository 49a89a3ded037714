"""Rounds that come to an end before theirs: by a signal, or on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabricheck.beside import table as recorded
from fabricheck.beside.record import record
from fabricheck.cli import output

FABRICHECK = [sys.executable, "-c", "from fabricheck.cli import app; app()"]


def interrupted(programs, folder, launch, number):
    """Run rounds until a launch hangs, end them by a signal, and return the code and stderr."""
    line = [*FABRICHECK, "beside", "rounds", str(folder), "--programs", str(programs)]
    environment = os.environ | {"FAKE_FAULT": f"{launch}:hang"}
    process = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    said = folder / f"{launch}.err"
    while process.poll() is None and time.monotonic() < until:
        if said.exists() and said.stat().st_size:
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.full
def test_a_signal_leaves_what_was_recorded_and_no_end(command, programs, tmp_path, number):
    folder = tmp_path / "out"
    code, said = interrupted(programs, folder, "stream-from-host-1", number)
    assert code == 128 + number, said
    sentence = f"stream-from-host-1.json: Signal {number} ended the rounds."
    assert f"fabricheck: {sentence}" in said.splitlines()
    found = recorded.load(folder)
    assert found.finished is None and found.signal == number
    assert [(one.name, one.interrupted) for one in found.launches] == [
        ("stream", False),
        ("stream-from-host", True),
    ]
    assert [one.sentence for one in found.failures] == [sentence]
    table = command("beside", "table", folder)
    end = f"ended by signal {number} in round 1, launch stream-from-host."
    assert f", 5 rounds requested, {end}\n" in table.stdout
    assert "Missing: round 1: stream-from-host, stream-to-host, memcpy, " in table.stdout


def test_a_signal_between_launches(programs, tmp_path):
    def end(sentence):
        if "stream-from-host" in sentence:
            os.kill(os.getpid(), signal.SIGTERM)

    found = record(tmp_path / "out", programs, {}, 1, 300, end)
    assert recorded.load(tmp_path / "out") == found
    assert [one.name for one in found.launches] == ["stream", "stream-from-host"]
    assert (found.finished, found.signal) == (None, 15)
    assert found.missing()[1][0] == "stream-to-host"


def test_a_signal_before_the_first_launch_leaves_nothing(programs, tmp_path):
    code, said = interrupted(programs, tmp_path / "out", "facts-0", signal.SIGTERM)
    assert code == 143, said
    assert list((tmp_path / "out").iterdir()) == []


def test_the_manifest_is_there_before_the_first_launch(programs, few, tmp_path):
    there = []
    record(
        tmp_path / "out",
        programs,
        {},
        1,
        300,
        lambda said: there.append((tmp_path / "out" / recorded.FILE).exists()),
    )
    # What is said first is which tools are left out.
    assert there[0]


@pytest.fixture
def limit():
    """Return what lets no file grow beyond a size in bytes, until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("full_after", "lost"),
    [
        ("babelstream-1GiB", 1),
        # Only how the rounds ended is not in the manifest.
        ("p2p-test", 0),
    ],
)
def test_a_full_disk_leaves_what_was_recorded(
    command, programs, tools, few, tmp_path, monkeypatch, limit, wording, full_after, lost
):
    path = tmp_path / "out" / recorded.FILE

    def fill(sentence):
        if f"] {full_after}: good" in sentence:
            limit(path.stat().st_size)

    monkeypatch.setattr(output, "note", fill)
    monkeypatch.setenv("FAKE_FAULT", "nvbandwidth:crash")
    arguments = ["beside", "rounds", str(path.parent), "--programs", str(programs), "--rounds", "1"]
    for tool, program in tools.items():
        arguments += [f"--{tool}", str(program)]
    ended = command(*arguments, code=3)
    # What is not in the manifest, or not for sure, is said.
    wording(ended.stderr)
    found = recorded.load(path.parent)
    assert found.finished is None
    assert len(found.launches) == 5 - lost
    files = {file.name for file in path.parent.iterdir()}
    assert f"{recorded.FILE}.partial" not in files and "p2p-test-1.txt" in files


def test_a_full_disk_leaves_the_page_as_it_was(command, tmp_path, limit):
    page = tmp_path / "page.md"
    begin, end = "<!-- fabricheck beside table -->", "<!-- end of fabricheck beside table -->"
    text = f"before\n\n{begin}\nold\n{end}\n\nafter\n"
    page.write_text(text)
    limit(2048)
    recorded = Path(__file__).parents[1] / "outputs" / "h200" / "beside-1"
    ended = command("beside", "table", recorded, "--page", page, code=3)
    assert (ended.exit_code, f"{page} cannot be written" in ended.stderr) == (3, True)
    assert page.read_text() == text
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]
