"""What the cases of claims on transfers between devices leave: each part of a rule, and reasons."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import cases_collectives as groups
import cases_devices as peers
import cases_links
import cases_messages as sent
import pytest
from device_pairs import MI250X, OFF, by, changed, collective, every, message, pair, peak, rccl
from observations import BY_ID, because, document, judged, of, outcome, partition, simulated

from fabricheck.core.checkout import ROOT
from fabricheck.papers.claims import CLAIMS, evaluate, links
from fabricheck.papers.claims.collectives import EVERY, TWO_PASSES
from fabricheck.papers.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED
from fabricheck.references.published import OWN_FOLDER, of_folder
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import of_session

MODULES = (peers, sent, groups, cases_links)
OURS = [name for module in MODULES for name in module.CASES]


def inside(a, b):
    """Whether two devices are of one package."""
    return a // 2 == b // 2


ALSO_REFUTED = {
    "all copies in one level": ("engine-two-levels", lambda: peers.copies(lambda a, b: 50.0)),
    "a single link at less than 75 %": (
        "engine-parts-of-peak",
        lambda: of(pair(0, 1, 50.0), pair(0, 6, 50.0), pair(0, 2, 36.0)),
    ),
    "a dual link at less than 50 %": (
        "engine-parts-of-peak",
        lambda: of(pair(0, 1, 50.0), pair(0, 6, 45.0), pair(0, 2, 37.5)),
    ),
    "one direction of a detour": (
        "engine-widest-path",
        lambda: peers.copies(lambda a, b: 37.5 if (a, b) == (5, 3) else peers.BW(a, b)),
    ),
    "PCIe nearly as fast": ("bridge-over-pcie", lambda: peers.in_pairs(50.0, 25.0)),
    "another pair below 10 us": (
        "latency-one-link-lowest",
        lambda: peers.latencies(changed(peers.LAT, (0, 6), to=9.5)),
    ),
    "within a package the lowest": (
        "latency-in-package",
        lambda: peers.latencies(lambda a, b: 10.6 if inside(a, b) else 12.0),
    ),
    "outliers out of the range": (
        "latency-outliers",
        lambda: peers.latencies(changed(peers.LAT, (1, 7), to=20.0)),
    ),
    "the greatest above the range": (
        "latency-range",
        lambda: peers.latencies(changed(peers.LAT, (1, 7), to=19.0)),
    ),
    "dual as single by kernel": (
        "kernel-three-tiers",
        lambda: peers.kernels(changed(peak(0.87), (0, 6), (2, 4), to=50.0)),
    ),
    "less of the peak by kernel": ("kernel-43-percent", lambda: peers.kernels(peak(0.80))),
    "messages far below reads": ("mpi-below-direct-access", lambda: sent.beside_reads(0.80)),
    "non-neighbours slower with the engine": (
        "mpi-non-neighbours",
        lambda: partition(
            sent.on(*sent.parts(0.7, 0.6, size=sent.GIB)),
            sent.off(*sent.parts(0.7, 0.7, size=sent.GIB)),
        ),
    ),
    "two hops far slower": (
        "mpi-two-hops-slower",
        lambda: partition(sent.off(*sent.parts(0.7, 0.55))),
    ),
    "less than 70 %": ("mpi-70-percent", lambda: partition(sent.off(message(0, 1, 125.0)))),
    "a single link off the tier": (
        "jsc-mi250-tiers",
        lambda: partition(sent.off(*sent.tiers(37.0, 85.9, 166.4))),
    ),
    "others as fast as neighbours": (
        "jsc-neighbours-90-percent",
        lambda: partition(sent.off(*sent.parts(0.85, 0.86))),
    ),
    "smaller messages between others": (
        "jsc-smaller-messages",
        lambda: partition(
            sent.off(*sent.parts(0.86, 0.78), *sent.parts(0.68, 0.58, size=sent.SMALL))
        ),
    ),
    "RCCL's reduce slower": (
        "rccl-beats-mpi",
        lambda: groups.both(lambda name: 40.0, lambda name: 50.0 if name in EVERY[:2] else 30.0),
    ),
    "broadcast does not fall": (
        "rccl-falls-at-eight",
        lambda: partition(
            by(
                "rccl-tests",
                *(rccl(name, 7, 50.0) for name in EVERY),
                *(rccl(name, 8, 60.0 if name == "bcast" else 40.0) for name in EVERY),
            )
        ),
    ),
    "MPI's reduce below the bound": (
        "collectives-bound",
        lambda: partition(by("p2p", *groups.LATENCIES), by("mpi", collective("reduce", 2, 8.0))),
    ),
    "two devices far below the bound": (
        "rccl-two-close-to-bound",
        lambda: groups.beside_latency(*(rccl(name, 2, 12.0) for name in TWO_PASSES)),
    ),
    "more than links leave": ("all-pairs-by-links", lambda: peers.at_once(read=700.0, write=525.0)),
    "writes no faster than engines": (
        "all-pairs-kernels-faster",
        lambda: peers.at_once(engine=524.5, read=600.0, write=525.0),
    ),
    "another set of four": (
        "best-sets-measured",
        lambda: cases_links.writes(changed(cases_links.WRITES, (1, 3), (1, 2), (0, 3), to=150.0)),
    ),
    "one set of four only": (
        "best-sets-predicted",
        lambda: replace(
            cases_links.told(),
            node=replace(MI250X, links={**MI250X.links, (2, 4): MI250X.links[0, 2]}),
        ),
    ),
}


@pytest.mark.parametrize("what", ALSO_REFUTED)
def test_each_part_of_a_rule_refutes(what):
    name, build = ALSO_REFUTED[what]
    verdict = judged(name, build())
    assert verdict.outcome == REFUTED, verdict.because


#: What is judged on nodes of other devices than MI250X, and of it what a session may lack there.
ANYWHERE = {
    "bridge-over-pcie",
    "uniform-links",
    "uniform-links-93-percent",
    "rccl-beats-mpi",
    "collectives-bound",
    "mpi-right-data",
    "own-device-41-percent",
    "all-pairs-by-links",
    "all-pairs-kernels-faster",
    "kernels-need-compute-units",
    "engines-leave-compute-free",
}


@pytest.mark.parametrize("name", sorted(set(OURS) - ANYWHERE))
def test_findings_on_mi250x_are_not_testable_on_nvidia(name):
    verdict = judged(name, of(pair(0, 1, 50.0), node="h200", runtime="cuda"))
    assert verdict.outcome == NOT_TESTABLE
    assert "h200" in verdict.because


@pytest.mark.parametrize("name", OURS)
def test_series_of_other_experiments_only_are_told_as_missing(name):
    node = {"bridge-over-pcie": "mi210", "uniform-links": "h200"}.get(name, "mi250x")
    node = "h200" if name == "uniform-links-93-percent" else node
    node = "a100-jureca" if name == "own-device-41-percent" else node
    local = pair(0, 1, 50.0, "copy", experiment="E1")
    verdict = judged(name, of(local, node=node))
    assert verdict.outcome == NOT_TESTABLE
    assert any(f"({one}" in verdict.because for one in BY_ID[name].experiments)


@pytest.fixture(scope="module")
def two_h200():
    folder = ResultsFolder(ROOT / "tests/outputs/h200/session-x2")
    session = folder.latest()
    (observed,) = of_session(folder, session).observed
    return {one.claim.id: one for one in evaluate(CLAIMS, observed)}


def test_on_two_recorded_h200_uniform_links_are_tested_and_their_two_directions_are_said(two_h200):
    said = {name: two_h200[name].because for name in OURS}
    tested = {name: one for name in OURS if (one := two_h200[name].outcome) != NOT_TESTABLE}
    assert tested == {
        "uniform-links": REPRODUCED,
        "uniform-links-93-percent": REFUTED,
        "collectives-bound": REPRODUCED,
        "mpi-right-data": REPRODUCED,
    }
    for name in ("uniform-links", "uniform-links-93-percent"):
        assert "(2 ordered pairs, osu, 64 MiB)" in said[name]
    assert "not tested: allgather, allreduce" in said["mpi-right-data"]
    assert "of reduce, allreduce, reduce_scatter, allgather" in said["rccl-beats-mpi"]


def times(program, of, devices, engine=True, **changes):
    """Build a document of all collectives of MPI on a set of devices, in one time."""
    own = {"device_set": list(devices), "ranks": list(range(len(devices)))} | changes
    environment = {} if engine else dict(OFF)
    series = (collective(name, len(devices), of, **own) for name in EVERY)
    return by(program, *series, environment=environment)


def faster_but_in_broadcast(devices, **changes):
    """Build RCCL's times on a set: 50 us of broadcast, 30 of all others."""
    series = (
        rccl(name, len(devices), 50.0 if name == "bcast" else 30.0, device_set=list(devices))
        for name in EVERY
    )
    return by("rccl-tests", *series, **changes)


