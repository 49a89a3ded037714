"""Small builders of valid result documents; every statistic in them is computed from samples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabricheck.core import statistics

#: Start of a built session in seconds since the epoch, shortly before that of a built document.
SESSION_START = datetime.fromisoformat("2026-01-02T03:04:00+00:00").timestamp()

SAMPLES = (10.0, 10.1, 10.2, 9.9, 10.05, 10.15, 9.95, 10.3, 9.8)


def place(memory: str = "device", device: int | None = 0, domain: int | None = None) -> dict:
    """Build the place of an array."""
    return {"memory": memory, "device": device, "numa_domain": domain}


def series(samples: Sequence[float] = SAMPLES, **changes: Any) -> dict[str, Any]:
    """Build a series whose statistics fit its samples; ``changes`` replace whole fields."""
    interval = statistics.median_interval(samples)
    middle = statistics.median(samples)
    result: dict[str, Any] = {
        "experiment": "E1",
        "operation": "copy",
        "role": "single",
        "device": 0,
        "device_set": [0],
        "source": place(),
        "destination": place(),
        "engine": "kernel",
        "direction": "local",
        "bytes": 1 << 28,
        "bytes_moved": 2 << 28,
        "bytes_counted": "read+write",
        "regime": "memory",
        "block_size": 256,
        "batch": 4,
        "unit": "GB/s",
        "better": "higher",
        "samples": list(samples),
        "median": middle,
        "mad": statistics.mad(samples),
        "ci95": None if interval is None else list(interval),
        "relative_half_width": statistics.relative_half_width(samples),
        "host_clock": {"median": middle * 0.999, "ratio": 0.999, "agrees": True},
        "noisy": False,
        "verification": {
            "bytes_checked": changes.get("bytes", 1 << 28),
            "errors": 0,
            "first_mismatch": None,
        },
    }
    return result | changes


def pair_series() -> list[dict[str, Any]]:
    """Build the series of p2p for two devices: by engine one way and both ways, and a latency."""
    engine = {"experiment": "E7", "engine": "copy-engine", "block_size": None, "stores": None}
    once = {"bytes_moved": 1 << 28, "bytes_counted": "once", "device_set": [0, 1]}
    across = [
        {"source": place(device=index), "destination": place("peer", 1 - index), "device": index}
        for index in (0, 1)
    ]
    both = {"operation": "engine-both", "direction": "both-ways"}
    nowhere = {"source": place(device=None), "destination": place("peer", None), "device": None}
    small = {"bytes": 16, "bytes_moved": 16, "regime": "cache", "unit": "us", "better": "lower"}
    one_way = engine | once | across[0] | {"operation": "engine", "direction": "one-way"}
    shares = [series(**engine | once | both | way | {"role": "share"}) for way in across]
    total = series(**engine | once | both | nowhere | {"role": "sum", "bytes_moved": 2 << 28})
    latency = series(**one_way | small | {"operation": "latency"})
    return [series(**one_way), *shares, total, latency]


def noisy(one: dict[str, Any]) -> dict[str, Any]:
    """Return a series with samples that vary beyond the usual limit."""
    told = ("samples", "median", "mad", "ci95", "relative_half_width", "noisy", "host_clock")
    wide = series([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], noisy=True, host_clock=None)
    return one | {name: wide[name] for name in told}


def host_copy(
    operation: str = "h2d",
    device: int = 0,
    domain: int | None = 0,
    memory: str = "host-pinned",
    value: float = 28.3,
    **changes: Any,
) -> dict[str, Any]:
    """Build a series of `memcpy` between a NUMA domain (E4) and a device, without noise."""
    ends = [place(memory, None, domain), place(device=device)]
    to_host = operation.startswith("d2h")
    return (
        series(
            [value],
            experiment="E4",
            operation=operation,
            device=device,
            device_set=[device],
            source=ends[to_host],
            destination=ends[not to_host],
            engine="copy-engine",
            block_size=None,
            direction="one-way",
            bytes_moved=changes.get("bytes", 1 << 28),
            bytes_counted="once",
            host_clock=None,
        )
        | changes
    )


def both_ways(device: int = 0, value: float = 50.0, **places: Any) -> list[dict[str, Any]]:
    """Build the two shares of `both` and their sum, in this order."""
    both = {"operation": "both", "direction": "both-ways", "role": "share"}
    shares = [host_copy(name, device, value=value / 2, **places) | both for name in ("h2d", "d2h")]
    ends = {"device": None, "destination": place(device=None)}
    verification = shares[0]["verification"] | {"bytes_checked": 2 << 28}
    total = host_copy("h2d", device, value=value, **places) | both | ends
    return [*shares, total | {"role": "sum", "bytes_moved": 2 << 28, "verification": verification}]


def managed_copy(
    operation: str = "read", device: int = 0, value: float = 25.5, **changes: Any
) -> dict:
    """Build a series of `managed` (E3) by zero-copy, without noise."""
    on_host, on_device = place("managed", None, 0), place("managed", device)
    own, ordinary = place(device=device), place("host-pageable", None, 0)
    engine, source, destination = {
        "read": ("kernel", on_host, own),
        "write": ("kernel", own, on_host),
        "host-read": ("cpu", on_device, ordinary),
        "host-write": ("cpu", ordinary, on_device),
        "prefetch-h2d": ("copy-engine", on_host, on_device),
        "prefetch-d2h": ("copy-engine", on_device, on_host),
    }[operation]
    return (
        host_copy("h2d", device, value=value)
        | {
            "experiment": "E3",
            "operation": operation,
            "source": source,
            "destination": destination,
            "engine": engine,
            "block_size": 256 if engine == "kernel" else None,
            "movement": "prefetch" if engine == "copy-engine" else "zero-copy",
        }
        | changes
    )


def mismatched(errors: int = 1, checked: int = 1 << 28) -> dict[str, Any]:
    """Build a verification of a number of bytes that found wrong data."""
    return {
        "bytes_checked": checked,
        "errors": errors,
        "first_mismatch": {
            "device": 0,
            "offset_bytes": 4096,
            "expected": "0x3ff0000000000000",
            "found": "0x3ff0000000000001",
        },
    }


def device(index: int, **changes: Any) -> dict[str, Any]:
    """Build one virtual device of the host runtime."""
    return {
        "index": index,
        "name": "virtual device",
        "arch": "host",
        "pci_address": None,
        "unique_id": None,
        "memory_bytes": 8 << 30,
        "compute_units": 1,
        "last_level_cache_bytes": 32 << 20,
        "numa_domain": 0,
    } | changes


def device_state(index: int = 0, **changes: Any) -> dict[str, Any]:
    """Build the state of an idle device, as NVML reports it for an H200."""
    return {
        "index": index,
        "clock_mhz": 1980,
        "clock_max_mhz": 1980,
        "memory_clock_mhz": 3201,
        "memory_clock_max_mhz": 3201,
        "temperature_c": 42,
        "memory_temperature_c": None,
        "power_w": 141.165,
        "power_cap_w": 700,
        "power_cap_default_w": 700,
        "busy_percent": 0,
        "throttle": [],
        "throttled_s": {"power": 0, "thermal": 0, "hardware": 0},
        "energy_j": 28966.055,
        "memory_errors": {"corrected": 0, "uncorrected": 0},
        "pcie": {"width": 16, "width_max": 16, "gt_per_s": 32, "gt_per_s_max": 32, "replays": 0},
        "links": links(),
        "link_errors": {"nvlink-replay": {}, "nvlink-recovery": {}, "nvlink-crc": {}},
        "vbios": "96.00.A5.00.1A",
        "firmware": {"inforom": "G520.0282.02.02"},
        "compute_partition": "none",
        "memory_partition": None,
        "ecc": True,
        "processes": [],
    } | changes


def links(**changes: Any) -> dict[str, Any]:
    """Build the state of the NVLinks of a device, all of which are up."""
    return {"number": 18, "down": [], "width": None, "gb_per_s": 26.562} | changes


def process(pid: int = 4711, **changes: Any) -> dict[str, Any]:
    """Build a process that uses a device."""
    return {"pid": pid, "user": "ada", "command": "copy_loop", "memory_bytes": 7 << 30} | changes


def host_use(
    busy: float = 0.1, seconds: float = 10.0, stolen: float = 0.0, loops: int = 0
) -> dict[str, Any]:
    """Build the use of a host besides a run.

    :param loops: the processes that each keep a core busy.
    """
    processes = [
        {"pid": 1440 + number, "user": "root", "command": "bash", "cores": 1.0}
        for number in range(loops)
    ]
    return {
        "seconds": seconds,
        "busy_cores": busy,
        "stolen_cores": stolen,
        "processes": processes,
    }


def snapshot(
    devices: Sequence[dict[str, Any]] = (),
    others: dict[str, Any] | None = None,
    at: str = "2026-01-02T03:04:05Z",
    **host: Any,
) -> dict[str, Any]:
    """Build a snapshot of a host of 16 cores with some devices; ``host`` replaces its fields."""
    return {
        "at": at,
        "seconds": 0.06,
        "opening_seconds": 0.013,
        "host": {
            "load_1min": 0.5,
            "cores": 16,
            "others": others if others is not None else host_use(seconds=0.04),
            "governor": None,
            "huge_pages_reserved": 0,
            "huge_pages_free": 0,
            "huge_page_bytes": 2 << 20,
            "free_bytes": {"0": 120 << 30},
            "memory_errors": None,
        }
        | host,
        "devices": list(devices),
    }


def state(
    before: Sequence[dict[str, Any]] = (),
    after: Sequence[dict[str, Any]] | None = None,
    others: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the state of a run of 10 s from its devices; nothing changes without others.

    :param others: the use of the host besides the run.
    """
    return {
        "before": snapshot(before),
        "after": snapshot(
            before if after is None else after,
            others if others is not None else host_use(),
            "2026-01-02T03:04:15Z",
        ),
        "absent": [{"item": "host.governor", "why": "there is no cpufreq"}],
        "sources": {"devices.clock_mhz": "nvmlDeviceGetClockInfo", "host.others": "/proc/stat"},
    }


