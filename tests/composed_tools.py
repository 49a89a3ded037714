"""Composed: programs that print what the real ones would, in their formats, with made-up values.

Nothing here was measured. Each fake is a script that reads its own command line, so that a launch
with other arguments gives another output. FAKE_FAULT is NAME:FAULT, or several with commas between
them: launches that go wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import amd_tool_texts as amd
import factories

MIB = 1 << 20

#: Devices that all fakes see, and values of ours in GB/s (bytes once) or us.
DEVICES = int(os.environ.get("FAKE_DEVICES", "2"))
OURS = {
    "copy": 2130.0, "h2d": 55.5, "d2h": 55.4, "both": 51.0, "engine": 396.3, "read": 375.0,
    "write": 374.0, "engine-both": 782.0, "read-both": 673.0, "write-both": 737.0,
    "latency": 2.2, "latency-host": 6.3, "chase": 0.81,
}  # fmt: skip


def nvbandwidth_json(testcases, devices=2, scale=1.0, **changes):
    """Compose the output of ``nvbandwidth -j``."""
    cases = [nvbandwidth_case(name, devices, scale) for name in testcases]
    root = {
        "CUDA Runtime Version": 13000,
        "Driver Version": "580.159.04",
        "GPU Device list": [
            f"{i}: NVIDIA H200 (00000000:00:{6 + i:02x}): (vm)" for i in range(devices)
        ],
        "git_version": "v0.8",
        "testcases": cases,
        "version": "v0.8",
    }
    return json.dumps({"nvbandwidth": root | changes}, indent="\t") + "\n\n"


def nvbandwidth_value(name):
    """Return the made-up value of a testcase: some above ours, some below."""
    for word, value in (
        ("local", 2090.0), ("latency", 828.0), ("bidirectional_memcpy_ce", 51.4),
        ("device_to_device_bidirectional", 390.0), ("host", 55.45), ("read_sm", 376.0),
        ("write_sm", 370.0), ("device_to_device_memcpy_read_ce", 394.0), ("", 396.4),
    ):  # fmt: skip
        if word in name and not (word == "bidirectional_memcpy_ce" and "device_to_device" in name):
            return value
    raise AssertionError(name)


def nvbandwidth_case(name, devices, scale):
    """Compose one testcase."""
    value = nvbandwidth_value(name) * scale
    between = name.startswith("device_to_device")
    if devices < 2 and ("to_all" in name or "to_one" in name or between):
        return {"name": name, "status": "Waived"}
    rows = range(devices if between else 1)
    parts = [value, value, 2 * value] if "device_to_device_bidirectional" in name else [value]
    matrix = [
        [
            "N/A" if between and row == column else f"{part + row + 2 * column:g}"
            for column in range(devices)
        ]
        for part in parts
        for row in rows
    ]
    last = matrix[-len(rows) :]
    return {
        "name": name,
        "status": "Passed",
        "bandwidth_description": f"composed ({'ns' if 'latency' in name else 'GB/s'})",
        "bandwidth_matrix": matrix,
        "sum": sum(float(word) for row in last for word in row if word != "N/A"),
    }


def babelstream_csv(elements, runs, gbytes=4030.0, unit="MB"):
    """Compose the output of ``cuda-stream --csv``."""
    arrays = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}
    lines = [
        "CUDA Driver: 13000",
        "Reduction kernel config: 528 groups of (fixed) size 1024",
        f"function,num_times,n_elements,sizeof,max_{unit}_per_sec,min_runtime,max_runtime,avg_runtime",
    ]
    for name, count in arrays.items():
        best = count * elements * 8 / gbytes / 1e9
        words = [name, runs, elements, 8, *(f"{x:g}" for x in (gbytes * 1e3, best))]
        words += [f"{best * factor:g}" for factor in (1.02, 1.01)]
        lines.append(",".join(map(str, words)))
    return "\n".join(lines) + "\n"


def p2p_test_text(devices=2, reads=True):
    """Compose the output of ``p2pBandwidthLatencyTest``."""
    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    lines += [
        f"Device: {i}, NVIDIA H200, pciBusID: 0, pciDeviceID: {6 + i:x}, pciDomainID:0"
        for i in range(devices)
    ]
    pairs = [(i, j) for i in range(devices) for j in range(devices) if i != j]
    lines += [f"Device={i} CAN Access Peer Device={j}" for i, j in pairs]
    lines += [
        "",
        "***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal "
        "memcopy procedure.",
        "So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.",
        "",
        "P2P Connectivity Matrix",
        "     D\\D" + "".join(f"{j:6d}" for j in range(devices)),
    ]
    lines += [f"{i:6d}\t" + f"{1:6d}" * devices for i in range(devices)]

    def matrix(head, value):
        lines.append(f"   {head}" + "".join(f"{j:6d} " for j in range(devices)))
        for i in range(devices):
            cells = "".join(f"{value + i + 2 * j:6.2f} " for j in range(devices))
            lines.append(f"{i:6d} {cells}")

    for title, value in (
        ("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", 37.0),
        ("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", 390.0),
        ("Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)", 389.0),
        ("Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)", 52.0),
        ("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", 770.0),
        ("P2P=Disabled Latency Matrix (us)", 14.0),
        ("P2P=Enabled Latency (P2P Writes) Matrix (us)", 2.25),
        ("P2P=Enabled Latency (P2P Reads) Matrix (us)", 2.26),
    ):
        if "Reads" in title and not reads:
            continue
        lines.append(title)
        if "Latency" in title:
            matrix("GPU", value)
            lines.append("")
            matrix("CPU", value + 1)
        else:
            matrix("D\\D", value)
    lines += [
        "",
        "NOTE: The CUDA Samples are not meant for performance measurements. "
        "Results may vary when GPU Boost is enabled.",
    ]
    return "\n".join(lines) + "\n"


def nvbandwidth(arguments):
    """Print what nvbandwidth would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", action="store_true", required=True)
    parser.add_argument("-b", type=int, required=True)
    parser.add_argument("-i", type=int, required=True)
    parser.add_argument("-t", nargs="+", required=True)
    asked = parser.parse_args(arguments)
    assert asked.b == 512
    sys.stdout.write(nvbandwidth_json(asked.t, DEVICES))