def test_messages_within_a_device_are_osu_s_and_none_of_a_pair(wording):
    own = sent.within(655.5, program="mpi").documents
    osu = sent.within(496.0).documents
    for order in ((*own, *osu), (*osu, *own)):
        assert outcome("own-device-below-a100", partition(*order)) == REPRODUCED
    assert outcome("own-device-below-a100", partition(*own)) == REFUTED
    wording(because("mpi-engine-below-50", partition(*osu)))


def test_the_switch_of_peers_is_of_the_versions_that_ask_for_it(wording):
    said = because("peer-switch-alone", peers.peer_switch(peak(0.75), engine="copy-engine"))
    wording(said)
    # Where a session has copies with all engines off, these are what is faster or not.
    alone, slow = peers.peer_switch(peak(0.75)), peers.switched(peers.BW, lambda a, b: 40.0)
    both = partition(*alone.documents, *slow.documents)
    assert outcome("engine-off-faster", both) == REFUTED


BEST, IN_ORDER = (0, 1, 6), (0, 1, 2)


@pytest.mark.parametrize(
    ("documents", "outcome_", "said"),
    [
        ([times("osu", 40.0, BEST)], REPRODUCED, "osu and rccl"),
        ([times("osu", 40.0, IN_ORDER)], NOT_TESTABLE, "on the same devices"),
        # OSU is the paper's tool; of a set that it has not the program mpi tells.
        ([times("mpi", 10.0, BEST), times("osu", 40.0, BEST)], REPRODUCED, "osu and rccl"),
        ([times("mpi", 40.0, BEST), times("osu", 10.0, IN_ORDER)], REPRODUCED, "mpi and rccl"),
        # Of engines on and off the faster: here without them.
        ([times("osu", 40.0, BEST), times("osu", 20.0, BEST, engine=False)], REFUTED, " 0.667"),
        ([times("osu", 20.0, BEST), times("osu", 40.0, BEST, engine=False)], REFUTED, " 0.667"),
    ],
)
def test_rccl_is_held_against_osu_on_the_same_devices(documents, outcome_, said):
    verdict = judged("rccl-beats-mpi", partition(*documents, faster_but_in_broadcast(BEST)))
    assert verdict.outcome == outcome_
    assert said in verdict.because


