"""Faults made in files, stand-ins and single programs, and what is said of them.

What no machine at hand has (counters of a driver, many nodes, weeks) is in documents as a run would
leave them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import factories
import inventories
import locks
from fabricheck.core.errors import FabricheckError
from fabricheck.judge.verdict import evidence
from fabricheck.judge.verdict.evidence import software_first
from fabricheck.node import load
from fabricheck.results import metric_records, reading
from fabricheck.results.document import load as load_document
from fabricheck.tools.benchmarks import Plan
from fabricheck.tools.recording import record as record_tool
from fabricheck.tools.topology.recording import record
from proof.faults.sessions import ROOT, Said, Session, judged, said
from session_builder import (
    PARTITION,
    SessionBuilder,
    failed,
    good_case,
    judge,
    kept_on_gpus,
    missed,
    verdicts_of_sessions,
    versions,
)

#: A run that takes some seconds on any machine, short samples and two devices.
QUICK = ("--devices", "0", "--sizes", "4MiB", "--batch-time", "0.0001", "--warm-up", "0",
         "--series-time", "0", "--noise-limit", "10")  # fmt: skip


def one_document(folder: Path, case: Mapping[str, Any], document: Mapping[str, Any] | None) -> Said:
    """Judge a node by a session of one case and its document."""
    began = datetime.fromisoformat(document["started"]).timestamp() - 1 if document else 0
    results = (
        SessionBuilder(folder, start=began or factories.SESSION_START)
        .check(document=document, **case)
        .write()
    )
    (found,) = judge(results).values()
    told = said(found, results)
    # A caveat changes no status; it is said beside a pass.
    caveats = [("PASS", sentence) for sentence in found.caveats]
    return replace(told, sentences=[*told.sentences, *caveats])


def missed_on(
    state: Mapping[str, Any], folder: Path, case: Mapping[str, Any] | None = None
) -> Said:
    """Judge a device that missed its reference, of a node in some state."""
    slow = (
        "Metric copy_worst: device 0 (0000:41:00.0) of node node1 measured 7 GB/s, and at least 9"
    )
    own = missed() | {
        "fail_reason": "performance error: failed to meet reference(s): copy_worst=7.0\n"
        f"{slow} GB/s is required."
    }
    return one_document(folder, own if case is None else case, factories.on_h200(state=state))


def recorded(folder: Path, name: str, code: int) -> Said:
    """A document that was recorded on two H200, of a run that ended with an exit code."""
    document = load_document(ROOT / f"tests/outputs/h200/{name}.json")
    case = good_case(document["program"]["name"])
    return one_document(folder, case | failed("sanity", job_exitcode=code), document)


def at_times(folder: Path) -> Said:
    """A document of which one series missed its reference, and some of its samples did not."""
    document = load_document(ROOT / "tests/outputs/h200/memcpy_at_times.json")
    metric, value = "h2d_pinned_near_worst", document["series"][0]["median"]
    case = good_case("memcpy_near") | missed(metric)
    key = f"{PARTITION}:{metric}"
    case |= {"perfvalues": {key: factories.judged(value, 55.348, -0.02, result="fail")}}
    case["fail_reason"] = f"performance error: failed\nMetric {metric}: device 0 was slow."
    began = datetime.fromisoformat(document["started"]).timestamp() - 1
    results = SessionBuilder(folder, start=began).add(case, document).write()
    stage = factories.case_folder(results, case["unique_name"], "stage")
    metric_records.write(
        stage, document, {metric: metric_records.MetricRecord(series=(0, 5), reduce="worst")}
    )
    (found,) = judge(results).values()
    return said(found, results)


def another_process(folder: Path) -> Said:
    """A process that used a device before the run."""
    device = factories.device_state(0, processes=[factories.process()])
    return missed_on(factories.state([device, factories.device_state(1)]), folder)


def busy_host(folder: Path) -> Said:
    """Processes that kept the cores of the host busy."""
    devices = [factories.device_state(0), factories.device_state(1)]
    return missed_on(factories.state(devices, others=factories.host_use(15.8, loops=5)), folder)


def few_cores(folder: Path) -> Said:
    """Pageable copies that missed their reference, by a program that may use few cores."""
    pageable = factories.series() | {"source": factories.place("host-pageable", None, 0)}
    state = factories.state([factories.device_state(0), factories.device_state(1)])
    document = factories.on_h200(state=state, series=[pageable])
    document["host"]["cores_allowed"] = [0, 1, 2, 3]
    return one_document(folder, missed(), document)


def changed_counters(folder: Path, case: Mapping[str, Any] | None = None, **after: Any) -> Said:
    """Counters of device 0 that are others after the run."""
    before = [factories.device_state(0, throttled_s={"power": 0.0}), factories.device_state(1)]
    return missed_on(factories.state(before, [before[0] | after, before[1]]), folder, case)


def uncorrected(folder: Path) -> Said:
    """New uncorrected errors of a device's memory in a run that passed."""
    return changed_counters(folder, {}, memory_errors={"corrected": 0, "uncorrected": 2})


