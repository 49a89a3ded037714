"""Claims on copies between devices, of the simulated node as ROCm 5.7 and as 6.3."""

from __future__ import annotations

import pytest

import check_rows
from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON, ENV_PEER_ENGINES
from fabricheck.node import load
from fabricheck.papers.claims import CLAIMS, evaluate
from fabricheck.results.observed import Observed

ENGINE = ("engine-two-levels", "engine-parts-of-peak", "engine-quad-as-dual",
          "engine-limited-at-every-size", "engine-widest-path", "engine-off-faster")  # fmt: skip
PEER_OFF = {ENV_PEER_ENGINES: "0"}
WHAT = ("--pairs", "all", "--sizes", "16MiB,256MiB,1GiB", "--operations", "engine")


@pytest.fixture(scope="module", params=[None, "rocm-6-3"])
def documents(request, run):
    """Run the copies of p2p_engine, p2p_engine_off and p2p_defaults, each in its environment."""
    environments = {"on": ENGINES_ON, "off": ENGINES_OFF, "defaults": {}, "peer": PEER_OFF}
    ran = {
        name: run("p2p", *WHAT, overlay=request.param, **variables)
        for name, variables in environments.items()
    }
    assert {one.code for one in ran.values()} == {0}
    return request.param, {name: one.document for name, one in ran.items()}


def outcomes(*found):
    observed = Observed("local:sim-mi250x", check_rows.checks(*found), load("mi250x"))
    chosen = [claim for claim in CLAIMS if claim.id in ENGINE]
    assert len(chosen) == len(ENGINE)
    return {verdict.claim.id: verdict for verdict in evaluate(chosen, observed)}


@pytest.mark.full
def test_claims_of_one_engine_hold_on_both_beside_the_defaults(documents):
    _, ran = documents
    for order in (("on", "off", "defaults"), ("defaults", "off", "on")):
        found = outcomes(*(ran[name] for name in order))
        assert {name: one.outcome for name, one in found.items()} == dict.fromkeys(
            ENGINE, "reproduced"
        )


@pytest.mark.slow
def test_of_the_defaults_alone_they_are_not_testable_where_engines_share_copies(documents):
    overlay, ran = documents
    found = outcomes(ran["defaults"], ran["off"])
    wanted = "reproduced" if overlay is None else "not testable here"
    assert {one.outcome for one in found.values()} == {wanted}
    if overlay:
        assert {one.because for one in found.values()} == {
            "3 copy engines share a copy from device 0 to 1; one engine is required: set "
            "HSA_ENABLE_SDMA_GANG=0"
        }


def test_labels_say_what_moved_the_data_on_both(documents):
    overlay, ran = documents
    labels = {
        name: {(one["engine"], one["engines"]) for one in document["series"]}
        for name, document in ran.items()
    }
    assert labels["on"] == {("copy-engine", 1)}
    assert labels["off"] == {("kernel", None)}
    shared = {("copy-engine", count) for count in (1, 2, 3)}
    assert labels["defaults"] == (shared if overlay else {("copy-engine", 1)})
    # Where several engines would share a copy, they are not asked for from ROCm 6.1 on.
    ganged = {("copy-engine", 2), ("copy-engine", 3), ("kernel", None)}
    assert labels["peer"] == (ganged if overlay else {("kernel", None)})
