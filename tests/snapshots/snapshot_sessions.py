"""The results that the commands are asked about, in the working folder; paths are relative.

So no path of the machine is in what the commands print, and no line breaks elsewhere for it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

import yaml

import factories
from session_builder import SessionBuilder, ended, failed, good_case, missed, several, write_job

TESTS = Path(__file__).resolve().parents[1]
H200 = TESTS / "outputs" / "h200"
sys.path += [str(TESTS / "comparison"), str(TESTS / "acceptance")]
import agreed_nodes  # noqa: E402
import two_sessions as compared  # noqa: E402

from fabricheck import __version__  # noqa: E402

RESULTS = Path("results")

#: A partition of several nodes, whose sessions do not tell what was typed.
QUEUE = {"where": "cluster:queue", "command": None}

#: Of the session on H200, what is calibrated.
RECORDED_CHECKS = ("p2p_engine", "p2p_kernel", "stream_local", "stream_concurrent")

#: The folder that a killed session left.
KILLED = "20260103T030405-18"


def h200() -> None:
    """A session recorded on two H200."""
    shutil.copytree(H200 / "session-x2", RESULTS)


def simulated() -> None:
    """A session recorded on a simulated node."""
    shutil.copytree(TESTS / "outputs" / "simulated-mi250x", RESULTS)


def killed() -> None:
    """A whole session, and one that was killed in p2p, before mpi had written anything."""
    SessionBuilder(RESULTS).add(factories.case(), factories.document()).write()
    factories.write(RESULTS / f"output/{KILLED}/local/host/host/stream_scan/result.json")
    stage = RESULTS / f"stage/{KILLED}/local/sim-mi250x/sim"
    running = {"exit_code": None, "status": "running", "message": None}
    left = factories.simulated_document(complete=False, finished=None, outcome=running)
    factories.write(stage / "p2p" / "result.json.partial", left)
    (stage / "mpi").mkdir()
    broken = factories.write(stage / "stream_local" / "result.json")
    broken.write_text(broken.read_text()[:99])


def distributed() -> None:
    """A session over nodes: node2 is slow, node3 was lost, node4 is down."""
    requested = {f"node{number}": {} for number in (1, 2, 3)}
    requested["node4"] = {"state": "DOWN", "because": "no power"}
    SessionBuilder(RESULTS, **QUEUE).copies({"node1": 10.0, "node2": 7.0, "node3": None}).write()
    content = {"partition": QUEUE["where"], "started": "2026-01-02T03:04:00Z"}
    content |= {"form": "fabricheck-nodes-1", "nodes": requested}
    factories.write(RESULTS / "output" / "nodes.json", content)


def job() -> None:
    """A job with a session a node: node2 is slow, node3 never answered; and a node is simulated."""
    values = {"node1": 10.0, "node2": 7.0, "node3": None, "node10": 10.1}
    simulated = {"node1": 9.5, "node2": 9.5, "node10": 9.5}
    because = {"state": "DOWN", "because": "no power"}
    write_job(RESULTS, values, simulated=simulated, options=QUEUE, node3=because)


def acceptance() -> None:
    """Forty nodes under an agreement: three failed, of which one passes now and one has a waiver;
    and a GPU of node 12 was exchanged after it had passed.
    """
    machine = agreed_nodes.Machine(Path())
    slow = {"node7": 700.0, "node19": 1200.0, "node33": 900.0}
    machine.job({**agreed_nodes.HEALTHY, **slow})
    machine.job({"node7": 1400.0})
    partial = f"reframe --system={agreed_nodes.SYSTEM} -n stream_local -r"
    machine.job({"node12": 1400.0}, serials={"node12": "another"}, command=partial)
    both = [{**agreed_nodes.WAIVER, "criterion": name} for name in ("memory", "set-smoke")]
    ended = {**agreed_nodes.WAIVER, "node": "node33", "until": "2026-01-31"}
    machine.agree(waivers=[*both, ended])


def failures() -> None:
    """A session on three nodes in which checks fail in each way, and one is right when repeated."""
    noisy = factories.series([9.0, 10.0, 20.0, 5.0, 9.0, 10.0], noisy=True, host_clock=None)
    wrong = factories.series(verification=factories.mismatched())
    sanity = failed("sanity", "the program says so")
    outcomes = [
        ("stream_local", missed(), factories.document()),
        ("stream_scan", sanity, ended("wrong-data", 5, "a word differs", series=[wrong])),
        ("p2p_engine", sanity, ended("device-error", 9, "device 3: ECC error", series=[])),
        ("p2p_kernel", sanity, ended("too-noisy", 7, "30 % wide", series=[noisy])),
        ("memcpy_near", sanity, ended("time-limit", 6, "120 s were over")),
        ("memcpy_numa", sanity, ended("setting", 8, "NUMA balancing is on", series=[])),
        ("p2p_scan", failed("setup", "no program", "SetupError"), None),
        ("managed_migration", {"result": "skip"}, None),
    ]
    cases = [
        (good_case(name, "node2" if "p2p" in name else "node1") | changes, content)
        for name, changes, content in outcomes
    ]
    again = good_case(node="node3")
    cases.append((again, factories.document()))
    earlier = good_case("stream_local", "node3") | missed()
    session = SessionBuilder(RESULTS, command="reframe -r -t full").add(earlier)
    session.rerun().each(cases).write()


def older() -> None:
    """Documents that earlier programs wrote, one of another version, one cut off."""
    RESULTS.mkdir()
    for name in ("two-devices/p2p_pair", "two-devices/stream_host", "one-device/memcpy_round_1",
                 "one-device/managed_fault", "two-devices-mpi/affinity_bound",
                 "two-devices-mpi/mpi_both", "two-devices-mpi/mpi_hung",
                 "two-devices-mpi/osu_collectives_crashed", "two-devices-mpi/pingpong_one",
                 "later-x2/full/stream_local/result", "faults-x2/p2p_flip"):  # fmt: skip
        target = RESULTS / "documents" / name / "result.json"
        target.parent.mkdir(parents=True)
        shutil.copy(H200 / f"{name}.json", target)
    factories.write(RESULTS / "documents/next/result.json", factories.document(schema_version=2))
    (RESULTS / "documents/cut").mkdir()
    (RESULTS / "documents/cut/result.json.partial").write_text('{"schema": "fabricheck-res')


def named() -> None:
    """Results with one of each kind that a name can be of, and what is none."""
    killed()
    write_job(RESULTS, {"node1": 10.0, "node2": None}, options=QUEUE)
    loose = RESULTS / "loose"
    factories.write(loose / "one" / "result.json")
    factories.write(loose / "two" / "result.json.partial", factories.killed_document())
    report = SessionBuilder(Path("damaged")).add(factories.case()).write_report()
    report.write_text("{")
    Path("broken.json").write_text("{")
    Path("empty").mkdir()
    hour = Path("hour/results")
    SessionBuilder(hour).add(factories.case(), factories.document()).write()
    with tarfile.open("hour.tar.gz", "w:gz") as archive:
        archive.add("hour")
    shutil.rmtree("hour")


def pairs() -> None:
    """Results folders to compare: composed ones, and recorded ones of H200."""
    slow = [compared.pair(0, 1, compared.spread(40)), compared.pair(1, 0, compared.spread(55))]
    slow.append(compared.latency(0, 1, [9.0, 9.1]))
    simulated = [compared.pair(0, 1, [50.0]), compared.pair(1, 0, [50.0])]
    for name, content in (
        ("before", compared.document(compared.HEALTHY)),
        ("after", compared.document(slow)),
        ("fewer", compared.document(slow[:1])),
        ("model", compared.simulated(simulated)),
        ("none", None),
    ):
        compared.results(Path(name), content)
    shutil.copytree(H200 / "later-x2", "later")
    for name in ("node-1", "node-5-independent"):
        target = Path(name) / "reports" / "run-0.json"
        target.parent.mkdir(parents=True)
        shutil.copy(H200 / "reports-x2" / f"{name}.json", target)


def repeated() -> None:
    """Sessions to calibrate: composed ones with a reference, and a part of H200."""
    references = Path("references")
    references.mkdir()
    (references / "stream.yaml").write_text(
        "stream_local:\n  local:host:\n"
        "    # What was measured first.\n    copy_worst: [98, -0.05, null, GB/s]\n"
    )
    several(Path("steady"), [100.0, 100.5, 99.5, 100.0, 100.2, 99.9])
    several(Path("slower"), [90.0, 90.5, 89.5, 90.0, 90.2, 89.9])
    shutil.copytree(H200 / "session-x2", "h200")
    report = Path("h200/reports/run-0.json")
    content = json.loads(report.read_text())
    few = [one for one in content["runs"][0]["testcases"] if one["name"] in RECORDED_CHECKS]
    content["runs"][0]["testcases"] = few
    report.write_text(json.dumps(content))
    Path("reference_values").mkdir()
    values = TESTS.parent / "reference_values"
    for name in ("p2p.yaml", "stream.yaml"):
        shutil.copy(values / name, "reference_values")
    shutil.copytree(values / "transfers", "reference_values/transfers")
    record = yaml.load((values / "calibrations/h200-x2.yaml").read_text(), yaml.CSafeLoader)
    record["checks"] = {name: record["checks"][name] for name in RECORDED_CHECKS}
    Path("reference_values/calibrations").mkdir()
    Path("reference_values/calibrations/h200-x2.yaml").write_text(yaml.safe_dump(record))


def parts() -> None:
    """Results folders of three jobs of a pipeline; the last one left nothing."""
    for number, name in enumerate(("stream_local", "stream_scan")):
        SessionBuilder(Path(name), number, command=f"reframe -n {name} -r").add(
            factories.case(name), factories.document()
        ).write()
    Path("nothing").mkdir()


def outputs() -> None:
    """What tools printed: of rocm-smi and nvidia-smi, and in rounds beside our programs."""
    shutil.copytree(TESTS / "outputs" / "rocm-smi", "rocm-smi")
    shutil.copytree(H200 / "beside-1", "beside")
    shutil.copytree(H200 / "four-devices", "four-devices")
    shutil.copy(TESTS.parent / "config/nodes/overlays/link-0-6-gone.yaml", ".")


def nothing() -> None:
    """No results at all."""


def site() -> None:
    """A machine with the programs of the host runtime, as far as they are looked at."""
    for path in (
        *(f"programs/{name}" for name in ("stream", "memcpy", "managed", "p2p", "overlap", "soak")),
        "bin/mpiexec",
    ):
        file = Path(path)
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho '{__version__} (abc, runtime host)'\n")
        file.chmod(0o755)
    os.environ |= {
        "PATH": str(Path("bin").absolute()),
        "FABRICHECK_MPI": "OFF",
        "FABRICHECK_HOST_PROGRAMS": str(Path("programs").absolute()),
        "FABRICHECK_SIM_PROGRAMS": str(Path("programs").absolute()),
    }
