#!/usr/bin/env python3
"""Runs the AMD machine code of every kernel on an emulator and compares what it wrote.

emulate-kernels.py --emulator CHECKOUT [--code-objects BUILD ...] [--log FILE]

CHECKOUT is one of tinygrad (https://github.com/tinygrad/tinygrad), whose test/mockgpu/amd has the
emulator. BUILD is a folder of code objects, of a build with --save-temps=obj: build/rocm of
ci/compile-check.sh, or that of ci/compile-newest-hip.sh in its chroot; those that are there are
the default. The emulator compiles by a clang, and llvm-readobj reads the code objects.

Every kernel of every target runs, with counts that fill no block, and what it must not write is
looked at too; then faults are injected, which the kernels that compare have to find. The emulator
has no time, no caches and one memory: docs/evidence/machine-code.md says what follows.

Ends with 1 and a sentence for each kernel that does wrong or is not run, 2 for bad usage, 3 where
something is missing on this machine.
"""

import argparse
import datetime
import importlib.util
import json
import os
import shutil
import sys
import time
from pathlib import Path

from emulation.cases import CASES, not_run
from emulation.machine import CodeObject, Device, Emulator, Kernel
from emulation.values import Wrong

ROOT = Path(__file__).resolve().parents[1]
BUILDS = [ROOT / "build/rocm", ROOT / "build/newest-hip/chroot/fabricheck/build"]
NAME = "emulate-kernels"
MISSING = 3


def tool(*names):
    """Return the path of the first of some programs that exists, or None."""
    folders = os.pathsep.join(
        [os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib").glob("llvm-*/bin")))]
    )
    return next(filter(None, (shutil.which(name, path=folders) for name in names)), None)


def machine_code():
    """Return the module ci/machine-code.py, which names kernels."""
    spec = importlib.util.spec_from_file_location("machine_code", ROOT / "ci/machine-code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(build, readobj):
    """Return the kernels of a build, by target and name, and the compilers."""
    name_of = machine_code().name_of
    targets, compilers = {}, set()
    for path in sorted(build.glob("**/*-hip-amdgcn-amd-amdhsa-gfx*.out")):
        stem, _, target = path.stem.partition("-hip-amdgcn-amd-amdhsa-")
        if "CompilerIdHIP" in path.parts:
            continue
        code = CodeObject(path, readobj)
        compilers.add(code.compiler)
        for metadata in code.metadata:
            name = f"{path.parent.name}/{stem} {name_of(metadata['.name'])}"
            targets.setdefault(target, {})[name] = Kernel(code, metadata)
    return targets, sorted(compilers)


def run_case(device, kernel):
    """Return a row: the result of the case of a kernel."""
    device.start_row()
    begun, wrong = time.monotonic(), None
    try:
        CASES[kernel](device, kernel)
    except Wrong as why:
        wrong = str(why)
    except Exception as why:  # of the emulator: the other kernels are still worth running
        wrong = f"the emulator: {type(why).__name__}: {why}"
    return {
        "kernel": kernel,
        "elements": device.elements,
        "blocks": device.blocks,
        "right": wrong is None,
        "wrong": wrong,
        "faults_found": device.faults,
        "seconds": round(time.monotonic() - begun, 2),
    }


def run_build(emulator, build, readobj, wrong):
    """Run all kernels of a build, print a line for each, and return the log's entries."""
    targets, compilers = loaded(build, readobj)
    record = {"compiler": ", ".join(compilers), "targets": {}}
    for target, kernels in sorted(targets.items()):
        print(f"\n{target}, {record['compiler']}")
        print(f"{'kernel':45} {'elements':>8} {'blocks':>6} {'result':6} {'faults':>6} {'s':>6}")
        device, rows = Device(emulator, kernels), []
        for kernel in CASES:
            if kernel not in kernels:
                wrong.append(f"{target}: {kernel} was not compiled")
                continue
            row = run_case(device, kernel)
            rows.append(row)
            print(
                f"{kernel:45} {row['elements']:8} {row['blocks']:6} "
                f"{'right' if row['right'] else 'WRONG':6} {row['faults_found']:6} "
                f"{row['seconds']:6.2f}",
                flush=True,
            )
            if row["wrong"]:
                wrong.append(f"{target}: {kernel}: {row['wrong']}")
        wrong += [f"{target}: {kernel} is run by no case" for kernel in kernels.keys() - CASES]
        record["targets"][target] = rows
    return record


def fail(sentence):
    """End with a sentence about something missing."""
    print(f"{NAME}: {sentence}", file=sys.stderr)
    sys.exit(MISSING)


def main():
    """Run the kernels of all builds."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.partition("\n")[0])
    parser.add_argument("--emulator", type=Path, required=True, help="checkout of tinygrad")
    parser.add_argument(
        "--code-objects", type=Path, nargs="+", metavar="BUILD", help="folders with code objects"
    )
    parser.add_argument("--log", type=Path, help="JSON file of what was run")
    asked = parser.parse_args()
    if not (asked.emulator / "test/mockgpu/amd/emu.py").is_file():
        fail(f"{asked.emulator} is no checkout of tinygrad: it has no test/mockgpu/amd/emu.py")
    readobj = tool("llvm-readobj", "llvm-readobj-15", "llvm-readobj-21")
    clang = tool("clang", "clang-15", "clang-21")
    if readobj is None or clang is None:
        fail(f"{'clang' if readobj else 'llvm-readobj'} is missing: install LLVM")
    builds = asked.code_objects or [build for build in BUILDS if build.is_dir()]
    for build in builds or BUILDS[:1]:
        if not any(build.glob("**/*-hip-amdgcn-amd-amdhsa-gfx*.out")):
            fail(f"{build} has no code objects: ci/compile-check.sh rocm build/rocm makes some")
    os.environ.setdefault("CC", clang)
    emulator = Emulator(asked.emulator.resolve())
    wrong = list(not_run(ROOT / "src/bench"))
    log = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "emulator": {"repository": "tinygrad/tinygrad", "commit": emulator.commit()},
        "builds": [run_build(emulator, build, readobj, wrong) for build in builds],
    }
    if asked.log:
        asked.log.write_text(json.dumps(log, indent=1) + "\n")
    for sentence in wrong:
        print(f"{NAME}: {sentence}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
