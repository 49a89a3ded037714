"""Two modes of a metric, and nodes that are slower than others."""

import itertools
import random
import statistics

import pytest

from fabricheck.judge.calibration import rule


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((30, 16, 16.1, 30.2), ([16, 16.1], [30, 30.2])),
        # One value alone is no mode.
        ((30, 30, 30.1, 16), None),
        # A gap below the floor of 2 % of the median.
        ((100, 100, 101.9, 101.9), None),
        ((100, 100, 102.1, 102.1), ([100, 100], [102.1, 102.1])),
        # The gap is 10, and the groups' own deviations 2 and 2.01: five times is just above.
        ((80, 82, 84, 94, 96.01, 98.02), None),
        ((80, 82, 84, 94.1, 96.1, 98.1), ([80, 82, 84], [94.1, 96.1, 98.1])),
        # The looser of the two groups decides: 9 is less than 5 times 2.
        ((80, 82, 84, 93, 93, 93), None),
        # The widest gap splits off one value; what counts has two on each side.
        ((10, 20, 20, 25, 25), ([10, 20, 20], [25, 25])),
        ((1, 2, 3), None),
    ],
)
def test_two_modes(values, found):
    assert rule.modes(values, "GB/s") == found


def normal(seed, middle, count, deviation=0.5):
    """Values of a normal distribution, the same ones every time."""
    source = random.Random(seed)
    return [source.gauss(middle, deviation) for _ in range(count)]


def test_two_modes_of_many_values_whose_ends_meet():
    """Between 97 and 100 with a deviation of 0.5 no gap shows, and the middles are 3 apart."""
    values = normal(1, 97, 100) + normal(2, 100, 100)
    ordered = sorted(values)
    assert max(b - a for a, b in itertools.pairwise(ordered)) < 1
    low, high = rule.modes(values, "GB/s")
    assert (round(statistics.median(low)), round(statistics.median(high))) == (97, 100)
    assert len(low) == pytest.approx(100, abs=5)


@pytest.mark.parametrize("count", [40, 300])
def test_many_values_of_one_mode_are_not_split(count):
    source = random.Random(3)
    uniform = [source.uniform(90, 110) for _ in range(count)]
    for values in (normal(4, 100, count, 2.0), uniform):
        assert rule.modes(values, "GB/s") is None


def test_two_values_of_many_are_no_mode():
    """Of forty, two that were disturbed are noise: the tolerance has them, or refuses them."""
    assert rule.modes([100.0] * 38 + [90.0, 90.1], "GB/s") is None
    assert rule.modes([100.0] * 18 + [90.0, 90.1], "GB/s") == ([90.0, 90.1], [100.0] * 18)


def nodes(*medians, sessions=2):
    """Return by letter the values of nodes that are alike in each session."""
    return {"ABCDEFGHIJ"[index]: [one] * sessions for index, one in enumerate(medians)}


@pytest.mark.parametrize(
    ("medians", "unit", "aside"),
    [
        ((100, 100.1, 99.9, 100), "GB/s", ()),
        ((100, 100.1, 90, 100), "GB/s", ("C",)),
        # By two steps, both a quarter together.
        ((100, 100, 100, 100, 100, 100, 95, 70), "GB/s", ("G", "H")),
        # Of a latency the larger one is the slow one.
        ((10, 10, 10, 13), "us", ("D",)),
    ],
)
def test_a_minority_of_slow_nodes_is_set_aside(medians, unit, aside):
    assert rule.slow_nodes(nodes(*medians), unit) == (aside, None)


@pytest.mark.parametrize(
    ("medians", "unit", "lower", "upper"),
    [
        # A majority of slow nodes; a half; one of three, of which nobody can say who is right.
        ((90, 90, 100, 90, 90.1, 100), "GB/s", "ABDE", "CF"),
        ((90, 100, 90, 100), "GB/s", "AC", "BD"),
        ((100, 100, 90), "GB/s", "C", "AB"),
        # One fast node alone shows what the others do not reach.
        ((90, 90, 90, 90, 90, 90, 90, 100), "GB/s", "ABCDEFG", "H"),
        ((13, 13, 13, 10), "us", "D", "ABC"),
        # Two steps, of which the second would make it more than a quarter.
        ((100, 100, 100, 100, 100, 95, 95, 70), "GB/s", "FG", "ABCDE"),
    ],
)
def test_slow_nodes_that_are_no_minority_are_two_groups(medians, unit, lower, upper):
    aside, found = rule.slow_nodes(nodes(*medians), unit)
    assert aside == ()
    assert tuple("".join(one) for one in found) == (lower, upper)


def test_of_many_nodes_a_group_shows_without_a_gap():
    medians = normal(5, 97, 40) + normal(6, 100, 40)
    by_node = {str(index): [one] for index, one in enumerate(medians)}
    aside, found = rule.slow_nodes(by_node, "GB/s")
    assert aside == () and len(found[0]) == pytest.approx(40, abs=4)