def throttled(folder: Path) -> Said:
    """A device that was throttled while it missed its reference."""
    return changed_counters(folder, throttled_s={"power": 4.0}, throttle=["power"], clock_mhz=1310)


def replays(folder: Path) -> Said:
    """PCIe replays in a run that passed."""
    pcie = factories.device_state()["pcie"] | {"replays": 7}
    return changed_counters(folder, kept_on_gpus(), pcie=pcie)


def link_errors(folder: Path, kind: str, link: str) -> Said:
    """Two new errors of a link, of which it had 12, in a run that passed."""
    standing = factories.device_state(0, link_errors={kind: {link: 12}})
    before = [standing, factories.device_state(1)]
    after = [standing | {"link_errors": {kind: {link: 14}}}, before[1]]
    return missed_on(factories.state(before, after), folder, kept_on_gpus())


def topology(folder: Path, told: dict[str, Any]) -> Said:
    """What the drivers tell of a node, recorded and judged as the check does."""
    programs = inventories.programs(folder, told)
    found = record("mi250x", "rocm", programs, folder / "result.json")
    code = found["outcome"]["exit_code"]
    changes = failed("sanity") if code else missed("differences", unit="count", tags=["E13"])
    case = good_case("node_topology") | changes | {"job_exitcode": code}
    return one_document(folder, case, found)


def numa_balancing(folder: Path) -> Said:
    """NUMA balancing is on, and nothing else differs."""
    return topology(folder, inventories.composed(load("mi250x"), numa_balancing=1))


def osu_without_rocm(folder: Path) -> Said:
    """What an OSU that was built without ROCm says of memory of devices, as recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    file = ROOT / "tests/outputs/osu-7.4-host/osu_bw_rocm_not_built"
    facts = factories.write(folder / "told.json")
    launches = [
        {
            "name": f"osu_bw{number}",
            "program": "osu_bw",
            "command": f"cat {file}.err >&2; cat {file}.txt; exit 1",
            "ranks": 2,
            "devices": [0, 1],
            "sizes": [1 << 20],
            "batch": 1,
            "verifies": bool(number),
        }
        for number in range(2)
    ]
    plan = Plan.model_validate(
        {
            "tool": "osu",
            "buffers": "device",
            "accelerator": "rocm",
            "facts": f"cp {facts} {folder}/facts.json",
            "launches": launches,
        }
    )
    found = record_tool(plan, folder / "result.json", 60)
    case = good_case("osu_device_0") | failed("sanity")
    return one_document(folder, case | {"job_exitcode": found["outcome"]["exit_code"]}, found)


def other_order(folder: Path) -> Said:
    """Devices that the driver numbers otherwise, without PCI addresses of the model."""
    told, order = inventories.composed(load("mi250x")), (2, 0, 4, 6, 1, 3, 5, 7)
    for way in told["links"]:
        way["from"], way["to"] = order.index(way["from"]), order.index(way["to"])
    return topology(folder, told)


def full_disk(folder: Path) -> Said:
    """The document cannot be written, and goes to standard output."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(ROOT / "build/host/bin/stream"), *QUICK, "--output", "/dev/full"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    kept = folder / "printed.json"
    kept.write_text(done.stdout)
    series = len(load_document(kept)["series"])
    last = done.stderr.strip().rsplit("\n", 1)[-1]
    told = one_document(
        folder, good_case() | failed("sanity", last) | {"job_exitcode": done.returncode}, None
    )
    sentence = f"{last}; {series} series are in the document on standard output"
    return Said(told.status, [(told.status, sentence), *told.sentences], told.failed,
                diagnosis=told.diagnosis, diagnosed=told.diagnosed)  # fmt: skip


