"""Outputs of vendors' loopbacks: whole ones are read, damaged and other ones are refused."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

import loopback_texts as texts
from damage import cells, cuts, rearranged, replaced, rows_of
from fabricheck.core.errors import GarbledOutput, InvalidInputError, OtherRunError
from fabricheck.tools.nic_loopback import TOOLS

CXI, IB = texts.cxi_loopback(), texts.ib_write_bw()


def of_cxi(text, nic="cxi0"):
    return TOOLS["cxi_gpu_loopback_bw"].parse(text, "a.out", nic)


def of_ib(text, nic="mlx5_0", size=65536):
    return replace(TOOLS["ib_write_bw"], message_bytes=size).parse(text, "a.out", nic)


@pytest.mark.parametrize("nic", texts.HPE)
def test_what_hpe_prints_for_a_compute_node(nic):
    rate = float(texts.HPE[nic][0])
    assert of_cxi(f"$ for i in 0\n{nic}\n{texts.cxi_loopback(nic)}", nic) == rate


def test_runs_of_perftest():
    assert of_ib(IB) == of_ib(texts.ib_write_bw(remark=False)) == 98.02
    whole = texts.ib_write_bw(size=1 << 20)
    assert of_ib(whole, size=1 << 20) == 92.62
    lines = IB.splitlines()
    lines.insert(-1, "Warning: the clock of the processor varies")
    lines.insert(3, " a line of a newer version")
    assert of_ib("\n".join(lines) + "\n") == 98.02


@pytest.mark.parametrize(("text", "read"), [(CXI, of_cxi), (IB, of_ib)])
def test_damaged_texts_are_refused(text, read):
    row = rows_of(text)
    damaged = [*cuts(text, len(text)), *rearranged(text, row)]
    damaged += [one for by in ("x", "nan", "-1", "") for one in cells(text, row, by)]
    for one in damaged:
        with pytest.raises(InvalidInputError, match=r"^a\.out"):
            read(one)
    # Other numbers of the text are not of the result, or contradict it.
    for one in replaced(text, "x"):
        with contextlib.suppress(InvalidInputError):
            assert read(one) == read(text)


def test_other_runs_are_refused():
    with pytest.raises(OtherRunError, match=r"it is of cxi0, not of cxi1\."):
        of_cxi(CXI, "cxi1")
    with pytest.raises(OtherRunError, match=r"it is of mlx5_0, not of mlx5_1\."):
        of_ib(IB, "mlx5_1")
    with pytest.raises(OtherRunError, match=r"messages have 65536 bytes, not 1048576\."):
        of_ib(IB, size=1 << 20)


def test_rates_that_contradict_each_other():
    reason = "its bandwidth and its rate of messages contradict each other"
    with pytest.raises(GarbledOutput, match=reason):
        of_cxi(texts.cxi_loopback(rate="84.63"))
    with pytest.raises(GarbledOutput, match=reason):
        of_cxi(texts.cxi_loopback(rate="0.00"))
    with pytest.raises(GarbledOutput, match=reason):
        of_ib(IB.replace("98.02", "98.12"))


def test_other_units_and_other_tools():
    cxi, ib = "'CXI Loopback Bandwidth Test'", "'RDMA_Write BW Test'"
    for read, text, title in (
        (of_ib, IB.replace("Gb/sec", "MB/sec"), ib),
        (of_cxi, CXI.replace("BW[Gb/s]", "BW[MB/s]"), cxi),
        (of_cxi, IB, cxi),
        (of_ib, CXI, ib),
        (of_cxi, CXI + CXI, cxi),
        (of_ib, IB + IB, ib),
        # Of other sizes than the row, or cut off and joined.
        (of_cxi, CXI.replace(": 524288", ": 1024"), cxi),
        (of_cxi, CXI.replace("TX Mem", "Tx mem"), cxi),
        (of_cxi, CXI.replace("Write Size (B)", "Write Size (b)"), cxi),
    ):
        reason = f"it has no whole table of {title} with one row in Gb/s"
        with pytest.raises(GarbledOutput, match=reason):
            read(text)
