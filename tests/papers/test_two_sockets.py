"""The simulated node of two sockets: near and far host memory against published values."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricheck.node import load
from fabricheck.papers import fidelity_command as render
from fabricheck.papers.fidelity import compare

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sockets(programs):
    return compare(load("mi250-two-sockets"), programs)


def test_two_fitted_values_tell_the_fourteen_others(sockets):
    share = sockets.share(latency=False)
    assert (share.n, share.within, share.distinct) == (14, 14, 2)
    assert sockets.share(latency=True).n == 0
    fitted = [row for table in sockets.tables["fitted"] for row in table.rows]
    assert [row.record.id for row in fitted] == [
        "hf-rbt-bidir-gpu0-cpu0",
        "hf-rbt-bidir-gpu4-cpu0",
    ]
    assert all(row.within for row in fitted)


def test_the_page_is_what_is_made_now_without_empty_parts(sockets):
    page = render.page_of(sockets)
    path = ROOT / "docs" / "evidence" / "fidelity-mi250-two-sockets.md"
    again = "make it again: fabricheck papers fidelity mi250-two-sockets"
    assert path.read_text() == page, f"{again} --output {path}"
    records = ROOT / "tests" / "papers" / "fidelity-mi250-two-sockets.md"
    assert records.read_text() == render.text_of(sockets), f"{again} > {records}"
    for part in ("Figure 6", "latencies |", "Worst predicted latencies", "Statements"):
        assert part not in page


def test_the_command_simulates_and_prints_tables(command, sockets, programs):
    done = command("papers", "fidelity", "mi250-two-sockets", "--programs", programs)
    assert done.stdout == render.text_of(sockets)
