"""Outputs of nccl-tests and rccl-tests: read right, or refused with one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nccl_texts as texts
from damage import cells, cuts, rearranged, replaced, rows_of
from fabricheck.core.errors import (
    FabricheckError,
    GarbledOutput,
    OtherRunError,
    UsageError,
    WrongDataError,
)
from fabricheck.core.lines import doubled
from fabricheck.tools import nccl
from fabricheck.tools.nccl import NcclRow, Timing
from nccl_texts import MIB

OUTPUTS = Path(__file__).parents[1] / "outputs" / "nccl-tests-h200"
SIZES = doubled(MIB, 4 * MIB)
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


def recorded(collective: str, ranks: int) -> str:
    return (OUTPUTS / f"{collective}_perf_{ranks}gpus_1MiB.txt").read_text()


RECORDED = {
    f"{collective} {ranks}": (recorded(collective, ranks), collective, ranks, (MIB,))
    for collective in NAMES
    for ranks in (2, 4, 8)
}
COMPOSED = {
    "rccl 2024": (texts.rccl_2024(texts.SCAN), "all_reduce", 8, SIZES),
    "rccl 2025": (texts.rccl_2025(texts.SCAN), "all_reduce", 8, SIZES),
}
GOOD = RECORDED | COMPOSED
every_good = pytest.mark.parametrize("name", GOOD)


def read(name: str) -> nccl.NcclResult:
    return nccl.parse(GOOD[name][0], name, *GOOD[name][1:])


def refusal(text: str, collective: str, ranks: int, sizes: tuple[int, ...]) -> FabricheckError:
    """Return the error of a text that must not pass; its message is one sentence."""
    with pytest.raises(FabricheckError) as caught:
        nccl.parse(text, "the file", collective, ranks, sizes)
    assert re.fullmatch(r"the file(, line \d+)?: [^\n]+\.", str(caught.value))
    return caught.value


def test_a_recorded_run():
    result = read("all_gather 2")
    assert (result.tests, result.library, result.batch) == ("nccl-tests 2.19.6", "2.28.9", 50)
    assert [(d.host, d.index, d.pci) for d in result.devices] == [
        ("vm", 0, "0000:00:06"),
        ("vm", 1, "0000:00:07"),
    ]
    assert result.rows == (NcclRow(MIB, "float", Timing(14.46, 36.25), Timing(13.85, 37.86)),)


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_run(name):
    assert len(read(name).devices) == RECORDED[name][2]


def test_what_the_tool_does_not_verify_is_left_out(wording):
    """sendrecv_perf has one buffer for both in its second columns, and compares nothing there."""
    text = (OUTPUTS.parent / "nccl-tests-two-nodes" / "sendrecv_perf.txt").read_text()
    sizes = doubled(8 * MIB, 1024 * MIB)
    result = nccl.parse(text, "the file", "sendrecv", 2, sizes)
    assert [row.size for row in result.rows] == list(sizes)
    assert result.rows[0].out_of_place == Timing(6561.75, 1.28)
    assert {row.in_place for row in result.rows} == {None}
    apart = text.replace("1.28    1.28       0", "1.28    1.28     N/A")
    said = str(refusal(apart, "sendrecv", 2, sizes))
    wording(said)
    # Of a collective both are verified.
    lines = recorded("all_reduce", 2).splitlines(keepends=True)
    (row,) = rows_of("".join(lines))
    lines[row] = re.sub(r"0\n$", "N/A\n", lines[row])
    assert "is N/A" in str(refusal("".join(lines), "all_reduce", 2, (MIB,)))


@pytest.mark.parametrize("name", COMPOSED)
def test_a_composed_scan_of_rccl_tests(name):
    result = read(name)
    assert result.tests == "rccl-tests develop:ae3e635"
    assert result.library == "2.20.5-develop:abcdef0"
    assert result.stack == (("HIP", "6.2.41133"), ("ROCm", "6.2.0.0-66"))
    assert result.devices[7].pci == "0000:c8:00.0"
    assert [row.size for row in result.rows] == list(SIZES)


@pytest.mark.slow
@every_good
def test_no_cut_passes(name):
    """Behind the line that ends the output nothing is told any more."""
    text, *asked = GOOD[name]
    whole = nccl.parse(text, name, *asked)
    last = "# Collective test concluded" if "test concluded" in text else "#\n\n"
    end = text.index("\n", text.rindex(last)) + 1
    for cut in cuts(text, end):
        assert isinstance(refusal(cut, *asked), GarbledOutput | OtherRunError)
    for length in range(end, len(text)):
        if text[length - 1] == "\n":
            assert nccl.parse(text[:length], name, *asked) == whole
        else:
            refusal(text[:length], *asked)


@every_good
@pytest.mark.parametrize("by", ["word", "-1", "nan", "inf", "-14.46", "1e+33", "0.00"])
def test_no_other_cell_passes(name, by):
    text, *asked = GOOD[name]
    for damaged in cells(text, rows_of(text), by):
        if damaged == text:
            continue  # the root of a collective without one is -1 already
        refusal(damaged, *asked)


@every_good
def test_no_number_may_be_a_word(name):
    text, *asked = GOOD[name]
    for damaged in replaced(text, "word"):
        refusal(damaged, *asked)


@every_good
def test_rows_are_those_asked_for(name):
    text, collective, ranks, sizes = GOOD[name]
    for damaged in rearranged(text, rows_of(text)):
        assert isinstance(refusal(damaged, collective, ranks, sizes), GarbledOutput)
    for others in ((*sizes, 2 * sizes[-1]), (2 * sizes[0], *sizes[1:]), sizes[:-1] or (1,)):
        assert isinstance(refusal(text, collective, ranks, others), OtherRunError)
    assert isinstance(refusal(text, collective, ranks + 1, sizes), OtherRunError)


@every_good
def test_wrong_data(name):
    text, *asked = GOOD[name]
    lines = text.splitlines(keepends=True)
    for row in rows_of(text):
        for wrong in ("1", "1e+06"):
            line = re.sub(r"0\n$", f"{wrong}\n", lines[row])
            error = refusal("".join([*lines[:row], line, *lines[row + 1 :]]), *asked)
            assert isinstance(error, WrongDataError)
            assert error.exit_code == 5
    failed = text.replace("values : 0 OK", "values : 2 FAILED")
    assert "2 values are out of bounds" in str(refusal(failed, *asked))
    contradicting = text.replace("values : 0 OK", "values : 0 FAILED")
    assert isinstance(refusal(contradicting, *asked), WrongDataError)


def test_not_verified_is_not_right():
    rows = "".join(texts.row(size, wrong="N/A") for size in SIZES)
    text = texts.rccl_2024(rows)
    asked = ("all_reduce", 8, SIZES)
    assert "#wrong of 1048576 B is N/A" in str(refusal(text, *asked))
    told = text.replace("validation: 1", "validation: 0")
    assert isinstance(refusal(told, *asked), OtherRunError)
    untold = texts.rccl_2024(texts.SCAN).replace("validation: 1", "validation: 0")
    assert "'validation: 0' means" in str(refusal(untold, *asked))


@pytest.mark.parametrize("name", ["all_reduce 8", "all_gather 4", "reduce 2", "rccl 2024"])
def test_bandwidths_fit_each_other(name):
    text, *asked = GOOD[name]
    lines = text.splitlines(keepends=True)
    (row, *_) = rows_of(text)
    algbw, busbw = lines[row].split()[-3:-1]
    for value, says in ((algbw, "algbw is"), (busbw, "busbw is")):
        # The last of equal numbers is busbw where the factor is one.
        head, _, tail = lines[row].rpartition(value)
        damaged = f"{head}{float(value) * 1.02:.2f}{tail}"
        error = refusal("".join([*lines[:row], damaged, *lines[row + 1 :]]), *asked)
        assert says in str(error) or algbw == busbw


def test_numbers_of_few_digits():
    """New versions shorten what is too wide; the digits that are left have to fit."""
    size = 1 << 34
    left = f"{size:12}  {size // 4:12}     float     sum      -1"
    body = f"{left}  1.2e+06   14317   25055      0  1.2e+06   14317   25055      0\n"
    text = texts.rccl_2024(body, first=size, last=size)
    assert "algbw is" in str(refusal(text, "all_reduce", 8, (size,)))
    body = f"{left}  1.2e+06   14.32   25.06      0  1.2e+06   14.32   25.06      0\n"
    text = texts.rccl_2024(body, first=size, last=size)
    assert nccl.parse(text, "x", "all_reduce", 8, (size,)).rows[0].in_place.time_us == 1.2e6


@pytest.mark.parametrize(
    "left", ["float", "float     sum", "float      -1", "float    none      -1"]
)
def test_redop_and_root_may_be_empty(left):
    rows = "".join(texts.row(size, left=left, factor=7 / 8, count=size // 32) for size in SIZES)
    result = nccl.parse(texts.rccl_2024(rows), "x", "all_gather", 8, SIZES)
    assert [row.size for row in result.rows] == list(SIZES)


def test_sizes_that_eight_ranks_can_not_share():
    """A scan from 8 B of a divided collective begins with rows of size 0, one after another."""
    printed = (0, 0, 0, 0, 128, 256)
    rows = "".join(
        texts.row(size, left="half sum -1", factor=7 / 8, count=size // 16) for size in printed
    )
    text = texts.rccl_2024(rows, first=8, last=256)
    result = nccl.parse(text, "x", "reduce_scatter", 8, doubled(8, 256))
    assert [row.size for row in result.rows] == list(printed)
    refusal(text.replace("         128  ", "          64  ", 1), "reduce_scatter", 8, (8,))


def test_in_place_only():
    rows = "".join(texts.row(size, times=[20 + size / 5e4]) for size in SIZES)
    text = texts.rccl_2024(rows).replace(texts.GROUP * 2, texts.GROUP)
    result = nccl.parse(text, "x", "all_reduce", 8, SIZES)
    assert result.rows[0].out_of_place is None
    assert result.rows[0].in_place.time_us == pytest.approx(20 + MIB / 5e4, abs=0.01)


@every_good
def test_lines_of_the_library_are_passed_over(name):
    text, *asked = GOOD[name]
    logs = (
        texts.WARNING,
        "[1700000000.123456] [node1:8    :0]   parser.c:2033 UCX  WARN  unused variable: UCX_X\n",
        "libfabric:8:1700000000::cxi:mr:cxip_map():133<warn> node1: no hint of a page\n",
        "[node1:8] 7 more processes have sent help message help-mpi-btl-openib.txt / no\n",
        "node1:11:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/IPC\n",
        "node1:11:12 [0] NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)\n",
        "node1:11:12 [0] NCCL INFO Using network AWS Libfabric\n",
    )
    lines = text.splitlines(keepends=True)
    for position in range(len(lines) + 1):
        noisy = "".join([*lines[:position], *logs, *lines[position:]])
        labelled = "".join(f"0: {one}\n" for one in noisy.splitlines())
        result = nccl.parse(noisy, name, *asked)
        assert nccl.parse(labelled, name, *asked) == result
        assert result.rows == read(name).rows
        named = [(one.process, one.name, one.is_provider) for one in result.network]
        process = "process 11 (node1)"
        assert named == [(process, "cxi", True), (process, "AWS Libfabric", False)]


@pytest.mark.parametrize(
    ("banner", "tests", "library", "headers"),
    [
        ("# rccl-tests version 2.17.9-develop:0123abc rccl-headers=22803 rccl-library=22707",
         "rccl-tests 2.17.9-develop:0123abc", "2.27.7", "2.28.3"),
        ("# rccl-tests version 2.18.3", "rccl-tests 2.18.3", None, None),
        ("# nccl-tests version 2.19.6 nccl-headers=23003 nccl-library=2708 (rev 1a2b)",
         "nccl-tests 2.19.6", "2.7.8", "2.30.3"),
        ("# nccl-tests version 2.20.0 (0123abc) nccl-headers=23007 nccl-library=23007",
         "nccl-tests 2.20.0", "2.30.7", "2.30.7"),
        ("rccl-tests: Version HEAD:0123abc", "rccl-tests HEAD:0123abc", None, None),
        ("rccl-tests: Version :+", "rccl-tests :+", None, None),
    ],
)  # fmt: skip
def test_banners_with_versions(banner, tests, library, headers):
    text = texts.rccl_2025(texts.SCAN)
    text = text.replace("rccl-tests: Version develop:ae3e635\n", "")
    text = text.replace("graph: 0", "graph: 0 unalign: 0 anything: 1")
    told = f"{banner}\n{re.sub('RCCL version.*', '', text)}"
    found = nccl.parse(told, "x", "all_reduce", 8, SIZES)
    assert (found.tests, found.library, found.headers) == (tests, library, headers)
    # A line of RCCL's own says more than the code.
    assert nccl.parse(f"{banner}\n{text}", "x", "all_reduce", 8, SIZES).library == (
        "2.20.5-develop:abcdef0"
    )


def test_a_line_of_the_library_inside_a_row(wording):
    text, *asked = GOOD["all_reduce 2"]
    mixed = text.replace("   14.56", " node1:11:12 [0] NCCL INFO Channel 00\n   14.56")
    wording(str(refusal(mixed, *asked)))


def test_the_name_that_some_builds_with_mpi_have():
    text, *asked = GOOD["all_reduce 8"]
    renamed = text.replace("all_reduce_perf", "all_reduce_perf_mpi")
    assert nccl.parse(renamed, "all_reduce 8", *asked) == read("all_reduce 8")


def test_what_the_library_says_last_is_no_failure():
    """RCCL repeats its last warning there."""
    text = texts.rccl_2024(texts.SCAN)
    warned = text[:-1] + 'Missing "iommu=pt" from kernel command line\n'
    asked = ("x", "all_reduce", 8, SIZES)
    assert nccl.parse(warned, *asked) == nccl.parse(text, *asked)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("all_reduce_perf", "all_gather_perf", "not all_reduce_perf"),
        ("Rank  1 Pid", "Rank  2 Pid", "rank 2 is in the place of rank 1"),
        ("device  1 [0000:c2:00.0]", "device  0 [0000:c1:00.0]", "ranks 0 and 1 share device 0"),
        ("Rank  1 Pid", "Rank  1 Group  1 Pid", "in groups"),
        ("nGpus 1", "nGpus 3", "not a multiple"),
        ("busbw #wrong", "busbw  error", "the columns must be"),
        ("float     sum", "float8    sum", "not a known data type"),
        ("float     sum", "double    sum", "are not 1048576 B"),
        ("sum      -1", "prod     -1", "several data types, reductions or roots"),
        ("sum      -1", "sum word -1", "not a row of the table"),
        ("RCCL version", "RCCL version : 2.18.3\nRCCL version", "the ranks have versions"),
        ("# Errors", "# Testing 2 cycle.\n# Errors", "is inside the table"),
        ("# Out", "message\n# Out", "row"),
        ("bandwidth    : 47.5262", "bandwidth    : nan", "damaged"),
        (
            "step: 2(factor)",
            "step: 1048576(bytes)",
            "more sizes|differs from the requested 4194304 B",
        ),
    ],
)
def test_damage_is_named(old, new, says):
    text = texts.rccl_2024(texts.SCAN)
    if old not in text:
        text = texts.rccl_2025(texts.SCAN)
    assert old in text
    assert re.search(says, str(refusal(text.replace(old, new, 1), "all_reduce", 8, SIZES)))


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("# nThread", "the text is empty"),
        ("#  Rank  0", "the names of the columns"),
        ("# Out of", "'# Out of bounds values'"),
        ("# Avg", "'# Avg bus bandwidth'"),
        ("#\n# Collective test concluded", "its end"),
    ],
)
def test_what_is_missing_is_named(before, says):
    text, *asked = GOOD["all_reduce 4"]
    text = text[text.index("# nThread") :]
    named = "# Collective test starting: all_reduce_perf\n" if "end" in says else ""
    assert says in str(refusal(named + text[: text.index(before)], *asked))


def test_a_second_output_behind_the_first():
    for text, *asked in GOOD.values():
        assert "a second test" in str(refusal(text + text, *asked))


def test_another_collective_of_an_old_banner_does_not_fit():
    """Nothing names it there, but the bus bandwidth does."""
    text = texts.rccl_2024(texts.SCAN)
    for collective in ("all_gather", "reduce_scatter", "broadcast", "reduce"):
        refusal(text, collective, 8, SIZES)


def test_an_older_code_of_a_version():
    text = recorded("all_reduce", 2).replace("nccl-library=22809", "nccl-library=2708")
    text = "".join(line for line in text.splitlines(keepends=True) if "NCCL version" not in line)
    assert nccl.parse(text, "x", "all_reduce", 2, (MIB,)).library == "2.7.8"


def test_another_tool_is_refused():
    error = refusal("Hello\n", "all_reduce", 2, (MIB,))
    assert "nccl-tests and rccl-tests" in str(error)


def test_what_can_not_be_asked_for():
    text, *_ = GOOD["all_reduce 2"]
    for asked in (("alltoall", 2, (MIB,)), ("all_reduce", 0, (MIB,)), ("all_reduce", 2, ())):
        with pytest.raises(UsageError):
            nccl.parse(text, "x", *asked)


@every_good
@pytest.mark.parametrize(("unit", "by"), [("(us)", "(ms)"), ("GB/s", "MB/s"), ("(B)", "(KiB)")])
def test_values_of_other_units_are_refused(name, unit, by):
    text, *asked = GOOD[name]
    line = next(line for line in text.splitlines() if "(elements)" in line)
    assert "the units" in str(refusal(text.replace(line, line.replace(unit, by, 1)), *asked))
    assert "the units" in str(refusal(text.replace(f"{line}\n", ""), *asked))


@every_good
@pytest.mark.parametrize("by", ["9" * 5000, "\u0663"])
def test_a_number_that_no_tool_prints_is_one_short_sentence(name, by):
    text, *asked = GOOD[name]
    for damaged in replaced(text, by):
        said = str(refusal(damaged, *asked))
        assert "a number that no tool prints" in said and len(said) < 200


def test_a_banner_of_another_test_is_refused():
    text, *asked = GOOD["all_reduce 2"]
    other = "rccl-tests: Version develop:ae3e635\n"
    assert "a second test" in str(refusal(text.replace("#\n# Using", f"{other}# Using"), *asked))
