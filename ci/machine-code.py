#!/usr/bin/env python3
"""Checks the machine code of the kernels for AMD GPUs: machine-code.py BUILD_DIR.

Reads the assembly that a build with --save-temps=obj leaves. Ends with 1 and a sentence for each
kernel that is not as the table below says, has scratch, or leaves registers for too few waves.
"""

import itertools
import re
import subprocess
import sys
from pathlib import Path

# A thread's memory accesses in the order of the code, as a regular expression. A store of system
# scope needs no bits on gfx90a.
ONE, TWO = ["global_load_dwordx4"], ["global_load_dwordx4"] * 2
PLAIN, STREAMING = ["global_store_dwordx4"], ["global_store_dwordx4 non-temporal"]
# The stores of kernels that compare: the elements that differ, the first of them, and how many were
# compared.
FOUND = ["global_atomic_add_x2", "global_atomic_umin_x2", "global_atomic_add_x2"]


def variants():
    """Yield the kernels that loop over an array: N elements at a time, then one at the end."""
    load, store = "loop global_load_dwordx4", "loop global_store_dwordx4"
    word = {False: "", True: " non-temporal"}
    flags = {False: "false", True: "true"}
    for count in (1, 2, 4, 8):
        rest = 1 if count > 1 else 0
        for streaming in (False, True):
            loads, stores = [load + word[streaming]], [store + word[streaming]]
            yield f"read_kernel<{flags[streaming]}, {count}>", [*loads * (count + rest), *PLAIN]
            yield f"write_kernel<{flags[streaming]}, {count}>", stores * (count + rest)
            for other in (False, True):
                stores_of = [store + word[other]]
                for name, sources in (("copy", 1), ("scale", 1), ("add", 2), ("triad", 2)):
                    yield (
                        f"loop_kernel<{name}, {flags[streaming]}, {flags[other]}, {count}>",
                        [*loads * sources * count, *stores_of * count]
                        + [*loads * sources, *stores_of] * rest,
                    )


VARIANTS = dict(variants())
# Of eight elements of two sources a compiler may store some before it has loaded all.
ANY_ORDER = {name for name in VARIANTS if re.match(r"loop_kernel<(add|triad), .*8>", name)}
# Of kernels that loop a compiler may load the block size by a vector load before the loop, and
# arguments in it.
ARGUMENTS = {"global_load_ushort", "loop s_load_dword", "loop s_load_dwordx2"}
KERNELS = {
    "stream_kernel<copy, false>": [*ONE, *PLAIN],
    "stream_kernel<copy, true>": [*ONE, *STREAMING],
    "stream_kernel<scale, false>": [*ONE, *PLAIN],
    "stream_kernel<scale, true>": [*ONE, *STREAMING],
    "stream_kernel<add, false>": [*TWO, *PLAIN],
    "stream_kernel<add, true>": [*TWO, *STREAMING],
    "stream_kernel<triad, false>": [*TWO, *PLAIN],
    "stream_kernel<triad, true>": [*TWO, *STREAMING],
    **VARIANTS,
    "multiply_add_kernel": [*["global_load_dwordx2"] * 8, *["global_store_dwordx2"] * 4],
    "cycle_kernel": ["global_store_dwordx2"],
    "chase_kernel": ["global_load_dwordx2", "loop global_load_dwordx2", "global_store_dwordx2"],
    "wait_kernel": ["loop global_load_dword system", "global_store_dword( system)?"],
    "fill_kernel": ["global_store_dwordx2"],
    "poison_kernel": ["global_store_dwordx2"],
    "compare_kernel<Expected>": ["loop global_load_dwordx2", *FOUND],
    "compare_kernel<ExpectedSums>": ["loop global_load_dwordx2", *FOUND],
    "flip_kernel": ["(global_load_ubyte, )?global_store_(byte|dwordx2)"],
    "set_kernel<unsigned char>": ["global_store_byte"],
    "set_kernel<unsigned long>": ["global_store_dwordx2"],
    "fill_kernel<unsigned char>": ["global_store_byte"],
    "fill_kernel<int>": ["global_store_dword"],
    "fill_kernel<float>": ["global_store_dword"],
    "fill_kernel<double>": ["global_store_dwordx2"],
    "compare_kernel<unsigned char>": ["loop global_load_ubyte", *FOUND],
    "compare_kernel<int>": ["loop global_load_dword", *FOUND],
    "compare_kernel<float>": ["loop global_load_dword", *FOUND],
    "compare_kernel<double>": ["loop global_load_dwordx2", *FOUND],
}
OPERATIONS = ["copy", "scale", "add", "triad"]
# How each target writes what an access asks of the caches.
BITS = {
    "gfx90a": {"": "", "glc": " system", "glc slc": " non-temporal"},
    "gfx942": {"": "", "sc0 sc1": " system", "nt": " non-temporal"},
    "gfx950": {"": "", "sc0 sc1": " system", "nt": " non-temporal"},
}
FULL = 8  # waves a SIMD
REGISTERS = 512  # of a lane, for all waves of a SIMD
GRANULE = 8  # registers are given out in so many