def judge(by_node, unit="GB/s"):
    """Judge values by node, each in a campaign of its own."""
    values = [value for own in by_node.values() for value in own]
    letters = [node for node, own in by_node.items() for _ in own]
    return rule.judge(values, list(range(len(values))), unit, letters)


def test_a_node_counts_once_however_often_it_was_measured():
    """Of all sessions the median is 98.5, of the nodes 100."""
    found = judge({"A": [98.5] * 9, "B": [100.0] * 2, "C": [100.0] * 2})
    assert found.entry == (100.0, -0.025, None, "GB/s")


def test_the_spread_between_nodes_and_that_within_a_node_add_up():
    """Between: MAD of 99, 100, 101 is 1; within: of each two, 0.5 apart from the middle."""
    by_node = {"A": [98.5, 99.5], "B": [99.5, 100.5], "C": [100.5, 101.5]}
    tolerance = judge(by_node).tolerance
    assert tolerance.spread == pytest.approx(5 * 1.4826 * (1 + 0.25) ** 0.5 / 100)
    assert tolerance.worst == pytest.approx(1.5 * 1.5 / 100)


def test_slow_nodes_widen_no_tolerance():
    steady = {node: [100.0, 100.2] for node in "ABCD"}
    assert judge(steady).entry == (100.1, -0.02, None, "GB/s")
    slow = judge(steady | {"E": [91.0, 91.0]})
    assert (slow.entry, slow.excluded) == ((100.1, -0.02, None, "GB/s"), ("E",))


def test_a_majority_of_slow_nodes_is_refused_with_both_groups(wording):
    found = judge(nodes(90, 90, 90, 100, 100))
    wording(found.reason)
    assert found.entry == (0, None, None, "GB/s")


def test_nodes_that_were_measured_once_tell_nothing_of_their_noise(wording):
    once = judge(nodes(100, 100, 100, 100, 100, 100, sessions=1))
    wording(once.reason)
    half = nodes(100, 100, 100, sessions=2) | {"H": [100.0], "I": [100.0], "J": [100.0]}
    assert judge(half).reason == "rule"


def test_modes_that_switch_within_nodes_are_modes(wording):
    """The nodes' medians are alike, their sessions are not."""
    switching = {node: [100.0, 100.1, 90.0, 100.0, 90.1] for node in "ABCD"}
    wording(judge(switching).reason)


def test_many_letters_are_not_all_listed():
    assert rule.named([*"ABCDEFGHIJ"]) == "nodes A, B, C, D, E, F, G, H and 2 more"
    assert rule.named(["A"]) == "node A"


def partition(seed, count, slow=0, loss=0.0, between=0.5, within=0.2):
    """Return three sessions on each of many nodes, percent of deviation; the first ones slow."""
    source = random.Random(seed)
    middles = [source.gauss(100, between) * (1 - loss * (node < slow)) for node in range(count)]
    return {str(node): [source.gauss(middle, within) for _ in range(3)]
            for node, middle in enumerate(middles)}  # fmt: skip


@pytest.mark.parametrize("count", [5, 8, 30, 300])
def test_healthy_nodes_with_a_normal_spread_give_a_reference(count):
    """Of nodes that differ by 0.5 %, so that 5 standard deviations are 2.5 to 3 %."""
    found = [judge(partition(seed, count)) for seed in range(40 if count < 300 else 10)]
    assert sum(one.reason == "rule" for one in found) >= 0.9 * len(found)
    tolerances = [-one.entry[1] for one in found if one.reason == "rule"]
    assert statistics.median(tolerances) <= 0.03 and max(tolerances) <= 0.08
    # No healthy node alone is called slow in more than a few of them.
    assert sum(bool(one.excluded) for one in found) <= 0.1 * len(found)


@pytest.mark.parametrize("count", [5, 8, 30, 300])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.3, 0.7])
def test_no_slow_node_is_within_the_reference_that_it_made(count, part):
    """Ten percent slower: set aside, below the limit, or no reference; from one to 70 % of them."""
    slow = max(1, round(part * count))
    for seed in range(20 if count < 300 else 5):
        by_node = partition(seed, count, slow, 0.1)
        found = judge(by_node)
        if slow > count * rule.MOST_EXCLUDED:
            assert found.entry[1] is None
        elif found.entry[1] is not None:
            least = found.entry[0] * (1 + found.entry[1])
            assert max(statistics.median(by_node[str(node)]) for node in range(slow)) < least


def test_a_loss_of_five_deviations_is_not_told_from_spread():
    """The limit of the rule, as its page says: six of thirty are 5 % slower, and others vary."""
    unseen = 0
    for seed in range(20):
        by_node = partition(seed, 30, 6, 0.05, between=1.0, within=0.5)
        found = judge(by_node)
        if found.reason == "rule" and not found.excluded:
            least = found.entry[0] * (1 + found.entry[1])
            unseen += all(statistics.median(by_node[str(node)]) > least for node in range(6))
    assert unseen > 10