def cut_at_every_byte(folder: Path) -> Said:
    """A document cut at every byte: never read as a whole one, always a sentence with its file."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = factories.write(folder / "whole.json").read_bytes()
    file = folder / "result.json"
    last = len(whole.rstrip()) - 1
    read = 0
    for size in range(last + 1):
        file.write_bytes(whole[:size])
        try:
            load_document(file)
            read += 1
        except FabricheckError as error:
            sentence = str(error)
            assert str(file) in sentence and "\n" not in sentence, (size, sentence)
    results = SessionBuilder(folder / "judged").passed().write()
    (document,) = results.rglob("result.json")
    document.write_bytes(whole[: len(whole) // 2])
    told = judged(results)
    cut = (told.status if not read else "PASS", f"{read} of {last + 1} cut documents were read")
    return Said(told.status, [*told.sentences, cut], told.failed,
                diagnosis=told.diagnosis, diagnosed=told.diagnosed)  # fmt: skip


def killed(folder: Path) -> Said:
    """A session killed three times, at other moments: what had ended is there each time."""
    session = Session(["stream_local", "memcpy_near", "p2p_kernel", "p2p_engine"])
    sentences: list[tuple[str, str]] = []
    states = set()
    for ended in (1, 2, 3):
        own = folder / str(ended)
        own.mkdir(parents=True)
        process = subprocess.Popen(
            **session.command(own), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + 60
        while len(_finished(own)) < ended and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        told = judged(own / "results")
        states.add(told.status)
        sources = reading.read([str(own / "results")]).sources
        read = {one.path for source in sources for one in source.entries if one.document}
        lost = len(_finished(own) - {path.parent.name for path in read})
        sentences += [(told.status, f"{lost} of the finished documents are lost"), *told.sentences]
    (status,) = states if len(states) == 1 else ("several",)
    return Said(status, sentences)


def _finished(folder: Path) -> set[str]:
    """Return the checks that left a document."""
    return {file.parent.name for file in (folder / "results").rglob("result.json")}


def narrow(folder: Path) -> Said:
    """A device with 8 of the 16 lanes that it and its port support, in a run that passed."""
    lanes = {"width": 8, "width_max": 16, "width_max_port": 16, "gt_per_s": 16.0}
    state = factories.device_state(0, pcie=lanes | {"gt_per_s_max": 16.0, "replays": 0})
    both = [state, factories.device_state(1)]
    return one_document(folder, {}, factories.on_h200(state=factories.state(both, both)))


def aborted(folder: Path, after: Mapping[str, Any], **aftermath: Any) -> Said:
    """A program that the runtime aborted, and what another process saw of the node then.

    after: what changed of the state of device 0.
    """
    state = factories.state([factories.device_state(0)], [factories.device_state(0, **after)])
    state["before"]["host"]["pci_functions"] = [factories.pci_function(0x41)]
    own = factories.on_h200(1, state=state, aftermath=factories.aftermath(**aftermath))
    running = {"exit_code": None, "status": "running", "message": None}
    own |= {"complete": False, "finished": None, "outcome": running}
    return one_document(folder, failed("sanity", "ended", job_exitcode=134), own)


def closed(folder: Path) -> Said:
    """A device whose file a control group closes, in the partition h200:x2."""
    functions = [factories.pci_function(0x41), factories.pci_function(0x42, accessible=False)]
    state = factories.state([factories.device_state(0)])
    state["before"]["host"]["pci_functions"] = functions
    case = {"system": "h200", "partition": "x2", "environ": "cuda"}
    case |= failed("sanity", "1", "OtherDevicesError")
    return one_document(folder, case, factories.on_h200(1, state=state))


def one_of_seven(folder: Path) -> Said:
    """Seven of eight devices, compared with their node model."""
    said = "The node has 8 amd devices in mi300x, 7 amd devices in the driver."
    program = factories.document()["program"] | {"name": "topology"}
    own = factories.document(series=[], program=program, differences=[said], lost=[said])
    case = good_case("node_topology") | missed("differences", unit="count", tags=["E13"])
    return one_document(folder, case, own)


def other_kind(folder: Path, **device: Any) -> Said:
    """Devices of another kind, or divided, in the partition h200:x2."""
    own = factories.on_h200(2)
    devices = [one | device for one in own["devices"]]
    case = {"system": "h200", "partition": "x2", "environ": "cuda"} | missed()
    return one_document(folder, case, own | {"devices": devices})


def divided(folder: Path) -> Said:
    """A device in MIG in the partition h200:x2, which then shows one."""
    states = [factories.device_state(0, compute_partition="MIG")]
    own = factories.on_h200(1, state=factories.state(states, states))
    case = {"system": "h200", "partition": "x2", "environ": "cuda"}
    return one_document(folder, case | failed("sanity", "1", "OtherDevicesError"), own)


def over_nodes(folder: Path, *sessions: Mapping[str, Any]) -> Said:
    """Judge nodes by sessions, each with the case and the document of every node."""
    found = verdicts_of_sessions(folder, *sessions)
    total = evidence.session_verdict("run-0", found.values())
    worst = total.nodes[0].status
    first = [(worst, sentence) for sentence in software_first(total.nodes)]
    told = [(one.status, reason.sentence) for one in total.nodes for reason in one.reasons]
    drained = [one.node for one in total.nodes if one.drain is not None and one.drain.live]
    return Said(worst, [*first, *told], drained=drained)


def half_width(folder: Path) -> Said:
    """A link that trained at half its width, on one of four nodes of a system without limits of
    its own, twice.
    """
    sessions = []
    for number in range(2):
        cases = []
        for node in range(1, 5):
            percent, result = (50.0, "fail") if node == 1 else (99.0, "pass")
            values = {"other:gpu:engine_alike": [percent, 100.0, -0.05, None, "%", result]}
            here = {"system": "other", "partition": "gpu", "perfvalues": values}
            case = good_case("p2p_engine", f"node{node}") | (missed() if node == 1 else {})
            cases.append((case | here, factories.on_h200(2, versions=versions())))
        results = (
            SessionBuilder(folder / str(number), start=factories.SESSION_START + number)
            .each(cases)
            .write()
        )
        for file in results.rglob("result.json"):
            one = metric_records.MetricRecord(series=(0,), reduce="peers")
            metric_records.write(file.parent, load_document(file), {"engine_alike": one})
        sessions.append(results)
    found = judge(*sessions)
    told = [(one.status, reason.sentence) for one in found.values() for reason in one.reasons]
    drained = [one.node for one in found.values() if one.drain is not None and one.drain.live]
    return Said(found["node1"].label, told, drained=drained)


def many(folder: Path, changes: Mapping[str, Mapping[str, Any]], count: int) -> Said:
    """Judge many nodes, some of which differ; what is said of them all and of those."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for number in range(1, count + 1):
        node = f"node{number}"
        versions = {"runtime": "13.0", "driver": "580.159.04"}
        own = factories.on_h200(1, versions=versions) | changes.get(node, {})
        own["host"] = own["host"] | {"scheduler_node": node}
        cases.append((good_case(node=node) | kept_on_gpus(), own))
    found = SessionBuilder(folder).each(cases).verdicts()
    total = evidence.session_verdict("run-0", found.values())
    worst = next((one.status for one in found.values() if one.status != "PASS"), "PASS")
    told = [(one.status, reason.sentence) for one in found.values() for reason in one.reasons]
    return Said(worst, [*told, *(("PASS", note) for note in total.notes)])