def name_of(symbol):
    """Return the name of a kernel, with its template's arguments, as in the table."""
    text = subprocess.run(
        ["c++filt", symbol], capture_output=True, text=True, check=True
    ).stdout.strip()
    name = re.search(r"(\w+_kernel(<.*?>)?)\(", text)[1]
    name = name.replace("fabricheck::Expected", "Expected")
    return re.sub(
        r"\(fabricheck::stream::StreamOperation\)(\d)", lambda m: OPERATIONS[int(m[1])], name
    )


def in_loop(lines):
    """Return the numbers of the lines between a label and a branch back to it."""
    labels, inside = {}, set()
    for number, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = number
        elif (branch := re.match(r"\ts_c?branch\w* (\.L\w+)", line)) and branch[1] in labels:
            inside.update(range(labels[branch[1]], number))
    return inside


def accesses(lines, target):
    """Return the memory accesses of a kernel; scalar loads only if they are in a loop."""
    loop = in_loop(lines)
    instructions = []
    for number, line in enumerate(lines):
        access = re.match(r"\t((?:global|flat|scratch|buffer|ds)_\w+|s_(?:buffer_)?load_\w+)", line)
        if access is None or (access[1].startswith("s_") and number not in loop):
            continue
        bits = " ".join(re.findall(r"\b(?:glc|slc|nt|sc[01])\b", line))
        instructions.append(
            ("loop " if number in loop else "") + access[1] + BITS[target].get(bits, f" {bits}")
        )
    return instructions


def kernels_of(text):
    """Return the symbol, lines and resources of each kernel of an assembly file."""
    for facts in re.split(r"\n  - (?=\.)", text.partition("\namdhsa.kernels:")[2])[1:]:
        resources = dict(re.findall(r"^ *\.(\w+): +(\S+)$", facts, re.MULTILINE))
        symbol = resources["symbol"].removesuffix(".kd")
        code = re.search(rf"^{symbol}:.*?^\.Lfunc_end", text, re.MULTILINE | re.DOTALL)[0]
        yield symbol, code.split("\n"), resources


def wrong_with(name, accesses_, resources):
    """Return sentences on the differences of a kernel from the table."""
    wanted, seen = KERNELS[name], accesses_
    if name in VARIANTS or name.startswith("compare_kernel"):
        seen = [access for access in accesses_ if access not in ARGUMENTS]
    if name in ANY_ORDER:
        wanted, seen = sorted(wanted), sorted(seen)
    if not re.fullmatch(", ".join(wanted), ", ".join(seen)):
        yield f"accesses memory by {counted(seen)}, not by {counted(wanted)}"
    for fact in ["private_segment_fixed_size", "vgpr_spill_count"]:
        if resources[fact] != "0":
            yield f"has {fact} {resources[fact]}, not 0"
    if waves(resources) < FULL:
        count = resources["vgpr_count"]
        yield f"takes {count} registers, which leaves {waves(resources)} waves a SIMD"


def counted(accesses_):
    """Return accesses as text, equal ones that follow each other with their number."""
    groups = [(access, len(list(several))) for access, several in itertools.groupby(accesses_)]
    return ", ".join(access if count == 1 else f"{count} {access}" for access, count in groups)


def waves(resources):
    """Return the number of waves of a kernel that fit on a SIMD."""
    granules = max(1, -(-int(resources["vgpr_count"]) // GRANULE))
    return min(FULL, REGISTERS // (granules * GRANULE))


def main(build):
    """Check all kernels of all targets in a build."""
    wrong, seen = [], {}
    for file in sorted(Path(build).glob("**/*-hip-amdgcn-amd-amdhsa-*.s")):
        target = file.stem.rpartition("-")[2]
        for symbol, lines, resources in kernels_of(file.read_text()):
            name, accesses_ = name_of(symbol), accesses(lines, target)
            seen.setdefault(target, set()).add(name)
            if name not in KERNELS:
                wrong.append(f"{name} is not in the table of kernels")
            else:
                wrong += [
                    f"{target}: {name} {why}" for why in wrong_with(name, accesses_, resources)
                ]
    for target, names in sorted(seen.items()):
        print(f"machine-code: {target}: {len(names)} kernels read")
        wrong += [f"{target}: {name} was not compiled" for name in KERNELS.keys() - names]
    if not seen:
        wrong.append(f"no assembly under {build}: build with --save-temps=obj")
    for sentence in wrong:
        print(f"machine-code: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