def test_rccl_with_a_thread_for_each_device_goes_before_one_with_all():
    threads = {"launches": [{"name": "reduce", "threads": 8}]}
    falls = [rccl(name, count, 90.0 - 5 * count) for name in EVERY for count in (7, 8)]
    grows = [rccl(name, count, 5.0 * count) for name in EVERY for count in (7, 8)]
    own, other = by("rccl-tests", *falls, options=threads), by("rccl-tests", *grows)
    for order in ((own, other), (other, own)):
        assert outcome("rccl-falls-at-eight", partition(*order)) == REPRODUCED


def test_of_several_sets_of_a_number_the_first_devices_tell_how_rccl_scales():
    slow, fast = ({name: time for name in EVERY} for time in (60.0, 20.0))
    best = [rccl(name, 7, slow[name], device_set=[0, 1, 2, 3, 4, 6, 7]) for name in EVERY]
    first = [rccl(name, 7, fast[name]) for name in EVERY]
    eight = [rccl(name, 8, 40.0) for name in EVERY]
    for order in ((*best, *first), (*first, *best)):
        observed = partition(by("rccl-tests", *order, *eight))
        assert outcome("rccl-falls-at-eight", observed) == REFUTED


def test_messages_to_others_than_neighbours_are_those_from_device_0_as_in_the_figure():
    sent_by_others = changed(peak(0.7), (1, 7), (3, 6), (5, 6), to=20.0)
    observed = partition(sent.off(*every(sent_by_others, message, size=sent.GIB)))
    assert outcome("mpi-non-neighbours", observed) == REPRODUCED


