"""Composed programs on disk, and rounds of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fabricheck.beside import launches
from fabricheck.beside.record import record

TESTS = Path(__file__).parents[1]
NAMES = ("stream", "memcpy", "p2p", "nvbandwidth", "cuda-stream", "p2p-test",
         "transferbench", "rocm-bandwidth-test", "hip-stream")  # fmt: skip


@pytest.fixture(scope="session")
def programs(made_once):
    """Return a folder with a composed program of each name."""

    def make(folder):
        for name in NAMES:
            file = folder / name
            file.write_text(
                f"#!{sys.executable} -S\n"
                "import sys\n"
                f"sys.path[:0] = {[str(TESTS), *sys.path]!r}\n"
                "import composed_tools\n"
                f"sys.exit(composed_tools.main({name!r}, sys.argv[1:]))\n"
            )
            file.chmod(0o755)

    return made_once("composed-programs", make)


@pytest.fixture(scope="session")
def tools(programs):
    """Return the composed tools."""
    return {
        "nvbandwidth": programs / "nvbandwidth",
        "babelstream": programs / "cuda-stream",
        "p2p-test": programs / "p2p-test",
    }


@pytest.fixture(scope="session")
def recorded(programs, tools, made_once):
    """Return a folder with two good rounds, for reading only, and what was said meanwhile."""

    def make(folder):
        said: list[str] = []
        record(folder / "beside-composed", programs, tools, 2, 300, said.append)
        (folder / "said.json").write_text(json.dumps(said))

    made = made_once("rounds", make)
    return made / "beside-composed", json.loads((made / "said.json").read_text())


@pytest.fixture
def few(monkeypatch):
    """Let rounds have the first of our programs alone."""
    every = launches.ours
    monkeypatch.setattr(launches, "ours", lambda *about: every(*about)[:1])