def pci_function(bus: int, **changes: Any) -> dict[str, Any]:
    """Build an accelerator that PCI shows; those of `on_h200` are at 0x41 and 0x42."""
    return {
        "address": f"0000:{bus:02x}:00.0",
        "vendor": "0x10de",
        "device": "0x2335",
        "driver": "nvidia",
        "mode": "none",
        "accessible": True,
    } | changes


def aftermath(**changes: Any) -> dict[str, Any]:
    """Build what another process saw after a program that aborted."""
    nothing = {"pci_functions": None, "kernel_log": None, "runtime_log": [], "absent": []}
    return {"exit_code": 134} | nothing | changes


def on_h200(number: int = 2, **changes: Any) -> dict[str, Any]:
    """Build a document of ``stream`` on some H200, whose state is quiet."""
    devices = [
        device(
            index,
            name="NVIDIA H200",
            arch="sm_90",
            memory_bytes=143771 << 20,
            pci_address=f"0000:{0x41 + index:02x}:00.0",
        )
        for index in range(number)
    ]
    quiet = state([device_state(index) for index in range(number)])
    program = document()["program"] | {"runtime": "cuda"}
    return document(program=program, devices=devices, state=quiet) | changes


def document(**changes: Any) -> dict[str, Any]:
    """Build the document of a good run of `stream` on the host runtime with two devices."""
    result: dict[str, Any] = {
        "schema": "fabricheck-result",
        "schema_version": 1,
        "complete": True,
        "program": {
            "name": "stream",
            "version": "0.1.0",
            "commit": "unknown",
            "runtime": "host",
            "compiler": "c++",
        },
        "clock": "measured",
        "node": None,
        "started": "2026-01-02T03:04:05Z",
        "finished": "2026-01-02T03:04:15+00:00",
        "duration_s": 10.0,
        "host": {
            "hostname": "node1",
            "kernel": "Linux 6.1.0",
            "cpu_model": "a processor",
            "cores_allowed": [0, 1],
            "numa_domains": [{"index": 0, "cores": [0, 1], "memory_bytes": 16 << 30}],
            "last_level_cache_bytes": 32 << 20,
            "page_size_bytes": 4096,
            "numa_balancing": 0,
            "transparent_hugepage": "madvise",
        },
        "devices": [device(0), device(1)],
        "versions": {"runtime": "0.1.0", "driver": "none"},
        "environment": {"OMP_NUM_THREADS": "2"},
        "arguments": ["stream", "--size", "256MiB"],
        "options": {"sizes": [1 << 28], "noise_limit": 0.1},
        "faults_injected": [],
        "outcome": {"exit_code": 0, "status": "good", "message": None},
        "series": [series()],
        "notes": [],
    }
    if "state" in changes:
        # The snapshots are of a host of 16 cores, of which none is closed to the run.
        result["host"]["cores_allowed"] = list(range(16))
    lost = changes.pop("lost", ())
    if changes.get("differences"):
        changes["differences"] = [difference(one, lost=one in lost)
                                  for one in changes["differences"]]  # fmt: skip
    return result | changes