def test_slower_messages_of_less_than_1_gib_do_not_refute_what_is_of_1_gib(wording):
    verdict = judged("mpi-non-neighbours", partition(sent.off(*sent.lab(0))))
    assert verdict.outcome == NOT_TESTABLE
    wording(verdict.because)


@pytest.mark.parametrize(
    ("node", "words"),
    [("mi250x", "mi250x has pairs of 6 kinds"), ("mi210", "mi210 has pairs of 2 kinds")],
)
def test_uniform_links_are_not_testable_where_devices_are_linked_otherwise(node, words):
    observed = partition(by("mpi", *every(lambda a, b: 40.0, message)), node=node)
    assert words in because("uniform-links", observed)


def test_outliers_follow_the_links_of_the_node():
    rate = changed(lambda a, b: 11.0, (1, 5), (3, 7), to=18.0)
    other = of(*every(rate, operation="latency"), node="mi250")
    assert outcome("latency-outliers", other) == REPRODUCED
    assert "1-5 18, 3-7 18, 5-1 18, 7-3 18 us" in because("latency-outliers", other)
    assert outcome("latency-outliers", replace(other, node=MI250X)) == REFUTED


def test_a_node_without_detours_tells_so(wording):
    links_ = {**MI250X.links, (1, 7): MI250X.links[0, 6], (3, 5): MI250X.links[0, 6]}
    wide = replace(MI250X, links=links_)
    copies, latencies = (replace(build(), node=wide) for build in (peers.copies, peers.latencies))
    wording(because("engine-widest-path", copies))
    wording(because("latency-outliers", latencies))


def test_an_interval_that_touches_the_bound_does_not_refute():
    rest = [one for one in every(peers.LAT, operation="latency") if one["device_set"] != [0, 2]]
    wide = [*rest, pair(0, 2, 10.2, "latency", spread=0.03)]
    assert outcome("latency-one-link-lowest", of(*wide)) == REPRODUCED
    sharp = [*rest, pair(0, 2, 10.2, "latency", spread=0.001)]
    assert outcome("latency-one-link-lowest", of(*sharp)) == REFUTED


def test_faster_needs_intervals_apart():
    on, off = sent.on(message(0, 1, 49.4)), sent.off(message(0, 1, 50.5))
    assert outcome("mpi-faster-without-engine", partition(on, off)) == REPRODUCED
    blurred = sent.off(message(0, 1, 50.5, spread=0.1))
    assert outcome("mpi-faster-without-engine", partition(on, blurred)) == REFUTED


@pytest.mark.parametrize("variable", OFF)
def test_either_variable_switches_the_engines_off(variable):
    off = document(*every(peak(0.75)), environment={variable: "0"})
    both = partition(document(*every(peers.BW)), off)
    assert outcome("engine-off-faster", both) == REPRODUCED
    assert outcome("engine-two-levels", both) == REPRODUCED
    assert "copy-engine transfers" in because("engine-two-levels", partition(off))


