"""What document_figures.yaml names as ours is a figure that a session of everything has."""

from __future__ import annotations

import fnmatch
from concurrent.futures import Future
from typing import Any

import pytest

import factories
from fabricheck.papers import document_figures
from fabricheck.report import figure
from fabricheck.report.figures import sections
from figure_runs import GIB, MIB, copies, partition, peer, rank_copy

SIZES = (MIB, GIB)


def kernel(**changes: Any) -> dict[str, Any]:
    return factories.series([10.0], **{"host_clock": None} | changes)


def at_once(*devices: int) -> dict[str, Any]:
    role, device = ("single", devices[0]) if len(devices) == 1 else ("sum", None)
    return kernel(experiment="E5", role=role, device=device, device_set=list(devices))


def message(a: int, b: int) -> dict[str, Any]:
    ends = {"device": a, "device_set": [a, b], "ranks": [a, b]}
    return kernel(experiment="E9", operation="bandwidth", engine="mpi", bytes=16 * MIB, **ends)


def collective(experiment: str, engine: str, count: int) -> dict[str, Any]:
    ends = {"device": None, "device_set": list(range(count)), "ranks": list(range(count))}
    return kernel(
        experiment=experiment, operation="allreduce", engine=engine, unit="us", bytes=MIB, **ends
    )


def runs() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return by program what its checks measured."""
    blocks = [
        kernel(operation="triad", bytes=size, block_size=block)
        for size in SIZES
        for block in (64, 256)
    ]
    pairs = [(0, 1), (0, 2), (1, 2)]
    return {
        "stream": {
            "stream_scan": blocks,
            "stream_concurrent": [at_once(0), at_once(0, 1), at_once(0, 4), at_once(*range(8))],
        },
        "memcpy": {
            "memcpy_scan": copies("host-pinned", dict.fromkeys(SIZES, 28.0)),
            "memcpy_back": copies("host-pinned", dict.fromkeys(SIZES, 28.0), "d2h"),
            "memcpy_numa": [factories.host_copy(way) for way in ("h2d", "d2h")],
        },
        "pingpong": {"pingpong_scan": [rank_copy(0, 25.0, bytes=size) for size in SIZES]},
        "p2p": {
            "p2p_scan": [
                peer(pair, size, 40.0, operation)
                for pair in pairs
                for size in SIZES
                for operation in ("engine", "copy")
            ],
            "p2p_latency": [peer(pair, 16, 9.0, "latency") for pair in pairs],
        },
        "mpi": {
            "mpi_pairs": [message(*pair) for pair in pairs],
            "mpi_collectives": [collective("E10", "mpi", count) for count in (2, 3)],
        },
        "rccl": {"rccl_collectives": [collective("E11", "rccl", count) for count in (2, 3)]},
    }


@pytest.fixture(scope="module")
def ids() -> set[str]:
    class Undrawn:
        def submit(self, *_: object) -> Future[str]:
            return Future()

    found: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "_pen", Undrawn)
        for program, checks in runs().items():
            about = factories.simulated_document()["program"] | {"name": program}
            drawn, undrawn = sections(partition(checks, program=about))
            assert not undrawn
            found |= {one.id for figures in drawn.values() for one in figures}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theirs", "pattern"),
    [
        pytest.param(one, pattern, id=f"{one.document}-{one.figure}-{pattern}")
        for one in document_figures.figures()
        for pattern in one.ours
    ],
)
def test_a_pattern_fits_a_figure_that_is_drawn(
    ids: set[str], theirs: document_figures.DocumentFigure, pattern: str
) -> None:
    assert fnmatch.filter(ids, pattern), f"{theirs.figure} names {pattern}, of {sorted(ids)}"