def difference(
    sentence: str, *devices: int, found: int | None = None, lost: bool = False
) -> dict[str, Any]:
    """Build a difference from the node model."""
    return {"sentence": sentence, "devices": list(devices), "found": found, "lost": lost}


def difference_sentences(document: Mapping[str, Any], *, lost: bool = False) -> list[str] | None:
    """Return the sentences of a document's differences, or of those that are lost."""
    every = document["differences"]
    if every is None:
        return None
    return [one["sentence"] for one in every if one["lost"] or not lost]


def simulated_document(**changes: Any) -> dict[str, Any]:
    """Build the document of a good run of `stream` on a simulated node, without noise."""
    program = document()["program"] | {"runtime": "sim"}
    node = {"name": "mi250x", "digest": "0" * 64, "overlay": None}
    one_sample = series([10.0], host_clock=None)
    simulated = {"program": program, "clock": "simulated", "node": node, "series": [one_sample]}
    return document(**simulated | changes)


def killed_document() -> dict[str, Any]:
    """Build the document that a killed run leaves behind as ``result.json.partial``."""
    running = {"exit_code": None, "status": "running", "message": None}
    return document(complete=False, finished=None, outcome=running)


def write(path: Path, content: dict[str, Any] | None = None) -> Path:
    """Write a document (a good one by default), making its folder; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document() if content is None else content, indent=1) + "\n")
    return path


def judged(
    value=10.0, reference=10.0, lower=-0.1, upper=None, unit="GB/s", result="pass"
) -> list[Any]:
    """Build what ReFrame records of a metric."""
    return [value, reference, lower, upper, unit, result]


def write_metrics(path: Path, perfvalues: dict[str, Any]) -> None:
    """Write, as a check does, what the metrics of a document are made of.

    A metric's series are those of its unit whose operation begins its name, and whose median is its
    value if there is such a one; of a count none. No check sets a variable.
    """
    content = json.loads(path.read_text())
    series = content["series"]
    metrics: dict[str, Any] = {}
    for key, (value, *_, unit, _result) in perfvalues.items():
        metric = key.rsplit(":", 1)[-1]
        named = [
            index for index, one in enumerate(series)
            if one["unit"] == unit and metric.startswith(one["operation"].replace("-", "_"))
        ]  # fmt: skip
        equal = [index for index in named if series[index]["median"] == value]
        reduction = metric.rsplit("_", 1)[-1]
        known = reduction in ("worst", "best", "median")
        metrics[metric] = {
            "series": equal or named, "reduce": reduction if known else "worst" if named else None,
        }  # fmt: skip
    file = {
        "form": "fabricheck-metrics-1", "started": content["started"], "metrics": metrics,
        "not_intended": list(content["environment"]),
    }  # fmt: skip
    path.with_name("metrics.json").write_text(json.dumps(file))


def case(name: str = "stream_local", **changes: Any) -> dict[str, Any]:
    """Build a test case of ReFrame's report; ``changes`` replace whole fields."""
    return {
        "name": name,
        "display_name": name,
        "unique_name": name,
        "system": "local",
        "partition": "host",
        "environ": "host",
        "result": "pass",
        "fail_reason": None,
        "tags": ["E1", "smoke"],
    } | changes


