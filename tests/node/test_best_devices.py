"""The best devices by a node model against measured bandwidths."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from fabricheck.node import load
from fabricheck.node.placement import judge
from fabricheck.node.subsets import mean_between

NODE = load("mi250x")
PEAKS = {pair: NODE.peer_peak_gbs(*pair) for pair in permutations(range(8), 2)}


def changed(factor: float, *pairs: tuple[int, int]) -> dict[tuple[int, int], float]:
    """Return 3/4 of every peak, times a factor for some pairs in both directions."""
    slow = {pair for one in pairs for pair in (one, one[::-1])}
    return {pair: 0.75 * peak * (factor if pair in slow else 1) for pair, peak in PEAKS.items()}


@pytest.mark.parametrize(("k", "devices"), [(2, (0, 1)), (3, (0, 1, 6)), (4, (0, 1, 6, 7))])
def test_a_healthy_node_is_as_predicted(k, devices):
    found = judge(NODE, k, changed(1.0))
    assert (found.predicted, found.best) == (devices, devices)
    assert found.percent == 100.0
    assert found.predicted_gbs == pytest.approx(100 if k > 2 else 150)


def test_a_slow_pair_makes_another_set_the_best():
    found = judge(NODE, 2, changed(0.5, (0, 1)))
    assert (found.predicted, found.best) == ((0, 1), (2, 3))
    assert found.percent == pytest.approx(50)
    found = judge(NODE, 4, changed(0.5, (0, 1)))
    assert found.best == (2, 3, 4, 5)
    assert found.percent == pytest.approx(87.5)
    assert found.weakest == (0, 1) and found.weakest_peak_gbs == 200


def test_one_direction_is_enough():
    measured = changed(1.0)
    measured[1, 0] /= 10
    assert judge(NODE, 2, measured).percent == pytest.approx(55)
    assert judge(NODE, 2, measured).weakest == (1, 0)


def test_the_broken_link_is_named_and_not_what_goes_over_it():
    # Without the links 0-6, data between 0 or 1 and 6 or 7 has lost its path too.
    found = judge(NODE, 3, changed(0.5, (0, 6), (0, 7), (1, 6), (1, 7)) | {(0, 6): 37.6})
    assert found.best == (2, 3, 4)
    assert found.weakest == (0, 6)


def test_the_tolerance_of_the_reference_tells_the_next_best_sets_apart():
    # reference_values/best_devices.yaml says so.
    for k in (2, 3, 4):
        means = [mean_between(matrix(), chosen) for chosen in combinations(range(8), k)]
        best = mean_between(matrix(), NODE.best_subsets(k)[0])
        assert best == pytest.approx(max(means))
        assert max(mean for mean in means if mean < 0.999 * best) <= 0.75 * best * 1.0001


def matrix() -> list[list[float]]:
    measured = changed(1.0)
    return [[0.0 if a == b else measured[a, b] for b in range(8)] for a in range(8)]


def test_a_pair_that_was_not_measured():
    measured = changed(1.0)
    del measured[3, 5]
    with pytest.raises(KeyError):
        judge(NODE, 2, measured)


def test_devices_behind_a_switch_are_all_as_good():
    node = load("h200")
    measured = dict.fromkeys(permutations(range(8), 2), 390.0)
    assert judge(node, 3, measured).percent == 100.0


def test_a_single_device_has_no_bandwidth_to_another():
    assert mean_between(matrix(), (3,)) == 0.0
