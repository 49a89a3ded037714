"""How many sruns there is room for, from limits of the system that are made up."""

from __future__ import annotations

import os
import re

import pytest

from fabricheck.run.every_node import session
from fabricheck.schedulers.table import SLURM


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Have files of a system with 100 processes of this user, of one thread each."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    for number in range(100):
        (proc / str(number) / "task" / "1").mkdir(parents=True)
    files = {
        proc / "meminfo": "MemTotal: 9 kB\nMemAvailable: 8000000 kB\n",
        proc / "sys/kernel/pid_max": "32768\n",
        proc / "sys/kernel/threads-max": "100000\n",
        proc / "self/cgroup": "0::/user/one\n",
        groups / "user/pids.max": "max\n",
        groups / "user/memory.max": "max\n",
        groups / "user/one/pids.current": "10\n",
        groups / "user/one/memory.current": "1000000000\n",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(session, "_PROC", proc)
    monkeypatch.setattr(session, "_GROUPS", groups)
    monkeypatch.setattr(
        session.resource, "getrlimit", lambda _: (session.resource.RLIM_INFINITY,) * 2
    )
    return tmp_path


def test_where_there_is_enough_nothing_is_said(system):
    assert session.number_of_starters(SLURM, 100) == (100, None)


@pytest.mark.parametrize(
    ("file", "text", "most", "why"),
    [
        ("proc/sys/kernel/pid_max", "700", 100, "each needs 6 .* threads; kernel.pid_max is 700"),
        ("groups/user/one/pids.max", "610", 100, "each needs 6 .*/user/one/pids.max is 610"),
        ("groups/user/pids.max", "600", 100, "each needs 6 .*/user/pids.max is 600"),
        ("proc/meminfo", "MemAvailable: 1000000 kB\n", 102, "10 MB of memory; 1.0 GB are avail"),
        ("groups/user/one/memory.max", "2000000000", 100, "1.0 GB are left of .*/one/memory.max"),
        ("groups/user/one/pids.max", "3", 1, "pids.max is 3"),
    ],
)
def test_the_smallest_limit_is_named(system, file, text, most, why):
    (system / file).write_text(text)
    found, said = session.number_of_starters(SLURM, 1000)
    assert found == most
    assert re.search(why, said), said
    assert said.startswith(f"Here is room for {most} sruns at a time (")
    assert "so 1000 nodes are not measured all together" in said


def test_a_limit_of_processes_counts_for_users_alone(system, monkeypatch):
    monkeypatch.setattr(session.resource, "getrlimit", lambda _: (700, 700))
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert session.number_of_starters(SLURM, 1000)[0] == 819
    monkeypatch.setattr(os, "getuid", lambda: 1)
    monkeypatch.setattr(session, "_tasks", lambda _: (100, 200))
    assert session.number_of_starters(SLURM, 1000)[0] == 100