def test_only_copies_by_engine_over_quad_links_are_held_against_the_engines_limit():
    scan = [pair(0, 1, 50.0, bytes=size) for size in (1 << 20, 1 << 25, 1 << 30)]
    other = document(pair(0, 6, 60.0), *scan), document(pair(0, 1, 150.0), environment=dict(OFF))
    assert outcome("engine-limited-at-every-size", partition(*other)) == REPRODUCED


@pytest.mark.parametrize(
    ("devices", "words"), [((0, 1), "pairs without a link"), ((1, 2), "linked pairs")]
)
def test_the_kind_of_pair_that_is_missing_beside_bridges_is_told(devices, words):
    verdict = judged("bridge-over-pcie", of(pair(*devices, 43.0), node="mi210"))
    assert verdict.outcome == NOT_TESTABLE and f"no copy-engine transfers of {words}" in (
        verdict.because
    )


def test_messages_are_those_of_mpi_else_of_osu(wording):
    osu = by("osu", *every(lambda a, b: 93.4, message, n=4), runtime="cuda")
    own = by("mpi", *every(lambda a, b: 80.0, message, n=4), runtime="cuda")
    both = partition(osu, own, node="a100-jureca")
    assert outcome("uniform-links-93-percent", both) == REFUTED
    wording(because("uniform-links-93-percent", both))
    alone = partition(osu, node="a100-jureca")
    wording(because("uniform-links-93-percent", alone))


def test_a_program_with_messages_as_large_as_the_documents_goes_first():
    reads = by("p2p", *every(peak(0.87), operation="read"))
    small = sent.off(*every(peak(0.85), message, size=16 << 20))
    large = every(lambda a, b: 0.88 * peak(0.87)(a, b), message, size=1 << 30)
    osu = by("osu", *large, environment=dict(OFF))
    assert outcome("mpi-below-direct-access", partition(reads, small)) == REFUTED
    assert outcome("mpi-below-direct-access", partition(reads, small, osu)) == REPRODUCED
    said = because("mpi-below-direct-access", partition(reads, small, osu))
    assert "ordered pairs, osu and p2p, 1 GiB)" in said


def test_smaller_messages_are_compared_by_the_program_that_has_both_sizes():
    both = [*sent.parts(0.86, 0.78), *sent.parts(0.68, 0.68, size=sent.SMALL)]
    osu = by("osu", *both, environment=dict(OFF))
    mpi = sent.off(*sent.parts(0.5, 0.5, size=1 << 28))
    assert outcome("jsc-smaller-messages", partition(mpi, osu)) == REPRODUCED
    assert "(osu, 4 MiB to 64 MiB)" in because("jsc-smaller-messages", partition(mpi, osu))


def test_messages_of_host_memory_are_none_of_devices(wording):
    on_host = {"memory": "host-pageable", "device": None, "numa_domain": 0}
    ends = {"source": on_host, "destination": on_host}
    found = partition(sent.on(*(one | ends for one in sent.lab(1))))
    wording(because("mpi-engine-below-50", found))


def test_collectives_of_mpi_fill_what_osu_lacks_and_are_named():
    times = {name: 50.0 if name == "bcast" else 30.0 for name in EVERY}
    library = by("rccl-tests", *(rccl(name, 2, time) for name, time in times.items()))
    own = by("mpi", collective("bcast", 2, 40.0))
    osu = by("osu", *(collective(name, 2, 40.0) for name in EVERY if name != "bcast"))
    verdict = judged("rccl-beats-mpi", partition(library, own, osu))
    assert verdict.outcome == REPRODUCED
    assert "mpi and rccl" in verdict.because and "osu and rccl" in verdict.because
    assert outcome("rccl-beats-mpi", partition(library, own)) == NOT_TESTABLE
    whole = by("osu", *(collective(name, 2, 40.0) for name in EVERY))
    other = by("mpi", *(collective(name, 2, 20.0) for name in EVERY))
    for order in ((other, whole), (whole, other)):
        assert outcome("rccl-beats-mpi", partition(library, *order)) == REPRODUCED


