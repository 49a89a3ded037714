"""OSU's outputs: read right, or refused with one sentence."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from damage import cells, cuts, rearranged, replaced, rows_of
from fabricheck.core.errors import (
    FabricheckError,
    GarbledOutput,
    NoDeviceSupport,
    OtherRunError,
    UsageError,
    WrongDataError,
)
from fabricheck.core.lines import doubled
from fabricheck.tools import osu

OUTPUTS = Path(__file__).parents[1] / "outputs"
MIB = 1 << 20


def recorded(name: str, where: str = "osu-7.4-host") -> str:
    return (OUTPUTS / where / f"{name}.txt").read_text()


TAILS = (
    "\n# OSU MPI-ROCM Latency Test v7.5\n# Datatype: MPI_CHAR.\n"
    "# Size       Avg Latency(us)        Validation   P50 Tail Lat(us)   P99 Tail Lat(us)\n"
    "1                       1.50              Pass               1.40               2.75\n"
    "2                       1.52              Pass               1.41               3.05\n"
)
REDUCE_SCATTER = (
    "\n# OSU MPI-ROCM Reduce_scatter Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
    "# Size       Avg Latency(us)\n1048576               123.45\n"
)
FAILED = (
    "\n# OSU MPI-ROCM Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"
    "# Size      Bandwidth (MB/s)        Validation\n"
    "1                       1.50              Pass\n"
    "2                       3.00              Fail\n"
    "DATA VALIDATION ERROR: osu_bw exited with status 1 on message size 2.\n"
)

GOOD = {
    "bw": (recorded("osu_bw"), "osu_bw", doubled(1, 4 * MIB)),
    "bw -c": (recorded("osu_bw_validate"), "osu_bw", doubled(1, MIB)),
    "latency": (recorded("osu_latency"), "osu_latency", doubled(1, 4 * MIB)),
    "bcast": (recorded("osu_bcast"), "osu_bcast", doubled(1, MIB)),
    "allgather -f": (recorded("osu_allgather"), "osu_allgather", doubled(1, MIB)),
    "allreduce -f": (recorded("osu_allreduce_full"), "osu_allreduce", doubled(4, 65536)),
    "bw, few sizes": (recorded("osu_bw_scan"), "osu_bw", doubled(MIB, 16 * MIB)),
    "bw, few sizes -c": (recorded("osu_bw_scan_c"), "osu_bw", doubled(MIB, 16 * MIB)),
    "bibw": (recorded("osu_bibw"), "osu_bibw", doubled(MIB, 4 * MIB)),
    "bibw -c": (recorded("osu_bibw_c"), "osu_bibw", doubled(MIB, 4 * MIB)),
    "mbw_mr": (recorded("osu_mbw_mr"), "osu_mbw_mr", doubled(MIB, 4 * MIB)),
    "mbw_mr -c": (recorded("osu_mbw_mr_c"), "osu_mbw_mr", doubled(MIB, 4 * MIB)),
    "reduce -f": (recorded("osu_reduce"), "osu_reduce", doubled(1024, MIB)),
    "reduce -f -c": (recorded("osu_reduce_c"), "osu_reduce", doubled(1024, MIB)),
    "reduce_scatter -f": (recorded("osu_reduce_scatter"), "osu_reduce_scatter", doubled(1024, MIB)),
    "bw, simulated": (
        recorded("osu_bw_engine_on", "osu-7.4-simulated"),
        "osu_bw",
        doubled(16 * MIB, 64 * MIB),
    ),
    "bw -c, simulated": (
        recorded("osu_bw_engine_off_c", "osu-7.4-simulated"),
        "osu_bw",
        doubled(16 * MIB, 64 * MIB),
    ),
    "latency, simulated": (
        recorded("osu_latency", "osu-7.4-simulated"),
        "osu_latency",
        doubled(16, 8192),
    ),
    "allreduce, simulated": (
        recorded("osu_allreduce", "osu-7.4-simulated"),
        "osu_allreduce",
        doubled(1024, MIB),
    ),
    "bw cuda": (
        recorded("osu_bw_gpu0_gpu1", "osu-7.4-cuda-h200"),
        "osu_bw",
        doubled(MIB, 256 * MIB),
    ),
    "latency cuda": (
        recorded("osu_latency_gpu0_gpu1", "osu-7.4-cuda-h200"),
        "osu_latency",
        doubled(1, 8192),
    ),
    "bcast cuda": (recorded("osu_bcast_8ranks", "osu-7.4-cuda-h200"), "osu_bcast", (MIB,)),
    "tails": (TAILS, "osu_latency", (1, 2)),
    "reduce_scatter": (REDUCE_SCATTER, "osu_reduce_scatter", (MIB,)),
}
every_good = pytest.mark.parametrize("name", GOOD)


def read(name: str) -> osu.OsuResult:
    text, program, sizes = GOOD[name]
    return osu.parse(text, name, program, sizes)


def refusal(text: str, program: str, sizes: tuple[int, ...], **options: bool) -> FabricheckError:
    """Return the error of a text that must not pass; its message is one sentence."""
    with pytest.raises(FabricheckError) as caught:
        osu.parse(text, "the file", program, sizes, **options)
    message = str(caught.value)
    assert re.fullmatch(r"the file(, line \d+)?: [^\n]+\.", message)
    return caught.value


def test_bandwidth_is_in_gb_per_second():
    result = read("bw")
    assert (result.program, result.version, result.accelerator) == ("osu_bw", "7.4", None)
    assert (result.unit, result.datatype, len(result.rows)) == ("GB/s", "MPI_CHAR", 23)
    assert result.rows[0] == osu.OsuRow(size=1, value=pytest.approx(8.05e-3))
    assert result.rows[-1].value == pytest.approx(10.46128)


def test_the_rate_of_several_pairs_is_that_of_all():
    result = read("mbw_mr")
    assert (result.unit, result.pairs, len(result.rows)) == ("GB/s", 2, 3)
    assert result.rows[-1].value == pytest.approx(5.138)
    both = read("bibw")
    assert (both.unit, both.pairs) == ("GB/s", None)


def test_latency_is_in_us():
    result = read("latency")
    assert (result.unit, result.rows[-1].size, result.rows[-1].value) == ("us", 4 * MIB, 367.07)


def test_iterations():
    assert read("allreduce -f").rows[-1] == osu.OsuRow(size=65536, value=25.71, iterations=100)


def test_columns_of_percentiles_are_no_values():
    assert [row.value for row in read("tails").rows] == [1.50, 1.52]
    text = (
        "# OSU MPI Bandwidth Test v7.4\n"
        "# Size      Bandwidth (MB/s) P50 Tail BW(MB/s)\n1  1500.00  1400.00\n"
    )
    assert osu.parse(text, "x", "osu_bw", (1,)).rows == (osu.OsuRow(1, 1.5),)


@every_good
def test_no_cut_passes(name):
    text, program, sizes = GOOD[name]
    for cut in cuts(text, len(text)):
        assert isinstance(refusal(cut, program, sizes), GarbledOutput)


@pytest.mark.slow
@every_good
@pytest.mark.parametrize("by", ["word", "-1", "nan", "inf", "-8.05", "1e3", "0.00"])
def test_no_other_cell_passes(name, by):
    text, program, sizes = GOOD[name]
    for damaged in cells(text, rows_of(text), by):
        refusal(damaged, program, sizes)


@every_good
def test_no_number_may_be_a_word(name):
    text, program, sizes = GOOD[name]
    assert len(list(replaced(text, "word"))) >= 1 + 2 * len(sizes)
    for damaged in replaced(text, "word"):
        refusal(damaged, program, sizes)


@every_good
def test_rows_are_those_asked_for(name):
    text, program, sizes = GOOD[name]
    for damaged in rearranged(text, rows_of(text)):
        assert isinstance(refusal(damaged, program, sizes), GarbledOutput)
    refusal(text, program, (*sizes, 2 * sizes[-1]))
    refusal(text, program, (2 * sizes[0], *sizes[1:]))


def test_a_crash_after_the_header(wording):
    text = recorded("osu_allreduce_8ranks_crashed", "osu-7.4-cuda-h200")
    error = refusal(text, "osu_allreduce", (MIB,))
    assert isinstance(error, GarbledOutput)
    wording(str(error))


def test_one_rank_prints_nothing(wording):
    text = recorded("osu_bw_one_rank")
    wording(str(refusal(text, "osu_bw", (1,))))


def test_help_instead_of_a_run(wording):
    error = refusal(recorded("osu_bw_rocm_not_built"), "osu_bw", (1,))
    wording(str(error))


def test_wrong_data_outweigh_what_is_missing(wording):
    error = refusal(FAILED, "osu_bw", (1, 2, 4))
    assert isinstance(error, WrongDataError)
    assert error.exit_code == 5
    wording(str(error))
    without_last = "".join(FAILED.splitlines(keepends=True)[:-1])
    assert isinstance(refusal(without_last, "osu_bw", (1, 2, 4)), WrongDataError)


def test_verification_that_was_asked_for():
    text, program, sizes = GOOD["bw -c"]
    assert osu.parse(text, "x", program, sizes, verified=True) == osu.parse(
        text, "x", program, sizes
    )
    text, program, sizes = GOOD["bw"]
    error = refusal(text, program, sizes, verified=True)
    assert isinstance(error, OtherRunError)
    assert "were not verified" in str(error)


def test_another_program():
    text, _, sizes = GOOD["bw"]
    for program in ("osu_latency", "osu_allreduce"):
        error = refusal(text, program, sizes)
        assert isinstance(error, OtherRunError) and "OSU's 'Bandwidth Test'" in str(error)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Size", "# OSU MPI Latency Test v7.4\n# Size", "a second program begins here"),
        ("Bandwidth (MB/s)", "Bandwidth (GB/s)", "not a known column"),
        ("Bandwidth (MB/s)", "Bandwidth (MB/s) Validation Validation", "each once"),
        ("# Datatype: MPI_CHAR.", "nonsense", "is above the names"),
        ("# Datatype: MPI_CHAR.", "# Datatype: MPI_", "is damaged"),
        ("1                       8.05", "1                       8.0", "two decimals"),
        ("8.05", "8.05 node1: a message", "cells"),
    ],
)
def test_damage_is_named(old, new, says):
    text, program, sizes = GOOD["bw"]
    assert says in str(refusal(text.replace(old, new, 1), program, sizes))


def test_a_second_output_behind_the_first():
    text, program, sizes = GOOD["bw"]
    assert "a second program" in str(refusal(text + text, program, sizes))


def test_a_rate_of_messages_fits_their_bandwidth():
    text, program, sizes = GOOD["mbw_mr"]
    old = "5431.08           5179.48"
    assert old in text
    swapped = text.replace(old, "5179.48           5431.08")
    assert "are not 5179.48 MB/s" in str(refusal(swapped, program, sizes))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("0.43              0.79", "0.63              0.79", "not between"),
        ("0.43              0.79", "0.43              0.59", "not between"),
    ],
)
def test_latencies_fit_each_other(old, new, says):
    text, program, sizes = GOOD["allreduce -f"]
    assert old in text
    assert says in str(refusal(text.replace(old, new, 1), program, sizes))


def test_the_banner_tells_who_made_the_buffers():
    osu.require_device_support(read("bw cuda"), "cuda")
    osu.require_device_support(read("tails"), "rocm")
    for name, wanted in (("bw", "rocm"), ("bw", "cuda"), ("bw cuda", "rocm")):
        with pytest.raises(NoDeviceSupport, match="did not measure device buffers") as caught:
            osu.require_device_support(read(name), wanted)
        assert caught.value.exit_code == 3


def test_a_build_with_rocm_that_was_not_asked_for_it():
    text = recorded("osu_bw_rocm_build_hh")
    result = osu.parse(text, "x", "osu_bw", doubled(1, 65536))
    with pytest.raises(NoDeviceSupport, match="the banner has 'MPI', not 'MPI-ROCM'"):
        osu.require_device_support(result, "rocm")


def test_where_older_versions_say_that_the_buffers_are():
    buffers = "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)"
    result = osu.parse(TAILS.replace("# Datatype: MPI_CHAR.", buffers), "x", "osu_latency", (1, 2))
    assert (result.datatype, result.comments) == (None, (buffers,))
    osu.require_device_support(result, "rocm")
    text = TAILS.replace("# Datatype: MPI_CHAR.", buffers.replace("DEVICE (D)", "HOST (H)", 1))
    result = osu.parse(text, "x", "osu_latency", (1, 2))
    with pytest.raises(NoDeviceSupport, match="not on a device"):
        osu.require_device_support(result, "rocm")


def test_managed_memory_is_not_device_memory():
    text = TAILS.replace("MPI-ROCM", "MPI-CUDA MANAGED")
    result = osu.parse(text, "x", "osu_latency", (1, 2))
    assert result.accelerator == "cuda managed"
    with pytest.raises(NoDeviceSupport):
        osu.require_device_support(result, "cuda")


@pytest.mark.parametrize(
    "log",
    [
        "[1700000000.123456] [node1:48213:0]   parser.c:2033 UCX  WARN  unused variable: UCX_X\n",
        "[1700000000.123456] [gpu-1.cluster:8    :0]     sock.c:515  UCX  WARN  unable to read\n",
        "[1700000000.123456] [x1000c0s0b0n0:3317 :async]  ib.c:1   UCX  DIAG  fork() is not safe\n",
        "[1700000000.123456] [0a1b2c3d4e5f:123456:1]     rc.c:77   UCX  DEBUG made an endpoint\n",
        "libfabric:48213:1700000000::cxi:mr:cxip_map():133<warn> node1: no hint of a page\n",
        "libfabric:48213:1700000000:main:core:core:ofi_hmem_init():418<info> ROCR is not built\n",
        "[node1:12345] 7 more processes have sent help message help-mpi-btl-openib.txt / no\n",
        "[node1:12345] 1 more process has sent help message help-mpi-btl-openib.txt / no\n",
        '[gpu-1.cluster:8] Set MCA parameter "orte_base_help_aggregate" to 0 to see all\n',
        # The table of UCX_PROTO_INFO.
        "[1700000000.123456] [node1:48213:0]   +--------------+---------------------+------+\n",
        "[1700000000.123456] [node1:48213:0]   | 0x5619 self cfg#0 | tagged message | host |\n",
        "libfabric:48213:core:core:fi_getinfo():1123<info> Since psm3 can be used\n",
        # --report-bindings of Open MPI 4 and 5.
        "[node18.cluster:01840] MCW rank 1 bound to socket 0[core 0[hwt 0]]: [B/././.]\n",
        "[node18.cluster:01840] MCW rank 1 is not bound (or bound to all processors)\n",
        "[node18:11600] Rank 0 bound to package[0][core:0]\n",
        "node1:11:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/IPC\n",
        "[2026-01-02 03:04:05] node1:11:12 [0] init.cc:140 NCCL WARN NUMA balancing is on\n",
    ],
)
def test_warnings_of_libraries_are_passed_over(log):
    text, program, sizes = GOOD["bw"]
    lines = text.splitlines(keepends=True)
    for position in range(len(lines) + 1):
        noisy = "".join([*lines[:position], log, *lines[position:]])
        assert osu.parse(noisy, "bw", program, sizes) == read("bw")
    with pytest.raises(GarbledOutput, match="only messages of libraries"):
        osu.parse(log, "bw", program, sizes)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            "libfabric:48213:1700000000::cxi:core:cxip_nic_alloc():52<critical> no NIC\n",
            "libfabric reports '1700000000::cxi:core:cxip_nic_alloc():52<critical> no NIC'",
        ),
        (
            "[node1:12345] *** An error occurred in MPI_Send\n",
            "Open MPI or PMIx reports '*** An error occurred in MPI_Send'",
        ),
        (
            "[node1:12345] PMIX ERROR: ERROR in file gds_ds12_lock.c at line 168\n",
            "Open MPI or PMIx reports 'PMIX ERROR: ERROR in file gds_ds12_lock.c at line 168'",
        ),
        (
            "[1700000000.123456] [node1:48213:0]  mm_xpmem.c:1 UCX  ERROR no memory\n",
            "UCX reports 'mm_xpmem.c:1 UCX  ERROR no memory'",
        ),
        (
            "[node17:127342:0:127342] Caught signal 11 (Segmentation fault: address not mapped)\n",
            "UCX reports 'Caught signal 11 (Segmentation fault: address not mapped)'",
        ),
    ],
)
@pytest.mark.parametrize("position", [3, 4, 6, 20])
def test_errors_of_libraries_are_named(log, says, position):
    text, program, sizes = GOOD["bw"]
    lines = text.splitlines(keepends=True)
    with pytest.raises(GarbledOutput) as raised:
        osu.parse("".join([*lines[:position], log, *lines[position:]]), "bw", program, sizes)
    assert says in str(raised.value) and f"line {position + 1}:" in str(raised.value)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("[1700000000.1] [node1:8:0]   | eager |", "UCX is inside this line: unset UCX_LOG_LEVEL "
         "and UCX_PROTO_INFO"),
        ("node1:11:12 [0] NCCL INFO Channel", "NCCL or RCCL is inside this line: unset NCCL_DEBUG"),
        ("[node1:8] MCW rank 1 bound to socket 0", "without --report-bindings"),
    ],
)  # fmt: skip
def test_a_message_inside_a_row_is_named_with_what_ends_it(message, says):
    text, program, sizes = GOOD["bw"]
    lines = text.splitlines()
    mixed = "\n".join([*lines[:-1], f"{lines[-1]} {message}", ""])
    with pytest.raises(GarbledOutput) as raised:
        osu.parse(mixed, "bw", program, sizes)
    assert says in str(raised.value)


@pytest.mark.parametrize("part", ["[", "[1.1]", "a", "a:1:", "[a:1] ", "[1.1] [a", "libfabric:1:"])
def test_a_long_damaged_line_is_refused_at_once(part):
    text, program, sizes = GOOD["bw"]
    lines = text.splitlines(keepends=True)
    lines.insert(-2, part * 100_000 + "\n")
    began = time.process_time()
    with pytest.raises(GarbledOutput) as raised:
        osu.parse("".join(lines), "bw", program, sizes)
    assert time.process_time() - began < 5 and len(str(raised.value)) < 300


def test_a_line_of_another_program_is_no_damaged_row():
    text, program, sizes = GOOD["bw"]
    lines = text.splitlines(keepends=True)
    lines.insert(-2, "Warning: Permanently added 'node2' to the list of known hosts.\n")
    with pytest.raises(GarbledOutput, match="is no row of the table: another program wrote it"):
        osu.parse("".join(lines), "bw", program, sizes)


LABELS = ("0: ", " 0: ", "node1.cluster 0: ", "[0] ", "[1,0]<stdout>:", "[prte-7@1,0]<stdout>: ")


@pytest.mark.parametrize("label", LABELS)
def test_a_launchers_labels_are_passed_over(label):
    text, program, sizes = GOOD["bw"]
    log = "[1700000000.123456] [node1:8    :0]   parser.c:2033 UCX  WARN  unused: UCX_X\n"
    lines = [log, *text.splitlines(keepends=True)]
    assert osu.parse("".join(label + one for one in lines), "bw", program, sizes) == read("bw")


def test_an_unknown_label_is_named(wording):
    text, program, sizes = GOOD["bw"]
    labelled = "".join(f"rank-0 | {one}" for one in text.splitlines(keepends=True))
    with pytest.raises(GarbledOutput) as raised:
        osu.parse(labelled, "bw", program, sizes)
    wording(str(raised.value))
    assert "SLURM_LABELIO" in str(raised.value)


def test_what_can_not_be_asked_for():
    for program, sizes in (("osu_alltoall", (1,)), ("osu_bw", ())):
        with pytest.raises(UsageError):
            osu.parse(GOOD["bw"][0], "x", program, sizes)


def test_sizes_double():
    assert doubled(1, 1) == (1,)
    assert doubled(4, 33) == (4, 8, 16, 32)
    for first, last in ((0, 8), (8, 4)):
        with pytest.raises(UsageError):
            doubled(first, last)