def babelstream(arguments):
    """Print what BabelStream would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", action="store_true", required=True)
    parser.add_argument("--device", type=int, required=True)
    parser.add_argument("-s", type=int, required=True)
    parser.add_argument("-n", type=int, required=True)
    asked = parser.parse_args(arguments)
    sys.stdout.write(babelstream_csv(asked.s, asked.n, 3450.0 if asked.s < 1 << 27 else 4030.0))


def p2p_test(arguments):
    """Print what p2pBandwidthLatencyTest would."""
    assert arguments == ["--p2p_read", f"--numElems={128 << 20}"], arguments
    sys.stdout.write(p2p_test_text(DEVICES))


def transferbench(arguments):
    """Print what TransferBench would: its variables say which transfers."""
    preset, size = arguments
    assert size == "64M", arguments
    asked = {name: os.environ.get(name, "0") for name in amd.VARIABLES}
    assert asked["OUTPUT_TO_CSV"] == asked["SHOW_ITERATIONS"] == "0"
    engine = "DMA" if asked["USE_GPU_DMA"] == "1" else "GFX"
    if preset == "p2p":
        assert asked["NUM_GPU_DEVICES"] == "2"
        reads = asked["USE_REMOTE_READ"] == "1"
        print(amd.transferbench_p2p(cpus=4, executor=engine, remote=reads), end="")
    elif preset == "a2a":
        assert asked["A2A_DIRECT"] == "0"
        shown = {name: asked[name] for name in ("USE_DMA_EXEC", "USE_REMOTE_READ")}
        print(amd.transferbench_a2a(gpus=DEVICES, direct=False, shown=shown), end="")
    elif preset == "one2all":
        most = int(asked["SWEEP_MAX"])
        assert asked["SWEEP_MIN"] == asked["SWEEP_MAX"] == str(DEVICES - 1)
        print(amd.transferbench_one_to_all(DEVICES, asked["SWEEP_EXE"]), end="")
    else:
        assert preset == "scaling", preset
        most = int(asked["SWEEP_MAX"])
        print(amd.transferbench_scaling(cpus=4, gpus=DEVICES, most=most), end="")


def rocm_bandwidth_test(arguments):
    """Print what rocm_bandwidth_test would."""
    assert arguments == [], arguments
    print(amd.rocm_bandwidth_test(cpus=4, gpus=DEVICES, place="00:{:x}.0"), end="")


def hip_stream(arguments):
    """Print what BabelStream's hip-stream would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", action="store_true", required=True)
    for name in ("--device", "-s", "-n"):
        parser.add_argument(name, type=int, required=True)
    asked = parser.parse_args(arguments)
    print(amd.hip_stream_csv(babelstream_csv(asked.s, asked.n)), end="")


