"""A stand-in for the programs memcpy and managed: valid documents, no measuring.

FAKE_COPIES names one thing that it does wrong; FAKE_STREAM_LOG is as for the stand-in of stream.
The numbers are those that references of the simulated node require: a healthy session passes.
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

# It is started without site-packages, which takes half the time.
sys.path += [str(Path(__file__).resolve().parents[2] / name) for name in ("tests", "src")]

import factories

FAULT = os.environ.get("FAKE_COPIES", "")
#: The simulated node, whose file says what of it is asked; no model, which takes 0.2 s to load.
PLATFORM = json.loads(
    Path(os.environ.get("FABRICHECK_SIMULATED_NODE", os.devnull)).read_text() or "{}"
)
VALUES = {"h2d": 28.3, "d2h": 28.3, "both": 51.0, "read": 25.5}
PAGEABLE = {"h2d": 25.28, "d2h": 25.1, "both": 40.0}
#: Of a domain whose memory has half its bandwidth.
SLOW = 25.6


def where(options):
    """Return each device to be measured with each NUMA domain."""
    if PLATFORM:
        near = [(index, one["domain"]) for index, one in enumerate(PLATFORM["devices"])]
    else:
        near = [(index, 0) for index in range(int(os.environ["FABRICHECK_HOST_DEVICES"]))]
    if options.devices != "each":
        asked = {int(device) for device in options.devices.split(",")}
        near = [pair for pair in near if pair[0] in asked]
    if options.domains == "each":
        return [(device, one["index"]) for device, _ in near for one in PLATFORM["domains"]]
    return near


def value(operation, memory, domain):
    if PLATFORM and FAULT == "domain-2-slow" and domain == 2 and memory == "pinned":
        return SLOW
    return (PAGEABLE if memory == "pageable" else VALUES)[operation]


def copies(options):
    found = []
    for device, domain in where(options):
        for memory in options.memory.split(","):
            for name in options.operations.split(","):
                ends = {"domain": domain, "memory": f"host-{memory}"}
                ends["value"] = value(name, memory, domain)
                if name == "both":
                    found += factories.both_ways(device, **ends)
                else:
                    found.append(factories.host_copy(name, device, **ends))
    label = "E2" if options.domains == "near" else "E4"
    if FAULT == "other-label":
        label = {"E2": "E4", "E4": "E2"}[label]
    found = [one | {"experiment": label} for one in found]
    if FAULT == "cell-lost":
        found = [one for one in found if (one["device"], one["source"]["numa_domain"]) != (4, 3)]
    if FAULT == "unproved":
        found[0]["source"]["numa_domain"] = None
    return found


def managed(options):
    migrates = options.expect == "page-migration" or FAULT == "other-movement"
    found = []
    for device in range(8):
        for name in options.operations.split(","):
            speed = 2.8 if migrates and name == "read" else VALUES.get(name, 2.0)
            one = factories.managed_copy(name, device, speed)
            if one["movement"] == "zero-copy" and migrates:
                one["movement"] = "page-migration"
            if FAULT == "no-movement":
                one["movement"] = None
            found.append(one)
    return found


def measured(series):
    """Give a series of one sample seven of them, as a measured one has, and a host's clock."""
    again = factories.series([series["median"]] * 7)
    names = ("samples", "median", "mad", "ci95", "relative_half_width")
    clock = again["host_clock"] if series["role"] == "single" else None
    return series | {name: again[name] for name in names} | {"host_clock": clock}


def document(options, program):
    series = managed(options) if program == "managed" else copies(options)
    changes = {
        "arguments": sys.argv,
        "started": datetime.now(UTC).isoformat(),
        "finished": datetime.now(UTC).isoformat(),
        "options": {"samples": 1 if PLATFORM else 7, "noise_limit": options.noise_limit},
        "series": series,
    }
    if not PLATFORM:
        said = factories.document(**changes | {"series": [measured(one) for one in series]})
    else:
        said = factories.simulated_document(**changes)
        said["node"] = PLATFORM["node"]
        said["host"]["numa_domains"] = PLATFORM["domains"]
        retries = os.environ.get("HSA_XNACK") == "1"
        arch = f"gfx90a:sramecc+:xnack{'+' if retries else '-'}"
        said["devices"] = [
            factories.device(index, arch=arch, numa_domain=one["domain"])
            for index, one in enumerate(PLATFORM["devices"])
        ]
    said["program"]["name"] = program
    return said


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("devices", "domains", "memory", "operations", "sizes", "expect"):
        parser.add_argument(f"--{name}")
    for name in ("max-samples", "batch-time", "series-time", "noise-limit", "time-limit"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def note(word):
    log = os.environ.get("FAKE_STREAM_LOG")
    if log:
        with Path(log).open("a") as file:
            file.write(f"{word} {os.getpid()} {time.monotonic()}\n")


options = arguments()
note("start")
options.output.write_text(json.dumps(document(options, "managed" if options.expect else "memcpy")))
note("end")