def stamp(number: int) -> str:
    """Build what names the mark of a session."""
    return f"20260102T030405-{number}-000"


def mark(results: Path, number: int, began: float = SESSION_START, **changes: Any) -> Path:
    """Write the mark of a session; returns its path."""
    content = {
        "form": "fabricheck-mark-1",
        "stamp": stamp(number),
        "name": None,
        "began": datetime.fromtimestamp(began, UTC).isoformat(),
        "host": "node1",
        "command": "reframe --mode=smoke -r",
    }
    return write(results / "marks" / f"{number:06}.json", content | changes)


def recorded_checks(
    outputs: Path,
    where: str,
    deviations: Mapping[str, Sequence[str]] | None = None,
    accepts: Sequence[str] = (),
    **checks: str,
) -> Path:
    """Record the checks of a partition, each with its tags; returns the path of the record.

    :param deviations: by name the facts of what the session deviated by.
    :param accepts: those that the site file accepts.
    """
    own: dict[str, Any] = {"checks": {name: tags.split() for name, tags in checks.items()}}
    own["deviations"] = [
        {"name": name, "facts": facts} for name, facts in (deviations or {}).items()
    ]
    own["accepts"] = list(accepts)
    record = {"written": "2026-01-02T03:04:05+00:00", "partitions": {where: own}}
    return write(outputs / "checks.json", record)


def case_folder(results: Path, name: str, kind: str = "output") -> Path:
    """Return the output or stage folder of a case."""
    return results / kind / "local" / "host" / "host" / name


def calibration(references: Path, partition: str, clock: str = "measured") -> Path:
    """Write the record of a partition without checks in a folder of reference files."""
    # The composed programs, which start often, need none of this: a tenth of a second each.
    from fabricheck.references import calibrated
    from fabricheck.references.calibrated import Record

    record = Record(
        partition=partition, clock=clock, rule="none", same_devices=True, device_names=[],
        device_sets={}, programs=[], versions=[], sessions=[], unused=[],
    )  # fmt: skip
    path = calibrated.file_of(references, partition)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record.model_dump_json(), encoding="utf-8")
    return path
