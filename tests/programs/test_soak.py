"""`soak`: everything at once in verified passes, and a bit that flips in one of them."""

import pytest

from fabricheck.results.document import load

#: Passes of some milliseconds; the devices share what cores there are.
QUICK = ("--size", "1MiB", "--load-time", "0.01", "--pass-time", "0.001")

LANES = ["copy", "compute", "copy", "compute", "h2d", "d2h", "h2d", "d2h", "engine", "engine"]


def test_each_pass_is_a_verified_sample_of_all_kinds_of_work(run):
    ran = run("soak", *QUICK)
    assert ran.code == 0, ran.err
    document = load(ran.output)
    series, load_of = document["series"], document["soak"]
    assert [each["operation"] for each in series] == LANES
    assert {each["role"] for each in series} == {"beside"}
    passes = len(load_of["passes"])
    assert passes >= 7
    assert {len(each["samples"]) for each in series} == {passes}
    begins = [begin for begin, _ in load_of["passes"]]
    assert begins == sorted(begins)
    # Memory is compared after a pass, and before it is written again.
    compared = {"copy": 2 * passes}
    for each in series:
        times = compared.get(each["operation"], passes)
        assert each["verification"]["bytes_checked"] == times * each["bytes"]
    assert load_of["wrong"] == []
    assert load_of["cpu_s"] > 0


def test_a_flipped_bit_is_found_with_device_address_bit_and_time(run):
    fault = ("--inject-fault", "flip-bit:4096:7", "--fault-pass", "3", "--fault-device", "1")
    ran = run("soak", *QUICK, *fault)
    assert ran.code == 5, ran.err
    document = load(ran.output)
    (wrong,) = document["soak"]["wrong"]
    begin, end = document["soak"]["passes"][3]
    assert (wrong["pass"], wrong["device"]) == (3, 1)
    assert wrong["offset_bytes"] % (1 << 20) == 4096
    assert (wrong["bits"], wrong["errors"], wrong["at_rest"]) == ([7], 1, False)
    assert wrong["at_s"] >= end >= begin
    assert [each["verification"]["errors"] for each in document["series"]] == [0, 0, 1, *7 * [0]]
    # The load went on, with right data.
    assert len(document["soak"]["passes"]) >= 7


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--pairs", "0-0"], "the pair 0-0 is one device twice"),
        (["--memory", "0.99"], "--memory"),
    ],
)
def test_what_is_no_load_is_refused(run, arguments, sentence):
    ran = run("soak", *QUICK, *arguments)
    assert ran.code == 2
    assert sentence in ran.err