def ours(program, arguments, fault):
    """Write the document that a program of ours would."""
    parser = argparse.ArgumentParser()
    for name in ("devices", "kernels", "block-sizes", "sizes", "source", "destination", "memory",
                 "operations", "pairs", "together", "chase-size", "series-time", "max-samples",
                 "batch-time", "noise-limit"):  # fmt: skip
        parser.add_argument(f"--{name}")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args(arguments)
    series = {"stream": stream, "memcpy": memcpy, "p2p": p2p}[program](asked)
    devices = [
        factories.device(i, name="composed device", pci_address=f"0000:00:{6 + i:02x}.0",
                         unique_id=f"GPU-composed-{i}")
        for i in range(DEVICES)
    ]  # fmt: skip
    changes = {"arguments": [program, *arguments], "devices": devices, "series": series}
    runtime = "sim" if fault == "simulated" else os.environ.get("FAKE_RUNTIME", "cuda")
    program_of = factories.document()["program"] | {"name": program, "runtime": runtime}
    if fault == "noisy":
        said = {"exit_code": 7, "status": "too-noisy", "message": "device 0 is too noisy"}
        wide = factories.series([value * (0.5 if i % 2 else 1.5) for i, value in
                                 enumerate(series[0]["samples"])])  # fmt: skip
        told = ("samples", "median", "mad", "ci95", "relative_half_width", "host_clock")
        series[0] |= {name: wide[name] for name in told} | {"noisy": True}
        changes |= {"outcome": said}
    if fault == "setting":
        said = {"exit_code": 8, "status": "setting", "message": "/dev/shm has 64 MiB"}
        changes |= {"outcome": said, "complete": False, "series": []}
    if fault == "lost-series":
        changes["series"] = series[1:]
    if fault == "simulated":
        node = {"name": "composed", "digest": "0" * 64, "overlay": None}
        changes |= {"clock": "simulated", "node": node}
        changes["series"] = [one | {"host_clock": None} for one in series]
    if fault == "other-device":
        devices[0]["unique_id"] = "GPU-other"
    factories.write(asked.output, factories.document(program=program_of, **changes))
    return {"noisy": 7, "setting": 8}.get(fault, 0)


def bytes_of(text):
    """Return the bytes of a size such as 512MiB."""
    return int(text.removesuffix("MiB")) * MIB


def samples(operation, factor=1.0):
    """Return samples around a made-up value."""
    value = OURS[operation] * factor
    return [value * (1 + step / 10000) for step in (-3, -2, -1, 0, 1, 2, 3)]


def moved(size, arrays=1, ends=1):
    """Return the fields about bytes."""
    counted = "once" if arrays == 1 else "read+write"
    checked = {"bytes_checked": size * ends, "errors": 0, "first_mismatch": None}
    return {"bytes": size, "bytes_moved": arrays * size * ends, "bytes_counted": counted,
            "verification": checked}  # fmt: skip


def stream(asked):
    """Build the copy of stream."""
    size = bytes_of(asked.sizes)
    changes = moved(size, arrays=2) | {"regime": "memory" if size > 64 * MIB else "cache"}
    factor = 2.0
    for end in ("source", "destination"):
        if getattr(asked, end) == "host":
            changes |= {end: factories.place("host-pinned", None, 0), "direction": "one-way"}
            changes["experiment"] = "E5"
            factor = 0.05
    return [factories.series(samples("copy", factor), operation="copy", **changes)]