def test_rccl_counts_out_of_place_and_with_sizes_rounded_down():
    rounded = (1 << 20) - 64
    series = [
        rccl(name, count, time, bytes=rounded, in_place=place)
        for name in EVERY
        for count, time, place in ((7, 1.0, True), (7, 60.0, False), (8, 50.0, False))
    ]
    assert outcome("rccl-falls-at-eight", partition(by("rccl-tests", *series))) == REPRODUCED
    small = [one | {"bytes": 1 << 19} for one in series]
    assert outcome("rccl-falls-at-eight", partition(by("rccl-tests", *small))) == NOT_TESTABLE


def test_links_that_differ_or_are_not_told_are_no_ground(wording):
    gone = cases_links.told(differences=["0-6 has 2 links in mi250x, and none was told."])
    untold = cases_links.told(compared=False)
    for name in ("shortest-path-two-hops", "rocm-smi-link-table", "best-sets-predicted"):
        assert "0-6 has 2 links" in because(name, gone)
        wording(because(name, untold))
        assert outcome(name, gone) == outcome(name, untold) == NOT_TESTABLE


def test_differences_of_nics_tell_nothing_of_links():
    nics = by("nics", differences=["node1:cxi2 is down."], notes=[])
    both = partition(*cases_links.told().documents, nics)
    assert outcome("shortest-path-two-hops", both) == REPRODUCED


def test_pairs_that_differ_from_the_table_are_told_by_peak(wording):
    said = because("rocm-smi-link-table", cases_links.told("mi250"))
    wording(said)


def test_the_table_of_links_is_the_whole_one_of_the_data_set():
    records = of_folder(OWN_FOLDER).records
    assert set(links.TABLE.values()) == {one for one in records if one.startswith("hf-nodesbw-")}
    for (a, b), name in links.TABLE.items():
        conditions = records[name].conditions
        assert (conditions["src"], conditions["dst"]) == (f"GPU{a}", f"GPU{b}")


def test_wrong_data_are_named_and_faults_made_on_purpose_do_not_count(wording):
    wrong = groups.compared(2, operation="bcast")
    verdict = judged("mpi-right-data", partition(by("mpi", groups.compared(), wrong)))
    wording(verdict.because)
    made = by("mpi", groups.compared(), wrong, faults_injected=["bcast"])
    assert outcome("mpi-right-data", partition(made)) == NOT_TESTABLE


def test_of_many_pairs_three_are_named(wording):
    off = changed(peers.BW, (0, 3), (1, 2), to=41.0)
    wording(because("engine-two-levels", peers.copies(off)))
    wording(because("engine-two-levels", peers.CASES["engine-two-levels"].missing()))


def test_a_number_of_one_series_has_its_interval_and_one_of_several_is_computed():
    alone, many = of(pair(0, 1, 50.3), pair(0, 6, 50.4)), peers.copies()
    one, several = (judged("engine-quad-as-dual", it).numbers for it in (alone, many))
    assert [each.computed for each in one] == [each.interval is None for each in one]
    assert any(each.interval for each in one)
    assert all(each.computed and each.interval is None for each in several)


def test_times_with_more_than_two_devices_are_the_least_of_their_collective():
    times = {name: 30.0 + step for step, name in enumerate(TWO_PASSES)}
    series = [
        rccl(name, n, 20.0 if n == 2 else times[name] + n) for name in times for n in (2, 4, 8)
    ]
    said = because("rccl-grows-beyond-two", partition(by("rccl-tests", *series)))
    assert "1.7 (34 over 20) to 2 (40 over 20) (6 collectives" in said


