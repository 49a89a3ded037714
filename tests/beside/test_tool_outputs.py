"""Outputs of nvbandwidth, BabelStream, p2pBandwidthLatencyTest: read right, or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import composed_tools as composed
from damage import cells, cuts, rearranged, rows_of
from fabricheck.beside.outputs import nvidia
from fabricheck.core.errors import FabricheckError, GarbledOutput, OtherRunError, WrongDataError

OUTPUTS = Path(__file__).parents[1] / "outputs"
NVBANDWIDTH = (OUTPUTS / "nvbandwidth-h200" / "three_testcases.json").read_text()
TESTCASES = (
    "device_local_copy",
    "device_to_device_memcpy_read_sm",
    "device_to_device_bidirectional_memcpy_read_ce",
)
BABELSTREAM = (OUTPUTS / "babelstream-h200" / "csv_512MiB.txt").read_text()
RUNS, ARRAY = 30, 512 << 20
P2P_TEST = (OUTPUTS / "h200" / "beside-1" / "p2p-test-1.txt").read_text()


def refused(parse, *arguments, error=GarbledOutput, **options):
    """Return the sentence of what must not pass; it names the file."""
    with pytest.raises(FabricheckError) as caught:
        parse(*arguments, **options)
    assert re.fullmatch(r"the file(, line \d+)?: [^\n]+\.", str(caught.value))
    assert isinstance(caught.value, error)
    return str(caught.value)


# nvbandwidth


def nvb(text, testcases=TESTCASES):
    return nvidia.parse_nvbandwidth(text, "the file", testcases)


def changed(change, index=2):
    """Return the recorded text with one testcase changed."""
    root = json.loads(NVBANDWIDTH)
    change(root["nvbandwidth"]["testcases"][index])
    return json.dumps(root)


def test_nvbandwidth_recorded():
    result = nvb(NVBANDWIDTH)
    assert (result.version, len(result.devices)) == ("v0.8", 2)
    assert result.values["device_local_copy", 0, 1] == 2094.08
    assert result.values["device_to_device_memcpy_read_sm", 1, 0] == 376.054
    # Of both directions the total, not one of them.
    assert result.values["device_to_device_bidirectional_memcpy_read_ce", 0, 1] == 779.132
    # N/A: a device is no peer of itself.
    assert ("device_to_device_memcpy_read_sm", 0, 0) not in result.values


def test_nvbandwidth_cut_anywhere():
    for text in cuts(NVBANDWIDTH, len(NVBANDWIDTH.rstrip())):
        refused(nvb, text)


@pytest.mark.parametrize("word", ["0", "-1", "nan", "inf", "", "x", 390.0, None])
def test_nvbandwidth_values_that_are_none(word):
    def change(case):
        case["bandwidth_matrix"][4][1] = word

    assert "positive value" in refused(nvb, changed(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda case: case["bandwidth_matrix"].pop(),
        lambda case: case["bandwidth_matrix"][0].pop(),
        lambda case: case.pop("bandwidth_matrix"),
        lambda case: case.update(sum=1.0),
        lambda case: case.pop("sum"),
        lambda case: case.update(status="Running"),
        lambda case: case.update(status="Error"),
        lambda case: case.update(error="mismatch"),
        lambda case: case.pop("name"),
    ],
)
def test_nvbandwidth_damaged_testcases(change):
    refused(nvb, changed(change))


@pytest.mark.parametrize("key", ["name", "sum", "bandwidth_matrix"])
def test_nvbandwidth_keys_that_stand_twice(key):
    """Of two equal keys a parser takes the last."""
    line = next(line for line in NVBANDWIDTH.splitlines() if f'"{key}" :' in line)
    other = f'"{key}" : 1,\n{line}'
    assert f"contains the key '{key}' twice" in refused(nvb, NVBANDWIDTH.replace(line, other, 1))


@pytest.mark.parametrize(
    ("unit", "by"), [("(GB/s)", "(MB/s)"), ("(GB/s)", ""), ("bandwidth_d", "d")]
)
def test_nvbandwidth_in_another_unit(unit, by):
    refused(nvb, NVBANDWIDTH.replace(unit, by, 1))


def test_nvbandwidth_between_a_device_and_itself(wording):
    def change(case):
        for row in case["bandwidth_matrix"]:
            row.reverse()

    wording(refused(nvb, changed(change)))


def test_nvbandwidth_of_other_testcases():
    refused(nvb, NVBANDWIDTH, TESTCASES[:2], error=OtherRunError)
    refused(nvb, NVBANDWIDTH, (*TESTCASES, "one_to_all_write_ce"), error=OtherRunError)


def test_nvbandwidth_says_what_failed():
    text = json.dumps(
        {"nvbandwidth": {"error": "[CUDA_ERROR_NO_DEVICE] none\n", "version": "v0.8"}}
    )
    assert "CUDA_ERROR_NO_DEVICE" in refused(nvb, text)
    refused(nvb, "[]")
    refused(nvb, '{"nvbandwidth": 1}')


def test_nvbandwidth_wrong_data():
    refused(nvb, " Invalid value when checking the pattern at 0x7f\n" + NVBANDWIDTH,
            error=WrongDataError)  # fmt: skip


def test_nvbandwidth_on_one_device_waives():
    names = ("device_local_copy", "one_to_all_write_ce")
    result = nvb(composed.nvbandwidth_json(names, devices=1), names)
    assert {name for name, *_ in result.values} == {"device_local_copy"}


# BabelStream


def babel(text, runs=RUNS, array=ARRAY):
    return nvidia.parse_babelstream(text, "the file", runs, array).values


def test_babelstream_recorded():
    rates = babel(BABELSTREAM)
    assert [kernel for (kernel,) in rates] == ["Copy", "Mul", "Add", "Triad", "Dot"]
    assert rates["Copy",] == pytest.approx(3454.22)


def test_babelstream_of_later_sources():
    assert babel(composed.babelstream_csv(ARRAY // 8, RUNS))["Triad",] == pytest.approx(4030.0)


def test_babelstream_cut_anywhere():
    for text in cuts(BABELSTREAM, len(BABELSTREAM)):
        refused(babel, text)


def test_babelstream_rows():
    rows = [i for i, line in enumerate(BABELSTREAM.splitlines()) if ",30,67108864," in line]
    for text in rearranged(BABELSTREAM, rows):
        refused(babel, text)


@pytest.mark.parametrize("by", ["0", "-1", "nan", "x", "1e-30", ""])
@pytest.mark.parametrize("field", range(1, 8))
def test_babelstream_damaged_fields(by, field):
    row = next(line for line in BABELSTREAM.splitlines() if line.startswith("Copy"))
    words = row.split(",")
    words[field] = by
    refused(babel, BABELSTREAM.replace(row, ",".join(words)), error=FabricheckError)


def test_babelstream_of_another_run():
    refused(babel, BABELSTREAM, 100, error=OtherRunError)
    refused(babel, BABELSTREAM, array=1 << 30, error=OtherRunError)


# p2pBandwidthLatencyTest


def p2p(text):
    return nvidia.parse_p2p_test(text, "the file")


def test_p2p_test_recorded():
    result = p2p(P2P_TEST)
    assert result.devices == ("NVIDIA H200", "NVIDIA H200")
    assert result.values[nvidia.WRITES, "D\\D", 0, 1] == 386.45
    assert result.values[nvidia.READS, "D\\D", 1, 0] == 389.55
    assert result.values[nvidia.BOTH, "D\\D", 1, 0] == 774.49
    assert result.values[nvidia.LATENCY_WRITES, "GPU", 0, 1] == 2.24
    assert result.values[nvidia.LATENCY_WRITES, "CPU", 1, 0] == 1.84
    assert (nvidia.WRITES, "D\\D", 0, 2) not in result.values


def test_p2p_test_of_three_devices():
    result = p2p(composed.p2p_test_text(3))
    assert result.values[nvidia.READS, "D\\D", 1, 2] == 389.0 + 1 + 4


def test_p2p_test_without_reads_is_of_another_command(wording):
    lines = P2P_TEST.splitlines(keepends=True)
    titles = [i for i, line in enumerate(lines) if "(P2P Reads)" in line]
    assert len(titles) == 2
    for first in titles:
        rows = 4 if "Bandwidth" in lines[first] else 7
        text = "".join([*lines[:first], *lines[first + rows :]])
        wording(refused(p2p, text))


def test_p2p_test_cut_anywhere():
    for text in cuts(P2P_TEST, len(P2P_TEST)):
        refused(p2p, text)


def test_p2p_test_rows():
    for text in rearranged(P2P_TEST, rows_of(P2P_TEST)):
        refused(p2p, text)


@pytest.mark.parametrize("by", ["-1", "nan", "x", "0.00"])
def test_p2p_test_damaged_cells(by):
    # A row of the connectivity may hold a zero; the first cell of a row is its device.
    rows = [row for row in rows_of(P2P_TEST) if "." in P2P_TEST.splitlines()[row]]
    assert rows
    for text in cells(P2P_TEST, rows, by):
        refused(p2p, text)


def test_p2p_test_that_failed():
    text = P2P_TEST.replace("Bidirectional P2P=Enabled", "Cuda failure x.cu:1: 'no'\nBidirectional")
    assert "Cuda failure" in refused(p2p, text)


def test_pairs_without_access_have_no_value():
    result = p2p(P2P_TEST.replace("Device=0 CAN Access", "Device=0 CANNOT Access"))
    assert (nvidia.WRITES, "D\\D", 0, 1) not in result.values
    assert result.values[nvidia.WRITES, "D\\D", 1, 0] == 395.96


def test_p2p_test_cells_have_two_digits_after_the_point(wording):
    """A digit that moved over a blank would give two other numbers."""
    damaged = P2P_TEST.replace("41.65 4240.90", "41.6 54240.90")
    assert damaged != P2P_TEST
    wording(refused(p2p, damaged))


# What holds of all.


@pytest.mark.parametrize("by", ["3.45422e+9999999999", "3.45422e+99999999999999999999"])
def test_an_exponent_that_no_number_has(by):
    refused(babel, BABELSTREAM.replace("3.45422e+06", by))


def test_a_long_line_gives_no_long_sentence(wording):
    said = refused(babel, BABELSTREAM.replace("\nMul,", "\n" + 9999 * "x" + "Mul,"))
    assert len(said) < 2100
    wording(re.sub("x+", "x", said))
