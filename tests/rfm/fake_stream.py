"""A stand-in for the program stream: same command line, valid documents, no measuring.

FAKE_STREAM names one thing that it does wrong; of several, each start does the next one, and names
it in a file that is called as its working folder, beside its log. FAKE_STATE is the state of the
node as JSON. FAKE_STREAM_LOG is its log, to which it appends when it starts and ends. Its numbers
are constants that differ by operation and device, so that a test can tell which series a metric was
made of.
"""

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

# It is started without site-packages, which takes half the time.
sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))

import fabricheck

STARTED = datetime.now(UTC)
BASE = {"copy": 10.0, "scale": 9.0, "add": 8.0, "triad": 7.0}
ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
STATUS = {
    3: "unsupported",
    4: "software",
    5: "wrong-data",
    6: "time-limit",
    7: "too-noisy",
    8: "setting",
    9: "device-error",
}
FAULTS = os.environ.get("FAKE_STREAM", "").split(",")
LOG = Path(os.environ.get("FAKE_STREAM_LOG", os.devnull))
FAULT = FAULTS[0]
if len(FAULTS) > 1:
    FAULT = FAULTS[LOG.read_text().count("start") if LOG.exists() else 0]
    LOG.with_name(Path.cwd().name).write_text(FAULT)
RUNTIME = os.environ.get("FAKE_RUNTIME", "host")
DEVICES = int(os.environ["FABRICHECK_HOST_DEVICES"])
DEVICES -= FAULT in ("device-hidden", "device-missing")
SETTINGS = {
    "launches-block": ["HIP_LAUNCH_BLOCKING", "1", "launches"],
    "device-hidden": ["ROCR_VISIBLE_DEVICES", "0", "devices"],
}


