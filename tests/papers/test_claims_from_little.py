"""Claims from few devices, few pairs, small arrays or sizes that differ: no verdict by chance."""

from __future__ import annotations

import cases_collectives as groups
import cases_devices as peers
import cases_messages as sent
import pytest
from cases_host import GIB, KIB, MIB, copy, pageable, zero_copy
from cases_local import stream
from device_pairs import by, collective, every, message, pair, peak
from observations import judged, of, outcome, partition

import factories
from fabricheck.papers.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED

#: What small arrays alone would reproduce or refute, whatever the node is like.
SMALL = {
    "pinned-79-of-link": lambda: of(copy("h2d", 5.0, bytes=MIB)),
    "directions-alike": lambda: of(*pageable(5.0, bytes=MIB)),
    "pinned-above-zero-copy": lambda: of(
        copy("h2d", 5.0, bytes=MIB), zero_copy() | {"bytes": MIB, "median": 1.0, "ci95": None}
    ),
    "engine-parts-of-peak": lambda: of(*every(lambda a, b: 5.0, bytes=MIB)),
    "engine-limited-at-every-size": lambda: of(
        *(pair(0, 1, 5.0, bytes=size * KIB) for size in (64, 128, 256))
    ),
    "kernel-43-percent": lambda: of(*every(lambda a, b: 5.0, operation="copy", bytes=MIB)),
    "mpi-engine-below-50": lambda: partition(sent.on(message(0, 1, 5.0, MIB))),
    "mpi-70-percent": lambda: partition(sent.off(message(0, 1, 5.0, MIB))),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_arrays_alone_neither_reproduce_nor_refute_a_rate(name, wording):
    verdict = judged(name, SMALL[name]())
    assert verdict.outcome == NOT_TESTABLE
    wording(verdict.because)


def test_small_arrays_of_devices_at_once_are_not_testable(wording):
    shared = [
        factories.series(
            [20.0],
            experiment="E5",
            role=role,
            device_set=members,
            bytes=size,
            source=factories.place("host-pinned", None, 3),
        )
        for members, role in (([0], "single"), ([0, 1], "sum"))
        for size in (MIB,)
    ]
    verdict = judged("one-package-no-gain", of(*shared))
    assert verdict.outcome == NOT_TESTABLE and "16 MiB (E5)" in verdict.because
    apart = [one | {"bytes": GIB * (index + 1)} for index, one in enumerate(shared)]
    wording(judged("one-package-no-gain", of(*apart)).because)
    alike = [one | {"bytes": GIB} for one in shared]
    assert outcome("one-package-no-gain", of(*alike)) == REPRODUCED


def test_block_sizes_are_compared_with_arrays_that_all_of_them_have():
    def triad(block, value, size, **changes):
        return stream(value, operation="triad", block_size=block, bytes=size, **changes)

    apart = triad(256, 1300.0, GIB), triad(512, 1350.0, 4 * GIB)
    verdict = judged("blocks-of-256", of(*apart))
    assert verdict.outcome == NOT_TESTABLE and "one size beyond the caches" in (verdict.because)
    both = [triad(block, 1300.0, GIB) for block in (256, 512)]
    assert outcome("blocks-of-256", of(*both, triad(512, 1400.0, 4 * GIB))) == REPRODUCED
    cached = [triad(256, 1000.0, MIB, regime="cache"), triad(512, 2000.0, MIB, regime="cache")]
    assert outcome("blocks-of-256", of(*cached)) == NOT_TESTABLE


def test_there_and_back_is_of_one_device():
    to = [copy("h2d", 5.7, 0, "pageable", bytes=64 * KIB)]
    to += [copy("h2d", 3.7, 0, "pageable", bytes=128 * KIB)]
    back = [one | {"device": 1, "operation": "d2h"} for one in to]
    assert outcome("64kib-above-128kib", of(*to, *back)) == NOT_TESTABLE
    back = [copy("d2h", one["median"], 0, "pageable", bytes=one["bytes"]) for one in to]
    assert outcome("64kib-above-128kib", of(*to, *back)) == REPRODUCED


def test_results_of_a_device_that_the_model_has_not_are_told():
    triad = stream(1400.0, 5, operation="triad")
    verdict = judged("a100-triad-87", of(triad, node="a100-jureca", runtime="cuda"))
    assert verdict.outcome == NOT_TESTABLE and "no device 5" in verdict.because


def test_bridges_are_those_of_amd():
    linked = peers.CASES["bridge-over-pcie"].reproduced()
    assert outcome("bridge-over-pcie", linked) == REPRODUCED
    verdict = judged("bridge-over-pcie", of(pair(0, 1, 43.0), node="h200", runtime="cuda"))
    assert "AMD's devices" in verdict.because


def test_a_bound_from_some_pairs_may_be_too_high_to_refute():
    some = by("p2p", pair(0, 2, 8.7, "latency"))
    slow = [collective(name, 8, 40.0) for name in ("reduce", "allreduce")]
    fast = [collective(name, 8, 8.0) for name in ("reduce", "allreduce")]
    assert outcome("collectives-bound", partition(some, by("mpi", *slow))) == REPRODUCED
    verdict = judged("collectives-bound", partition(some, by("mpi", *fast)))
    assert verdict.outcome == NOT_TESTABLE and "1 of 56 ordered pairs" in verdict.because
    every_latency = peers.latencies().documents
    whole = partition(*every_latency, by("mpi", *fast))
    assert outcome("collectives-bound", whole) == REFUTED


def test_a_bound_of_both_kinds_needs_collectives_of_both():
    only = partition(by("p2p", *groups.LATENCIES), by("mpi", collective("bcast", 2, 30.0)))
    verdict = judged("collectives-bound", only)
    assert verdict.outcome == NOT_TESTABLE and "bcast (E10" in verdict.because


def test_messages_with_and_without_the_engine_are_of_one_program_and_size():
    on, off = sent.on(message(0, 1, 49.0)), sent.off(message(0, 1, 142.0, 1 << 28))
    assert outcome("mpi-faster-without-engine", partition(on, off)) == NOT_TESTABLE
    osu = by("osu", message(0, 1, 142.0), environment=dict(sent.OFF))
    assert outcome("mpi-faster-without-engine", partition(on, osu)) == NOT_TESTABLE
    off = sent.off(message(0, 1, 142.0))
    assert outcome("mpi-faster-without-engine", partition(on, off)) == REPRODUCED


def test_messages_of_the_documents_size_go_before_larger_ones():
    larger = message(0, 1, 180.0, 1 << 30)
    assert outcome("mpi-70-percent", partition(sent.off(larger))) == REFUTED
    both = partition(sent.off(larger, message(0, 1, 142.0, 16 << 20)))
    assert outcome("mpi-70-percent", both) == REPRODUCED


def test_smaller_messages_than_the_papers_refute_only_by_being_too_fast():
    def beside(part):
        messages = every(lambda a, b: part * peak(0.87)(a, b), message, size=16 << 20)
        return partition(sent.off(*messages), by("p2p", *every(peak(0.87), operation="read")))

    assert outcome("mpi-below-direct-access", beside(0.97)) == REFUTED
    verdict = judged("mpi-below-direct-access", beside(0.88))
    assert verdict.outcome == NOT_TESTABLE and "16 MiB" in verdict.because


@pytest.mark.parametrize("name", ["jsc-mi250-tiers", "jsc-neighbours-90-percent"])
def test_smaller_messages_than_those_of_jsc_do_not_refute_by_being_slower(name):
    slow = [sent.parts(0.7, 0.66, size=size) for size in (16 << 20, 64 << 20)]
    small, large = (partition(sent.off(*one)) for one in slow)
    assert outcome(name, large) == REFUTED
    verdict = judged(name, small)
    assert verdict.outcome == NOT_TESTABLE and "of 16 MiB can be slower" in verdict.because
    assert outcome(name, partition(sent.off(*sent.parts(0.99, 0.97, size=16 << 20)))) == REFUTED


def test_sentences_say_of_how_many_pairs_they_are():
    three = of(pair(0, 1, 50.0), pair(0, 2, 37.6), pair(0, 6, 50.0))
    assert "(ordered pair 0-2, stream" in judged("engine-parts-of-peak", three).because
    many = judged("engine-parts-of-peak", peers.copies()).because
    assert "(12 ordered pairs, stream, 1 GiB); published: 75; allowed: 73.5 to 76.5" in many


def test_series_that_are_left_out_for_wrong_data_are_told(wording):
    right, wrong = stream(1400.0), stream(900.0, 1, verification=factories.mismatched())
    one = judged("local-stream-87", of(right, wrong))
    assert one.outcome == REPRODUCED
    none = judged("local-stream-87", of(wrong))
    assert none.outcome == NOT_TESTABLE
    wording([one.because, none.because])
    assert "Left out" not in judged("local-stream-87", of(right)).because
    # Wrong data of MPI are what this claim judges.
    data = groups.compared(2, operation="bcast")
    assert "Left out" not in judged("mpi-right-data", partition(by("mpi", data))).because


def test_copies_with_the_engines_off_are_not_those_of_the_documents():
    off = of(copy("h2d", 28.3), environment={"HSA_ENABLE_SDMA": "0"})
    assert outcome("pinned-79-of-link", off) == NOT_TESTABLE
    pinned = [factories.host_copy("h2d", 0, domain, value=28.3) for domain in (0, 3)]
    assert outcome("numa-of-single-transfer", of(*pinned)) == REPRODUCED
    off = of(*pinned, environment={"HSA_ENABLE_SDMA": "0"})
    assert outcome("numa-of-single-transfer", off) == NOT_TESTABLE