def other_driver(folder: Path) -> Said:
    """One of eight nodes with another driver than the others."""
    return many(folder, {"node5": {"versions": {"runtime": "13.0", "driver": "570.86.15"}}}, 8)


def slow_among_100(folder: Path) -> Said:
    """One of 100 nodes whose device is 3 % slow."""
    slow = [factories.series([0.97 * value for value in factories.SAMPLES])]
    return many(folder, {"node42": {"series": slow}}, 100)


def falling(folder: Path) -> Said:
    """A node that loses 1 % a week for eight weeks, judged by its last session."""
    for week in range(8):
        samples = [value * 0.99**week for value in factories.SAMPLES]
        case, own = (
            good_case() | kept_on_gpus(),
            factories.on_h200(1, series=[factories.series(samples)]),
        )
        results = SessionBuilder(folder / str(week)).add(case, own).write()
    (found,) = judge(results).values()
    return said(found, results)


def other_library(folder: Path) -> Said:
    """A session whose programs are of another MPI than the lock's."""
    recorded = ROOT / "tests/outputs/h200/session-x2/output"
    (file,) = recorded.rglob("mpi_pairs/result.json")
    own = dict(load_document(file))
    own["versions"] = own["versions"] | {"mpi": "MPICH 3.0"}
    lock = folder / "output/software/local.cuda.spack.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(locks.text())
    return one_document(folder, kept_on_gpus(), own)