def test_a_simulated_node_tells_what_was_built_in_or_fitted():
    copies = partition(simulated(*every(peers.BW)))
    two = judged("engine-two-levels", copies)
    assert two.outcome == REPRODUCED and two.by_construction
    assert two.fitted == ("simulation.link_efficiency",)
    assert judged("engine-quad-as-dual", copies).fitted == ()
    assert judged("engine-quad-as-dual", copies).by_construction
    assert not judged("engine-two-levels", peers.copies()).by_construction


ONE_ENGINE = (
    "engine-two-levels",
    "engine-parts-of-peak",
    "engine-quad-as-dual",
    "engine-limited-at-every-size",
    "engine-widest-path",
    "engine-off-faster",
)


def gangs(a, b):
    """How many engines of ROCm 6.1 and later share a copy from a to b."""
    return min(3, MI250X.link_counts.get((min(a, b), max(a, b)), 1))


def ganged(a, b):
    return min(MI250X.peer_peak_gbs(a, b) * 0.752, 50.0 * gangs(a, b))


def copied(rate, engines, sizes=(16 << 20, 256 << 20, 1 << 30), **changes):
    return document(
        *(
            pair(a, b, rate(a, b), engines=engines(a, b), bytes=size, bytes_moved=size)
            for a, b in permutations(range(8), 2)
            for size in sizes
        ),
        **changes,
    )


OFF_BY_KERNEL = document(
    *(
        pair(a, b, MI250X.peer_peak_gbs(a, b) * 0.75, engine="kernel", engines=None)
        for a, b in permutations(range(8), 2)
    ),
    environment=OFF,
)


@pytest.mark.parametrize("name", ONE_ENGINE)
def test_a_claim_about_one_engine_is_not_testable_where_several_share_a_copy(name):
    shared = partition(copied(ganged, gangs), OFF_BY_KERNEL)
    assert outcome(name, shared) == NOT_TESTABLE
    assert "3 copy engines share a copy from device 0 to 1" in because(name, shared)
    assert "HSA_ENABLE_SDMA_GANG=0" in because(name, shared)
    unknown = partition(copied(ganged, lambda a, b: None), OFF_BY_KERNEL)
    assert outcome(name, unknown) == NOT_TESTABLE
    assert "an unknown number of engines" in because(name, unknown)


@pytest.mark.parametrize("name", ONE_ENGINE)
def test_the_defaults_beside_copies_by_one_engine_change_no_claim(name):
    alone = partition(copied(peers.BW, lambda a, b: 1), OFF_BY_KERNEL)
    assert outcome(name, alone) == REPRODUCED
    for documents in (
        (copied(peers.BW, lambda a, b: 1), copied(ganged, gangs)),
        (copied(ganged, gangs), copied(peers.BW, lambda a, b: 1)),
    ):
        assert outcome(name, partition(*documents, OFF_BY_KERNEL)) == REPRODUCED


def test_copies_that_a_kernel_makes_are_not_by_engine_whatever_the_environment_says():
    by_kernel = of(
        *(pair(a, b, 100.0, engine="kernel", engines=None) for a, b in permutations(range(8), 2))
    )
    assert outcome("engine-two-levels", by_kernel) == NOT_TESTABLE
    assert "no copy-engine transfers" in because("engine-two-levels", by_kernel)


def test_variants_of_kernels_are_no_values_of_other_claims():
    default = list(every(peak(0.87), operation="copy"))
    slow = pair(0, 1, 10.0, "copy", elements=4, grid=1, bytes=2 << 30)
    assert outcome("kernel-three-tiers", of(*default, slow)) == REPRODUCED
    assert outcome("kernel-three-tiers", of(*default, slow | {"grid": None, "elements": 1})) == (
        REFUTED
    )


def test_sweeps_of_a_simulated_node_say_nothing(wording):
    found = partition(simulated(*peers.sweep(0, 1, 10.0, 150.0)))
    wording(because("kernels-need-compute-units", found))
