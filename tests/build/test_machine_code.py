"""The check of machine code says what is wrong with a kernel (ci/machine-code.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "ci" / "machine-code.py"
CHASE = "_ZN10fabricheck3p2p12_GLOBAL__N_112chase_kernelEPKmPmij"
COPY = (
    "_ZN10fabricheck6stream12_GLOBAL__N_113stream_kernelILNS0_15StreamOperationE0ELb1EEE"
    "vPK15HIP_vector_typeIdLj2EES7_PS5_dm"
)
# Of what clang 15 makes for gfx90a: the instructions that matter, and some facts of two kernels.
ASSEMBLY = f"""
{CHASE}: ; @{CHASE}
\ts_load_dwordx4 s[0:3], s[4:5], 0x0
\ts_cbranch_scc1 .LBB1_4
\tglobal_load_dwordx2 v[2:3], v1, s[0:1]
.LBB1_2:                                ; =>This Inner Loop Header: Depth=1
\ts_waitcnt vmcnt(0)
\tglobal_load_dwordx2 v[2:3], v[2:3], off
\ts_cbranch_scc0 .LBB1_2
\tglobal_store_dwordx2 v[0:1], v[2:3], off
.LBB1_4:
\ts_endpgm
.Lfunc_end1:
{COPY}: ; @{COPY}
\tglobal_load_dwordx4 v[0:3], v[0:1], off
\tglobal_store_dwordx4 v[4:5], v[0:3], off glc slc
\ts_endpgm
.Lfunc_end2:
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .private_segment_fixed_size: 0
    .symbol:         {CHASE}.kd
    .vgpr_count:     64
    .vgpr_spill_count: 0
  - .agpr_count:     0
    .private_segment_fixed_size: 0
    .symbol:         {COPY}.kd
    .vgpr_count:     7
    .vgpr_spill_count: 0
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
"""
LOOP = "global_load_dwordx2 v[2:3], v[2:3], off"


def said(folder, text=None, target="gfx90a"):
    """The sentences of the check, without those of the kernels that the text lacks."""
    if text is not None:
        (folder / f"chase-hip-amdgcn-amd-amdhsa-{target}.s").write_text(text)
    ended = subprocess.run(
        [sys.executable, CHECK, folder], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    return [line for line in ended.stderr.splitlines() if not line.endswith("was not compiled")]


def test_nothing_is_wrong_with_what_the_compiler_makes(tmp_path):
    assert said(tmp_path, ASSEMBLY) == []


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_newer_targets_write_a_streaming_store_in_another_way(tmp_path, target):
    assert said(tmp_path, ASSEMBLY.replace("glc slc", "nt"), target) == []
    (sentence,) = said(tmp_path, ASSEMBLY.replace(" glc slc", ""), target)
    assert sentence.startswith(f"machine-code: {target}: stream_kernel<copy, true> accesses")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (LOOP, "flat_load_dwordx2 v[2:3], v[2:3]", "loop flat_load_dwordx2, global_store"),
        (LOOP, "s_load_dwordx2 s[0:1], s[0:1], 0x0", "loop s_load_dwordx2, global_store"),
        (LOOP, f"{LOOP}\n\t{LOOP}", "global_load_dwordx2, 2 loop global_load_dwordx2, global"),
        (LOOP, f"{LOOP} glc", "loop global_load_dwordx2 system, global_store"),
        (" glc slc", "", "by global_load_dwordx4, global_store_dwordx4, not by"),
        ("_store_dwordx4", "_store_dwordx2", "global_store_dwordx2 non-temporal, not by"),
        ("size: 0", "size: 16", "chase_kernel has private_segment_fixed_size 16, not 0"),
        ("spill_count: 0", "spill_count: 2", "chase_kernel has vgpr_spill_count 2, not 0"),
        (
            "count:     64",
            "count:     65",
            "chase_kernel takes 65 registers, which leaves 7 waves a SIMD",
        ),
        ("chase_kernel", "chose_kernel", "chose_kernel is not in the table of kernels"),
    ],
)
def test_what_is_wrong_is_said_of_the_kernel(tmp_path, old, new, sentence):
    text = ASSEMBLY.replace(old, new)
    assert text != ASSEMBLY
    assert sentence in said(tmp_path, text)[0]


def test_a_kernel_that_is_not_there_is_named(tmp_path):
    (tmp_path / "chase-hip-amdgcn-amd-amdhsa-gfx90a.s").write_text(ASSEMBLY)
    ended = subprocess.run([sys.executable, CHECK, tmp_path], capture_output=True, text=True)
    assert "gfx90a: wait_kernel was not compiled" in ended.stderr
    assert "chase_kernel was not compiled" not in ended.stderr


def test_a_build_without_assembly_is_no_good_one(tmp_path):
    assert "no assembly" in said(tmp_path)[0]