def memcpy(asked):
    """Build the copies of memcpy."""
    size = bytes_of(asked.sizes)
    found = []
    for operation in asked.operations.split(","):
        if operation == "both":
            found += factories.both_ways(value=102.0, bytes=size)
            # The share to the host, slower than the other one.
            found[-2].update(samples=[50.8], median=50.8)
            for one in found[-3:]:
                ends = 2 if one["role"] == "sum" else 1
                one.update(moved(size, ends=ends))
        else:
            one = factories.host_copy(operation, value=OURS[operation], bytes=size)
            found.append(one | moved(size))
    return found


def p2p(asked):
    """Build the series of p2p."""
    text = asked.pairs or asked.together
    pairs = [tuple(map(int, pair.split("-"))) for pair in text.split(",")]
    found = []
    for operation in asked.operations.split(","):
        found += chases(asked, pairs) if operation == "chase" else between(asked, operation, pairs)
    return found


def between(asked, operation, pairs):
    """Build the series of one operation for pairs at the same time."""
    latency = operation.startswith("latency")
    size = 16 if latency else bytes_of(asked.sizes)
    if operation.endswith("-both"):
        pairs = [(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
    reads = operation.startswith("read")
    kernel = reads or operation.startswith("write")
    common = {
        "experiment": "E8" if kernel else "E7",
        "operation": operation,
        "engine": "kernel" if kernel else "copy-engine",
        "block_size": 256 if kernel else None,
        "direction": "both-ways" if operation.endswith("-both") else "one-way",
        "device_set": list(dict.fromkeys(device for pair in pairs for device in pair)),
        "unit": "us" if latency else "GB/s",
        "better": "lower" if latency else "higher",
        "regime": "cache" if latency else "memory",
        "host_clock": None,
    }
    near, far = "device", "peer"
    kinds = (far, near) if reads else (near, far)
    found = []
    for source, destination in pairs:
        found.append(
            factories.series(
                samples(operation, 1 / len(pairs)),
                role="share" if len(pairs) > 1 else "single",
                device=destination if reads else source,
                source=factories.place(kinds[0], source),
                destination=factories.place(kinds[1], destination),
                **common | moved(size),
            )
        )
    if len(pairs) > 1:
        ends = {"device": None, "source": factories.place(kinds[0], None),
                "destination": factories.place(kinds[1], None)}  # fmt: skip
        found.append(
            factories.series(
                samples(operation), role="sum", **ends | common | moved(size, ends=len(pairs))
            )
        )
    return found


def chases(asked, pairs):
    """Build the chases: of each device in its own memory, then of each pair."""
    size = bytes_of(asked.chase_size)
    found = []
    for source, reader in [(0, 0), (1, 1), *pairs]:
        own = source == reader
        found.append(
            factories.series(
                samples("chase", 0.2 if own else 1.0),
                experiment="E8" if not own else "E1",
                operation="chase",
                device=reader,
                device_set=[source] if own else [source, reader],
                source=factories.place("device" if own else "peer", source),
                destination=factories.place("device", reader),
                direction="local" if own else "one-way",
                unit="us",
                better="lower",
                regime="cache",
                block_size=None,
                host_clock=None,
                **moved(size) | {"bytes_moved": 8},
            )
        )
    return found


def main(name, arguments):
    """Do what the named program would, or what FAKE_FAULT says."""
    faults = dict(one.split(":") for one in os.environ.get("FAKE_FAULT", "").split(",") if one)
    output = arguments[arguments.index("--output") + 1] if "--output" in arguments else name
    fault = faults.get(output.split(".")[0], "")
    if fault == "crash":
        print("the driver is gone", file=sys.stderr)
        return 1
    if fault == "killed":
        os.kill(os.getpid(), 9)
    if fault == "hang":
        print("this takes a while", file=sys.stderr, flush=True)
        time.sleep(600)
    if fault == "one-more":
        sys.stdout.write(nvbandwidth_json(arguments[arguments.index("-t") + 1 :], DEVICES + 1))
        return 0
    tools = {"nvbandwidth": nvbandwidth, "cuda-stream": babelstream, "p2p-test": p2p_test}
    tools |= {"transferbench": transferbench, "rocm-bandwidth-test": rocm_bandwidth_test,
              "hip-stream": hip_stream}  # fmt: skip
    if fault == "garbage":
        print("\x01\x02 GPU 00 -> 12.3")
        return 0
    if fault == "empty":
        return 0
    if name in tools:
        tools[name](arguments)
        return 0
    return ours(name, arguments, fault)
