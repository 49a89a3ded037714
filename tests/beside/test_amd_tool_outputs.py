"""Outputs of TransferBench, rocm_bandwidth_test and BabelStream HIP: read right, or refused.

But for two published ones they are composed after the tools' sources: see `amd_tool_texts`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import amd_tool_texts as composed
import composed_tools
from damage import cells, rearranged
from fabricheck.beside.outputs import nvidia
from fabricheck.beside.outputs import rocm_bandwidth_test as rbt
from fabricheck.beside.outputs import transferbench as tb
from fabricheck.core.errors import FabricheckError, GarbledOutput, OtherRunError, WrongDataError

PUBLISHED = Path(__file__).parents[1] / "outputs" / "amd-published"
A2A = (PUBLISHED / "transferbench-1.60-a2a-mi300x.txt").read_text()
MI50 = (PUBLISHED / "rocm-bandwidth-test-2.6.0-mi50.txt").read_text()
MIB = 1 << 20
SIZE = 64 * MIB

#: One sentence that begins with the file, and the line where there is one.
OF_A_FILE = re.compile(r"the file( of [^:,]+)?(, line \d+)?: [^\n]+\.")


def refused(read, *arguments, error=GarbledOutput, **options):
    """Return the sentence of what must not pass; it names the file."""
    with pytest.raises(FabricheckError) as caught:
        read(*arguments, **options)
    assert OF_A_FILE.fullmatch(str(caught.value))
    assert isinstance(caught.value, error)
    return str(caught.value)


def p2p(text, executor="GFX", remote=False):
    return tb.parse_p2p(text, "the file", SIZE, executor, remote)


def a2a(text, settings=None, size=SIZE):
    return tb.parse_a2a(text, "the file", size, settings or {})


def one_to_all(text, executor="G", gpus=4):
    return tb.parse_one_to_all(text, "the file", SIZE, gpus, executor)


def scaling(text, most=8):
    return tb.parse_scaling(text, "the file", SIZE, most)


READERS = {
    "p2p": (p2p, composed.transferbench_p2p),
    "a2a": (a2a, composed.transferbench_a2a),
    "one2all": (one_to_all, composed.transferbench_one_to_all),
    "scaling": (scaling, composed.transferbench_scaling),
}
PRESETS = pytest.mark.parametrize("preset", READERS)


def some_cuts(text, step=13):
    """Yield what is left when it stops at every line's end, and at some places between."""
    for at in range(len(text.rstrip())):
        if at % step == 0 or text[at - 1] == "\n":
            yield text[:at]


# TransferBench


def test_a2a_published():
    found = a2a(A2A, {"A2A_MODE": "0", "USE_DMA_EXEC": "0"})
    assert (found.version, len(found.devices)) == ("1.60.00", 8)
    # Rows are sources: "GPU 0 to GPU 7 = 45.21 GB/s" says the page.
    assert found.values["GPU 00", "GPU 07"] == 45.21
    assert found.values["GPU 07", "GPU 00"] == 45.095
    assert (found.values[tb.SUM], found.values[tb.BY_HOST]) == (2606.891, 1937.924)
    assert ("GPU 03", "GPU 03") not in found.values
    assert len(found.values) == 56 + 2


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("executor", ["GFX", "DMA"])
def test_p2p_matrices(remote, executor):
    text = composed.transferbench_p2p(remote=remote, executor=executor)
    found = p2p(text, executor, remote)
    assert found.version == "1.60.00"
    assert found.values[tb.ALONE, "GPU 00", "GPU 01"] == 48.51
    assert found.values[tb.ALONE, "GPU 01", "GPU 00"] == 48.6
    assert found.values[tb.ALONE, "CPU 00", "GPU 01"] == 25.12
    assert found.values[tb.ALONE, "GPU 00", "GPU 00"] == 1690.85
    assert found.values[tb.BESIDE, "GPU 00", "GPU 01"] == 46.21
    assert found.values[tb.BOTH, "GPU 00", "GPU 01"] == 92.51
    assert (tb.BOTH, "GPU 00", "GPU 00") not in found.values


def test_p2p_of_1_52_and_without_a_host():
    found = p2p(composed.transferbench_p2p(version="1.52", cpus=0))
    assert found.version == "1.52" and len(found.values) == 4 + 2 + 2


