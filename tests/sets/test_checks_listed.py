"""`fabricheck site sets`: every check of a partition in a line, from the checks themselves."""

from __future__ import annotations

import pytest

from fabricheck.core import amounts


@pytest.mark.slow
def test_each_check_of_a_partition_is_a_line_with_what_limits_it(command):
    checks = command("site", "sets", "--system", "local:sim-mi250x", json=True).json["checks"]
    by_name = {check["check"]: check for check in checks}
    numbers = [int(check["experiments"][0][1:]) for check in checks if check["experiments"]]
    assert numbers == sorted(numbers) and len(by_name) == len(checks) > 40
    engine = by_name["p2p_engine"]
    assert (engine["program"], engine["sizes"], engine["sets"][0]) == ("p2p", str(1 << 30), "smoke")
    assert "engine_links2_worst" in engine["metrics"]
    assert by_name["mpi_collectives_best"]["sizes"] == str(1 << 20)
    assert sum(engine["limits"].values()) == len(engine["metrics"])
    assert {"published elsewhere", "rule", "report only"} <= engine["limits"].keys()
    assert by_name["pingpong_in_order"]["limits"].keys() == {"report only"}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("", "-"),
        ("1GiB", "1 GiB"),
        ("536870912", "512 MiB"),
        ("4:1GiB", "4 B to 1 GiB"),
        ("1MiB:1MiB", "1 MiB"),
        ("64KiB,256KiB,1MiB,4MiB", "64 KiB to 4 MiB (4)"),
    ],
)
def test_the_sizes_of_an_option_are_words(option, words):
    assert amounts.sizes(option) == words