def size(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def sizes(text):
    if ":" not in text:
        return [size(part) for part in text.split(",")]
    first, last = map(size, text.split(":"))
    return [first << step for step in range(64) if first << step <= last]


def place(word, device):
    if word == "host":
        return {"memory": "host-pinned", "device": None, "numa_domain": 0}
    return {"memory": "device", "device": device, "numa_domain": None}


def series(options, operation, nbytes, block, role, device, active):
    samples = [value(operation, block, device, role, active)] * (6 if FAULT == "few" else 7)
    # A copy has two arrays, so this convention contradicts nothing else in the document.
    once = FAULT == "counted-once"
    moved = (1 if once else ARRAYS[operation]) * nbytes * (len(active) if role == "sum" else 1)
    checked = nbytes * (len(active) if role == "sum" else 1)
    checked = {"nothing-verified": 0, "half-verified": checked // 2}.get(FAULT, checked)
    ratio = 0.4 if FAULT == "clocks-differ" and device == 1 else 1.0
    return {
        "experiment": "E5" if options.source == "host" else "E1",
        "operation": operation,
        "role": role,
        "device": device,
        "device_set": active,
        "source": place(options.source, device),
        "destination": place(options.destination, device),
        "engine": "kernel",
        "direction": "one-way" if options.source == "host" else "local",
        "bytes": nbytes,
        "bytes_moved": moved,
        "bytes_counted": "once" if once else "read+write",
        "regime": "memory" if nbytes >= 64 << 20 and FAULT != "caches-hidden" else "cache",
        "block_size": block,
        "batch": 1,
        "unit": "GB/s",
        "better": "higher",
        "samples": samples,
        "median": samples[0],
        "mad": 0.0,
        "ci95": [samples[0], samples[0]],
        "relative_half_width": 0.0,
        "host_clock": {"median": ratio * samples[0], "ratio": ratio, "agrees": ratio == 1.0}
        if samples[0]
        else None,
        "noisy": False,
        "verification": {"bytes_checked": checked, "errors": 0, "first_mismatch": None},
    }


def value(operation, block, device, role, active):
    if FAULT == "above-physics" and device == 1:
        return 1e9
    if FAULT == "zero" and device == 1:
        return 0.0
    if FAULT == "slow":
        return 0.9 * BASE[operation]
    slower = 0.1 * (device or 0) + block / 1e4
    return BASE[operation] * (len(active) if role == "sum" else 1) - slower


def all_series(options):
    sets = []
    for word in options.devices:
        if word == "each":
            sets += [[device] for device in range(DEVICES)]
        else:
            sets.append(list(range(DEVICES)) if word == "all" else json.loads(f"[{word}]"))
    if FAULT == "device-lost":
        sets = [active for active in sets if 1 not in active]
    found = []
    for operation in options.kernels.split(","):
        if FAULT == "metric-lost" and operation == "triad":
            continue
        for nbytes in sizes(options.sizes):
            for block in sizes(options.block_sizes):
                for active in sets:
                    alone = len(active) == 1
                    for device in active:
                        role = "single" if alone else "share"
                        found.append(
                            series(options, operation, nbytes, block, role, device, active)
                        )
                    if not alone:
                        found.append(series(options, operation, nbytes, block, "sum", None, active))
    return found


def document(options, code):
    message = "device 1 has a wrong word at offset 4096" if code else None
    found = all_series(options)
    if code == 5:
        mismatch = {"device": 1, "offset_bytes": 4096, "expected": "0x1", "found": "0x2"}
        found[1]["verification"].update(errors=1, first_mismatch=mismatch)
    started = STARTED - timedelta(hours=1) if FAULT == "stale" else STARTED
    told = os.environ.get("FAKE_STATE")
    return ({"state": json.loads(told)} if told else {}) | {
        "schema": "fabricheck-result",
        "schema_version": 1,
        "complete": FAULT not in ("incomplete", "exit-8"),
        "program": {
            "name": "stream",
            "version": fabricheck.__version__,
            "commit": os.environ.get("FAKE_COMMIT", "unknown"),
            "runtime": "cuda"
            if FAULT == "other-runtime"
            else os.environ.get("FAKE_RUNTIME", "host"),
            "compiler": "none",
        },
        "clock": "measured",
        "started": started.isoformat(),
        "finished": None if FAULT == "incomplete" else datetime.now(UTC).isoformat(),
        "duration_s": 0.0,
        "host": {
            "hostname": platform.node(),
            "kernel": platform.release(),
            "cpu_model": "fake",
            "cores_allowed": [*range(16)] if told else [0],
            "numa_domains": [{"index": 0, "cores": [0], "memory_bytes": 1 << 30}],
            "last_level_cache_bytes": 1 << (40 if FAULT == "caches-hidden" else 20),
            "page_size_bytes": 4096,
            "numa_balancing": None,
            "transparent_hugepage": None,
        },
        "devices": [
            {
                "index": index,
                "name": "fake device",
                "arch": "gfx90a" if FAULT == "other-arch" else "host",
                "pci_address": f"0000:c{index}:00.0",
                "unique_id": None,
                "memory_bytes": 1 << 30,
                "compute_units": 1,
                "last_level_cache_bytes": 1 << 20,
                "numa_domain": 0,
            }
            for index in range(DEVICES)
        ],
        "settings": [
            dict(zip(("name", "value", "concerns"), SETTINGS[FAULT], strict=True))
            for _ in range(FAULT in SETTINGS)
        ],
        "versions": {"runtime": "0", "driver": "0"},
        "environment": {},
        "arguments": [*sys.argv, "--seed", "7"] if FAULT == "other-command" else sys.argv,
        "options": {"samples": 7, "noise_limit": options.noise_limit},
        "faults_injected": ["flip-bit"] if FAULT == "fault-injected" else [],
        "outcome": (
            {"exit_code": None, "status": "running", "message": None}
            if FAULT == "incomplete"
            else {"exit_code": code, "status": STATUS.get(code, "good"), "message": message}
        ),
        "series": found,
        "notes": [],
    }


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", action="append")
    parser.add_argument("--kernels", default="copy,scale,add,triad")
    parser.add_argument("--sizes", default="1GiB")
    parser.add_argument("--block-sizes", default="256")
    parser.add_argument("--source", default="device")
    parser.add_argument("--destination", default="device")
    for name in ("samples", "batch-time", "max-samples", "precision", "noise-limit", "series-time"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def note(word):
    with LOG.open("a") as file:
        file.write(f"{word} {os.getpid()} {time.monotonic()}\n")


def main():
    options = arguments()
    note("start")
    code = int(FAULT.removeprefix("exit-")) if FAULT.startswith("exit-") else 0
    if FAULT == "good-document-exit-4":
        code = 4
    text = json.dumps(document(options, 0 if FAULT == "good-document-exit-4" else code))
    if FAULT == "truncated":
        text = text[: len(text) // 2]
    if FAULT == "nan":
        text = text.replace('"median": 9.87', '"median": NaN', 1)
    if FAULT != "no-document":
        options.output.write_text(text)
    if FAULT == "killed":
        os.kill(os.getpid(), 9)
    note("end")
    return code


sys.exit(main())