@pytest.mark.parametrize(
    ("version", "tail"),
    [
        ("1.62.00", ""),
        ("1.67.00", " (HEAD:0123abc) (Single-node mode)"),
        ("1.69.00", " (HEAD:0123abc) (Single-node mode)"),
        ("1.68.00", " (develop:0123abc) (No extra feature support) (Single-node mode)"),
        ("2.1.0", " Backend v9 (with NIC support) [anything]"),
    ],
)
def test_later_versions_are_read_or_named(version, tail):
    text = composed.transferbench_p2p(version=version)
    banner = f"TransferBench v{version}"
    assert text.count(banner) == 1
    text = text.replace(banner, banner + tail)
    assert p2p(text).version == version
    known = version in ("1.62.00", "1.67.00")
    named = "" if known else f" of TransferBench {version} (known up to 1.67)"
    assert refused(p2p, text.replace("SRC+EXE", "Source")).startswith(f"the file{named}, line ")
    assert f"the file{named}: it has no " in refused(p2p, text[: text.index("Bytes Per")])


def test_a_run_of_several_nodes_is_refused(wording):
    text = composed.transferbench_p2p(version="1.67.00")
    text = text.replace("v1.67.00", "v1.67.00 (HEAD:0123abc) (Multi-node mode)")
    wording(refused(p2p, text, error=OtherRunError))


def test_a2a_pairs_without_a_link_have_no_value():
    found = a2a(composed.transferbench_a2a(missing=[(0, 1), (1, 0)], version="1.52"))
    assert ("GPU 00", "GPU 01") not in found.values and len(found.values) == 10 + 2
    assert found.values["GPU 00", "GPU 02"] == round(47 - 0.214, 3)


@pytest.mark.parametrize("borders", [True, False])
def test_a2a_of_1_67_has_the_same_values_with_two_decimals(borders):
    old = a2a(composed.transferbench_a2a(gpus=8)).values
    text = composed.transferbench_a2a(gpus=8, version="1.67.00", borders=borders)
    banner = "TransferBench v1.67.00"
    new = a2a(text.replace(banner, f"{banner} (HEAD:2bc42cd) (Single-node mode)"))
    assert (new.version, len(new.devices)) == ("1.67.00", 8)
    assert new.values[tb.SUM] == old[tb.SUM] and new.values[tb.BY_HOST] == old[tb.BY_HOST]
    assert new.values == pytest.approx(old, abs=0.0051)


def test_a2a_of_1_67_is_refused_with_other_values_sizes_and_runs(wording):
    text = composed.transferbench_a2a(version="1.67.00", missing=[(0, 1), (1, 0)])
    assert ("GPU 00", "GPU 01") not in a2a(text).values
    wording(refused(a2a, text.replace("47.02", "42.02")))
    assert "is not the" in refused(a2a, text.replace("CPU Timed: │ ", "CPU Timed: │ 1"))
    assert "transfers are of" in refused(a2a, text, size=SIZE + 1, error=OtherRunError)
    ranks = text.replace("[#Ranks:1]", "[#Ranks:2]")
    assert "several ranks" in refused(a2a, ranks, error=OtherRunError)
    nics = text.replace("QueuePairs:0", "QueuePairs:4")
    assert "of NICs" in refused(a2a, nics, error=OtherRunError)
    one = text.splitlines(keepends=True)
    for number, line in enumerate(one):
        if line.startswith("│") or "Timed" in line:
            refused(a2a, "".join([*one[:number], *one[number + 1 :]]))


def test_one_to_all_is_the_sum_of_all_others():
    values = one_to_all(composed.transferbench_one_to_all()).values
    assert values["G", tb.ALL] == pytest.approx(47.1 + 6) and values["G", 1] == 16.7
    old = composed.transferbench_one_to_all(size=SIZE, version="1.52", executor="D")
    assert one_to_all(old, "D").values["D", tb.ALL] == pytest.approx(47.1 + 6)


def test_scaling_has_its_best():
    values = scaling(composed.transferbench_scaling()).values
    assert values[1, "CPU 00"] == 9.3 and values[2, "GPU 00"] == 17.6
    assert values[tb.BEST, "GPU 01"] == 22.1


@PRESETS
def test_transferbench_cut_anywhere(preset):
    read, compose = READERS[preset]
    text = compose().rstrip("\n") + "\n"
    read(text)
    for short in some_cuts(text):
        refused(read, short)


@PRESETS
def test_transferbench_rows(preset):
    read, compose = READERS[preset]
    text = compose()
    row = re.compile(r" *(CPU|GPU) \d\d|RTotal|NumCUs| Best| *\d+ {2}|[ ,]+\d+\.\d{3} .*\(G0")
    rows = [i for i, line in enumerate(text.splitlines()) if row.match(line)]
    assert len(rows) > 4 or preset == "one2all"
    for damaged in rearranged(text, rows):
        refused(read, damaged)


