"""What the claim on a kernel beside copies says, and when it says nothing."""

from __future__ import annotations

from cases_devices import beside, session
from observations import because, outcome, partition, simulated

NAME = "engines-leave-compute-free"
FREE, TAKEN = (0.99, 0.98), (0.7, 0.9)


def test_the_sentence_has_both_parts_of_both_ways(wording):
    wording(because(NAME, session(FREE, TAKEN)))


def test_kernels_that_disturb_nothing_refute_it():
    assert outcome(NAME, session(FREE, (0.96, 0.99))) == "not reproduced"


def test_one_of_two_targets_is_enough_to_refute_it():
    assert outcome(NAME, session(FREE, TAKEN, (0.99, 0.8), TAKEN)) == "not reproduced"


def test_copies_that_are_by_kernel_where_engines_were_asked_for_are_none_by_engine():
    found = session(FREE, TAKEN, engine="kernel")
    assert outcome(NAME, found) == "not testable here"


def test_what_a_device_computes_is_not_simulated(wording):
    found = partition(simulated(*beside("peer", "engine", *FREE)))
    wording(because(NAME, found))