@PRESETS
@pytest.mark.parametrize("by", ["nan", "-1.000", "0.000", "0.00", "x", "1e3", "47,1"])
def test_transferbench_damaged_values(preset, by):
    read, compose = READERS[preset]
    text = compose()
    head = max(text.find(word) for word in ("Bytes Per", "SRC\\DST ", "Executing", "NumCUs"))
    for match in list(re.finditer(r"\d+\.\d{2,3}", text))[1:60:3]:
        if match.start() > head:
            refused(read, text[: match.start()] + by + text[match.end() :])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Direction 67108864", "Direction 1048576", "of 1048576 B, not 67108864 B"),
        ("(GPU-Executor: GFX)", "(GPU-Executor: DMA)", "by DMA, not of 'Local read' by GFX"),
        ("TransferBench v1.60.00", "TransferBench v1.51", "of TransferBench 1.51, not of 1.52"),
        ("USE_REMOTE_READ      =            0", "USE_REMOTE_READ      =            1",
         "USE_REMOTE_READ was 1, not 0"),
    ],
)  # fmt: skip
def test_p2p_of_another_run(old, new, said):
    text = composed.transferbench_p2p().replace(old, new)
    assert said in refused(p2p, text, error=OtherRunError)


def test_a2a_of_another_run(wording):
    said = refused(a2a, A2A, {"USE_DMA_EXEC": "1"}, error=OtherRunError)
    assert said.endswith("USE_DMA_EXEC was 0, not 1.")
    said = refused(a2a, A2A, {"A2A_DIRECT": "0"}, error=OtherRunError)
    assert said.endswith("A2A_DIRECT was 1, not 0.")
    # TransferBench prints no settings with HIDE_ENV.
    text = A2A.replace("A2A_DIRECT ", "HIDDEN ")
    wording(refused(a2a, text, {"A2A_DIRECT": "0"}, error=OtherRunError))
    refused(a2a, A2A, size=MIB, error=OtherRunError)
    refused(one_to_all, composed.transferbench_one_to_all(gpus=3), error=OtherRunError)
    refused(one_to_all, composed.transferbench_one_to_all(), "D", error=OtherRunError)
    refused(scaling, composed.transferbench_scaling(most=4), error=OtherRunError)


@PRESETS
def test_transferbench_of_another_preset(preset):
    for other, (read, _) in READERS.items():
        if other != preset:
            refused(read, READERS[preset][1](), error=FabricheckError)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("326.317     316", "326.417     316"),
        ("RTotal  326.350", "RTotal  326.450"),
        ("2606.891     315", "2606.991     315"),
        ("Timed):   46.552", "Timed):   46.652"),
        ("Timed): 2606.891", "Timed): 2607.891"),
        ("(56 Transfers)", "(54 Transfers)"),
        ("47.126", "48.126"),
        ("GPU Timed", "CPU Timed"),
    ],
)
def test_a2a_that_contradicts_itself(old, new):
    assert old in A2A
    refused(a2a, A2A.replace(old, new, 1))


def test_p2p_that_contradicts_itself(wording):
    text = composed.transferbench_p2p()
    assert "average" in refused(p2p, text.replace("     48.51\n", "     49.51\n", 1))
    wording(refused(p2p, text.replace(" 92.51", " 92.61", 1)))


def test_a_pair_of_p2p_without_a_value_that_transferbench_measures(wording):
    text = composed.transferbench_p2p()
    wording(refused(p2p, text.replace("1690.85", "N/A    ", 1)))


def test_a_numa_node_without_cpus_executes_nothing(wording):
    """Neither the copies from it, nor in both directions those with it."""
    half = composed.transferbench_p2p(wrongly_idle=["CPU 01"])
    wording(refused(p2p, half))
    found = p2p(composed.transferbench_p2p(idle=["CPU 01"])).values
    assert (tb.ALONE, "GPU 00", "CPU 01") in found
    assert not {key for key in found if key[1] == "CPU 01"}
    assert not {key for key in found if key[0] != tb.ALONE and "CPU 01" in key}


def test_a_best_that_is_not_the_best(wording):
    text = composed.transferbench_scaling()
    wording(refused(scaling, text.replace("22.10(  3)", "22.10(  2)")))


def test_what_transferbench_says_of_errors():
    text = composed.transferbench_p2p()
    wrong = text.replace("GPU 00  ->", "[ERROR] Unexpected mismatch at index 7 of GPU 00  ->", 1)
    refused(p2p, wrong, error=WrongDataError)
    failed = "TransferBench v1.60.00\n[ERROR] One-to-all needs 2 GPUs\n"
    assert "TransferBench says: One-to-all needs 2 GPUs" in refused(one_to_all, failed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Encountered HIP error (no ROCm-capable device is detected) at line 9 in file Client.cpp",
         "Encountered HIP error (no ROCm-capable device is detected) at line 9 in file Client.cpp"),
        ("[ERROR] No GPU is visible", "No GPU is visible"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("head", ["", "TransferBench v1.60.00\n", "TransferBench v1.10\n"])
def test_an_error_of_transferbench_is_the_sentence(head, line, said):
    for read in (p2p, scaling, one_to_all):
        assert f": TransferBench says: {said}." in refused(read, f"{head}{line}\n")


# rocm_bandwidth_test


def matrices(text):
    return rbt.parse(text, "the file")


def test_rocm_bandwidth_test_published():
    found = matrices(MI50)
    assert (found.version, found.addresses) == ("2.6.0", ("19:00.0", "67:00.0"))
    assert found.devices == ("AMD Radeon Graphics", "AMD Radeon Graphics")
    # Rows are sources.
    assert found.values[rbt.ONE_WAY, "CPU 00", "GPU 00"] == 13.75
    assert found.values[rbt.ONE_WAY, "GPU 00", "CPU 00"] == 14.28
    assert found.values[rbt.ONE_WAY, "GPU 00", "GPU 00"] == 696.717
    assert found.values[rbt.BOTH_WAYS, "GPU 01", "CPU 00"] == 25.911
    assert found.values[rbt.ACCESS, "GPU 00", "GPU 01"] == 0
    assert found.values[rbt.DISTANCE, "GPU 01", "CPU 00"] == 20
    assert (rbt.ONE_WAY, "GPU 00", "GPU 01") not in found.values


def test_all_its_matrices():
    text = composed.rocm_bandwidth_test(cpus=2, gpus=3)
    found = matrices(text)
    assert {place[0] for place in found.values} == {
        rbt.ACCESS, rbt.DISTANCE, rbt.ONE_WAY, rbt.BOTH_WAYS
    }  # fmt: skip
    assert found.addresses == ("06:00.0", "07:00.0", "08:00.0")
    for short in some_cuts(text, 97):
        refused(matrices, short)
    refused(matrices, text + text[text.index(rbt.BOTH_WAYS) :])


def test_rocm_bandwidth_test_damaged(wording):
    lines = MI50.splitlines()
    rows = [i for i, line in enumerate(lines) if re.match(r" {10}\d ", line)]
    for text in rearranged(MI50, rows):
        refused(matrices, text)
    for text in cells(MI50, rows, "x"):
        refused(matrices, text)
    wording(refused(matrices, MI50.replace("25.911      25.911", "25.911      24.911")))
    refused(matrices, MI50.replace("13.750", "13.75"))
    refused(matrices, MI50.replace("13.750", "0.000"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Graphics,  GPU-9318692173497dfc,  19:0.0", "Graphics,  GPU-9318692173497dfc,  nan:0.0",
         "device 1 has no UUID and PCI address"),
        ("14.280      696.717     N/A", "14.280      696.717     48.902",
         "GPU 00 and GPU 01 have a value, but no access"),
        ("14.280      696.717     N/A", "14.280      N/A         N/A",
         "GPU 00 and GPU 00 have access, but no value"),
        ("0         N/A         13.750      13.769", "0         13.750      N/A         13.769",
         "CPU 00 and CPU 00 have a value, but it copies nothing between them"),
    ],
)  # fmt: skip
def test_rocm_bandwidth_test_that_contradicts_itself(old, new, said):
    assert old in MI50
    assert said in refused(matrices, MI50.replace(old, new, 1))


def test_rocm_bandwidth_test_of_another_version(wording):
    said = refused(matrices, MI50.replace("2.6.0", "2.3.11"), error=OtherRunError)
    wording(said)


# BabelStream


def test_babelstream_of_hip_has_the_same_table():
    text = composed.hip_stream_csv(composed_tools.babelstream_csv(512 * MIB // 8, 30))
    assert "Using HIP device" in text
    assert nvidia.parse_babelstream(text, "the file", 30, 512 * MIB).values["Copy",] == 4030.0
