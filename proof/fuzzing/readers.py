"""The readers of foreign text, and the texts that each is fed with: recorded ones where there are.

A reader's values are flat: by what they are of (pair, size, device, unit) or, of JSON and YAML, by
their place in the file.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

import yaml
from pydantic import BaseModel

import amd_tool_texts as amd
import composed_tools as composed
import factories
import locks
import loopback_texts as loopbacks
import nccl_texts
import topology_texts as topologies
from fabricheck.beside import launches, table
from fabricheck.beside.outputs import PlacedValues, nvidia, transferbench
from fabricheck.beside.outputs import rocm_bandwidth_test as rbt
from fabricheck.core import nodelists, yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.lines import doubled
from fabricheck.core.models import read_model
from fabricheck.core.text import read_text
from fabricheck.node import load
from fabricheck.node.overlaid import apply_overlay
from fabricheck.node.overlay import read_overlay
from fabricheck.papers import fidelity_plan
from fabricheck.references import calibrated, entries, published, rules, stated
from fabricheck.results import (
    archive,
    document,
    metric_records,
    requested_nodes,
    run_report,
    session,
    session_checks,
)
from fabricheck.results.model import ResultDocument
from fabricheck.schedulers import row as schedulers_row
from fabricheck.schedulers import slurm
from fabricheck.schedulers.table import SLURM
from fabricheck.site import sites
from fabricheck.site import software as spack
from fabricheck.tools import benchmarks, nic_loopback, osu
from fabricheck.tools.runner import text_of
from fabricheck.tools.topology import host, inventory
from fabricheck.tools.topology import texts as topology_files
from proof.fuzzing.judging import Reader, Text, leaves, plain_json, plain_yaml
from session_builder import SessionBuilder, good_case, missed

OUTPUTS = ROOT / "tests" / "outputs"
H200 = OUTPUTS / "h200"
SIMULATED = OUTPUTS / "simulated-mi250x"
MIB = 1 << 20


def _recorded(file: Path, read: Any) -> Text:
    return Text(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"), read)


# What tools print.


def _osu() -> Reader:
    def of(file: Path) -> Text:
        program = re.match(r"osu_(?:reduce_scatter|mbw_mr|[a-z]+)", file.name)
        assert program is not None
        sizes = [int(row) for row in re.findall(r"^(\d+) ", file.read_text(), re.MULTILINE)]

        def read(path: Path) -> Mapping[Any, Any]:
            found = osu.parse(text_of(path), str(path), program[0], sizes)
            # Not every program prints it.
            told = {} if found.datatype is None else {"datatype": found.datatype}
            return {
                "version": found.version,
                "accelerator": found.accelerator,
                **told,
                **{(one.size, found.unit): one.value for one in found.rows},
                **{(one.size, "iterations"): one.iterations for one in found.rows},
            }

        return _recorded(file, read)

    good = [
        file
        for folder in ("osu-7.4-host", "osu-7.4-simulated", "osu-7.4-cuda-h200")
        for file in sorted((OUTPUTS / folder).glob("osu_*.txt"))
        if not re.search("crashed|one_rank|not_built|1MiB_to_1GiB", file.name)
    ]
    return Reader("OSU Micro-Benchmarks", [of(file) for file in good], exchangeable=True,
                  may_lack=_is_version)  # fmt: skip


def _nccl() -> Reader:
    def of(
        name: str, content: str, program: str, ranks: int, sizes: tuple[int, ...], nodes: int = 1
    ) -> Text:
        addresses = re.findall(r"device +\d+ \[(\S+)\]", content)
        devices = [
            factories.device(i, pci_address=one if "." in one else f"{one}.0")
            for i, one in enumerate(addresses)
        ]
        facts = cast(ResultDocument, factories.document(devices=devices))
        iterations = re.search(r" iters: (\d+) agg", content)
        assert iterations is not None

        def read(path: Path) -> Mapping[Any, Any]:
            launch = benchmarks.Launch(
                name=path.name, program=program, command="x", ranks=ranks,
                devices=list(range(ranks)), sizes=list(sizes), batch=int(iterations[1]),
                nodes=nodes,
            )  # fmt: skip
            plan = benchmarks.Plan(
                tool="rccl-tests" if "rccl-tests" in content else "nccl-tests",
                buffers="device", facts="x", launches=[launch],
                network="Socket" if nodes > 1 else None,
            )  # fmt: skip
            found = plan.benchmark.read(plan, launch, text_of(path), facts)
            # That of the library is made of the number of its code.
            values: dict[Any, Any] = {
                ("version", key): one for key, one in found.versions.items() if key != "rccl"
            }
            for one in found.series:
                key = (one["bytes"], one["operation"], one["in_place"], one["unit"])
                values[key] = (one["samples"][0], one["datatype"])
            return values

        return Text(name, content, read)

    texts = []
    for file in sorted((OUTPUTS / "nccl-tests-h200").glob("*.txt")):
        found = re.match(r"(\w+)_perf_(\d)gpus", file.name)
        assert found is not None
        texts.append(of(file.name, file.read_text(), found[1], int(found[2]), (MIB,)))
    for file in sorted((OUTPUTS / "nccl-tests-two-nodes").glob("*.txt")):
        program = file.name.removesuffix("_perf.txt")
        sizes = doubled(8 * MIB, 1024 * MIB)
        texts.append(of(f"{program} of two nodes", file.read_text(), program, 2, sizes, nodes=2))
    scan = (MIB, 2 * MIB, 4 * MIB)
    for name in ("rccl_2024", "rccl_2025"):
        content = getattr(nccl_texts, name)(nccl_texts.SCAN)
        texts.append(of(name, content, "all_reduce", 8, scan))
    return Reader("nccl-tests and rccl-tests", texts, names="text.txt",
                  may_lack=_is_version, may_gain=_is_version)  # fmt: skip


def _is_version(key: Any) -> bool:
    """Whether a value is of lines that not all versions print, and that the library may print."""
    return key == "datatype" or key[0] == "version"


def _placed(found: PlacedValues) -> Mapping[Any, Any]:
    # Of the devices only their number counts.
    return {"version": found.version, "devices": len(found.devices), **found.values}


def _nvbandwidth() -> Reader:
    def read(path: Path) -> Mapping[Any, Any]:
        return _placed(nvidia.parse_nvbandwidth(text_of(path), str(path), launches.TESTCASES))

    def three(path: Path) -> Mapping[Any, Any]:
        names = ("device_local_copy", "device_to_device_memcpy_read_sm",
                 "device_to_device_bidirectional_memcpy_read_ce")  # fmt: skip
        return _placed(nvidia.parse_nvbandwidth(text_of(path), str(path), names))

    texts = [
        _recorded(H200 / "beside-1" / "nvbandwidth-1.txt", read),
        _recorded(OUTPUTS / "nvbandwidth-h200" / "three_testcases.json", three),
        Text("composed, 4 devices", composed.nvbandwidth_json(launches.TESTCASES, 4), read),
    ]
    return Reader("nvbandwidth", texts, exchangeable=True)


def _babelstream() -> Reader:
    def read(path: Path) -> Mapping[Any, Any]:
        return nvidia.parse_babelstream(text_of(path), str(path), 30, 512 << 20).values

    texts = [
        _recorded(OUTPUTS / "babelstream-h200" / "csv_512MiB.txt", read),
        Text("composed", composed.babelstream_csv((512 << 20) // 8, 30), read),
    ]
    return Reader("BabelStream", texts, free=r"^phase,")


def _p2p_test() -> Reader:
    def read(path: Path) -> Mapping[Any, Any]:
        return _placed(nvidia.parse_p2p_test(text_of(path), str(path)))

    texts = [
        _recorded(H200 / "beside-1" / "p2p-test-1.txt", read),
        Text("composed, 4 devices", composed.p2p_test_text(4), read),
    ]
    return Reader("p2pBandwidthLatencyTest", texts, exchangeable=True, free="^So you can see")


def _loopbacks() -> Iterator[Reader]:
    cxi_tool = nic_loopback.TOOLS["cxi_gpu_loopback_bw"]
    ib_tool = replace(nic_loopback.TOOLS["ib_write_bw"], message_bytes=65536)

    def cxi(path: Path) -> Mapping[Any, Any]:
        return {"Gb/s": cxi_tool.parse(text_of(path), str(path), "cxi2")}

    def ib(path: Path) -> Mapping[Any, Any]:
        return {"Gb/s": ib_tool.parse(text_of(path), str(path), "mlx5_0")}

    text = Text("HPE's values", loopbacks.cxi_loopback("cxi2"), cxi)
    yield Reader("cxi_gpu_loopback_bw", [text])
    text = Text("a user's values", loopbacks.ib_write_bw(), ib)
    yield Reader("ib_write_bw", [text])


def _transferbench() -> Iterator[Reader]:
    size = 64 * MIB

    def p2p(path: Path) -> Mapping[Any, Any]:
        return _placed(transferbench.parse_p2p(text_of(path), str(path), size))

    def a2a(path: Path) -> Mapping[Any, Any]:
        return _placed(transferbench.parse_a2a(text_of(path), str(path), size, {}))

    def sets(path: Path) -> Mapping[Any, Any]:
        found = _placed(transferbench.parse_one_to_all(text_of(path), str(path), size, 4))
        # The sum is of the values, and not printed.
        return {key: value for key, value in found.items() if transferbench.ALL not in key}

    def scaling(path: Path) -> Mapping[Any, Any]:
        return _placed(transferbench.parse_scaling(text_of(path), str(path), size, 8))

    published = OUTPUTS / "amd-published" / "transferbench-1.60-a2a-mi300x.txt"
    settings = r"Executor:|^(?!.*(GPU|SRC|bytes|NumCUs))"
    for name, texts in (
        ("p2p", [Text("composed", amd.transferbench_p2p(), p2p)]),
        ("a2a", [_recorded(published, a2a), Text("composed", amd.transferbench_a2a(), a2a)]),
        ("one2all", [Text("composed", amd.transferbench_one_to_all(), sets)]),
        ("scaling", [Text("composed", amd.transferbench_scaling(), scaling)]),
    ):
        yield Reader(f"TransferBench {name}", texts, exchangeable=True, free=settings)


def _rocm_bandwidth_test() -> Reader:
    def read(path: Path) -> Mapping[Any, Any]:
        found = _placed(rbt.parse(text_of(path), str(path)))
        # Nothing contradicts a distance, and nothing uses it.
        return {key: one for key, one in found.items() if key[0] != rbt.DISTANCE}

    texts = [_recorded(OUTPUTS / "amd-published" / "rocm-bandwidth-test-2.6.0-mi50.txt", read)]
    # A pair without a way has none.
    return Reader("rocm_bandwidth_test", texts, exchangeable=True, together=2,
                  may_lack=lambda key: isinstance(key, tuple))  # fmt: skip


def _topology() -> Iterator[Reader]:
    def told(*paths: Path) -> Mapping[Any, Any]:
        found = topology_files.parse_files(paths)
        values: dict[Any, Any] = {"vendor": found.vendor, "count": found.count}
        if found.link_peak_gbs is not None:
            values["peak", "GB/s"] = found.link_peak_gbs
        for name in ("numa", "cpus", "pci"):
            for device, one in enumerate(getattr(found, name) or ()):
                values[name, device] = one
        for name in ("links", "link_types"):
            for a, row in enumerate(getattr(found, name) or ()):
                for b, one in enumerate(row):
                    values[name, a, b] = one
        return values

    def read(path: Path) -> Mapping[Any, Any]:
        return told(path)

    def beside(table: str) -> Any:
        """Read a list of devices, whose end nothing tells, beside a table of their links."""

        def read_both(path: Path) -> Mapping[Any, Any]:
            other = path.with_name("table.txt")
            other.write_text(table)
            return told(path, other)

        return read_both

    amd, nvidia = load("mi250x"), load("h200")
    with_links = beside(topologies.shownodesbw(amd))
    four = (H200 / "four-devices" / "nvidia-smi-topo-m.txt").read_text()
    eight = topologies.topo_m(nvidia, between=lambda a, b: "NV18")
    rocm = [
        Text("--shownodesbw", topologies.shownodesbw(amd), read),
        Text("--showtopo", topologies.showtopo(amd), read),
        Text("--showtoponuma", topologies.showtoponuma(amd), with_links),
        Text("--showbus", topologies.showbus(topologies.PCI), with_links),
        _recorded(OUTPUTS / "rocm-smi" / "published-hugging-face-shownodesbw.txt", read),
        _recorded(OUTPUTS / "rocm-smi" / "published-hugging-face-showtoponuma.txt", with_links),
    ]  # fmt: skip
    whole = [Text("topology", topologies.amd_smi(amd, topologies.PCI), read)]
    matrix = [
        _recorded(H200 / "four-devices" / "nvidia-smi-topo-m.txt", read),
        Text("with network cards", topologies.topo_m(nvidia, between=lambda a, b: "NV18"), read),
        Text("of links", topologies.topo_m(load("a100-booster"), nics=4), read),
    ]
    queried = [
        _recorded(H200 / "four-devices" / "nvidia-smi-query-gpu.csv", beside(four)),
        Text("without a header", topologies.query(topologies.PCI), beside(eight)),
    ]
    yield Reader("rocm-smi", rocm, together=2, adds=True)
    yield Reader("amd-smi", whole, together=2)
    yield Reader("nvidia-smi topo -m", matrix, together=2, exchangeable=True)
    yield Reader("nvidia-smi --query-gpu", queried)


# What Slurm says.

_NODES = """\
NodeName=node1 Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUTot=128 CPULoad=0.01 \
AvailableFeatures=(null) Gres=gpu:8 NodeAddr=node1 State=IDLE ThreadsPerCore=2 TmpDisk=0 \
Partitions=gpu BootTime=2026-01-02T03:04:05 Comment=(null)
NodeName=node2 Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUTot=128 CPULoad=0.01 \
AvailableFeatures=(null) Gres=gpu:8 NodeAddr=node2 State=DOWN*+DRAIN ThreadsPerCore=2 TmpDisk=0 \
Partitions=gpu BootTime=None Reason=fan 3 is broken [root@2026-01-02T03:04:05] Comment=(null)
NodeName=node3 Arch=x86_64 CoresPerSocket=64 CPUAlloc=128 CPUTot=128 CPULoad=9.01 \
AvailableFeatures=(null) Gres=gpu:8 NodeAddr=node3 State=MIXED+PLANNED ThreadsPerCore=2 TmpDisk=0 \
Partitions=gpu BootTime=2026-01-02T03:04:05 Comment=(null)
"""

_JOB = (
    "JobId=17 JobName=every UserId=a(1) GroupId=a(1) MCS_label=N/A Priority=1 Nice=0 "
    "JobState=RUNNING Reason=None Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 "
    "Reboot=0 ExitCode=3:0 "
    "RunTime=00:00:02 TimeLimit=01:00:00 StartTime=2026-01-02T03:04:05 "
    "EndTime=2026-01-02T04:04:05 Partition=gpu ReqNodeList=(null) ExcNodeList=(null) "
    "NodeList=node[1-3] NumNodes=3 OverSubscribe=NO Command=/a/job.sh WorkDir=/a \n"
)


def _said(path: Path) -> Any:
    """Let Slurm's commands say what is in a file."""

    def run(command: Any, **options: Any) -> Any:
        raw = path.read_bytes()
        said = raw.decode("utf-8", options.get("errors") or "strict")
        return subprocess.CompletedProcess(command, 0, said, "")

    return mock.patch.object(schedulers_row.subprocess, "run", run)


def _slurm() -> Iterator[Reader]:
    def nodes(path: Path) -> Mapping[Any, Any]:
        with _said(path):
            found = slurm.query_nodes("node[1-3]")
        return {name: one.state for name, one in found.items()}

    def job(path: Path) -> Mapping[Any, Any]:
        with _said(path):
            found = slurm.record("17")
        names = ("JobState", "ExitCode", "NodeList", "OverSubscribe", "EndTime")
        return {name: found[name] for name in names if name in found}

    def around(path: Path) -> Mapping[Any, Any]:
        first, _, rest = _NODES.partition("\n")

        def shown(what: str, name: str) -> str:
            return read_text(path) if what == "job" else first + "\n" + rest

        with mock.patch.object(slurm, "_shown", shown):
            found = SLURM.allocation(
                environment={"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "node[1-3]"}
            )
        values: dict[Any, Any] = {"job": found.job, "ends": found.ends}
        values |= {name: one.state for name, one in found.nodes.items()}
        values["taken"] = nodelists.folded(
            name
            for name, one in found.nodes.items()
            if "removed from the job" in (one.unusable or "")
        )
        return values

    def steps(path: Path) -> Mapping[Any, Any]:
        with _said(path):
            return {one.id: (one.name, one.node) for one in slurm.steps("17")}

    listed = "".join(f"17.{n}|{slurm.SESSION}|node{n}\n17.{n + 3}|mpi|node{n}\n" for n in (1, 2, 3))
    listed += "17.batch|batch|node1\n17.extern|extern|node[1-3]\n"

    def names(path: Path) -> Mapping[Any, Any]:
        return dict.fromkeys(nodelists.unfolded(read_text(path).removesuffix("\n")), True)

    yield Reader("scontrol show nodes", [Text("three nodes", _NODES, nodes)], joins=True,
                 may_lack=lambda key: True, errors=(LookupError,), names="")  # fmt: skip
    yield Reader("scontrol show job", [Text("a job", _JOB, job)],
                 may_lack=lambda key: True, errors=(LookupError,), names="")  # fmt: skip
    yield Reader("the allocation around a job", [Text("a job", _JOB, around)], names="",
                 ranges=True)  # fmt: skip
    yield Reader("squeue --steps", [Text("steps", listed, steps)], joins=True,
                 may_lack=lambda key: True)  # fmt: skip
    yield Reader("lists of nodes", [Text("a list", "node[1-3,7],login2\n", names)], names="",
                 may_lack=lambda key: True, ranges=True)  # fmt: skip


# JSON.


def _dumped(model: BaseModel) -> Mapping[Any, Any]:
    """Return what a file set in a model."""
    return dict(leaves(model.model_dump(by_alias=True, exclude_unset=True)))


def _documents() -> Reader:
    def read(path: Path) -> Mapping[Any, Any]:
        # Of the state of devices the reader adds what older programs did not write, as unknown,
        # and to that after a run what did not change.
        found = dict(leaves(document.load(path)))
        # In documents of version 0.2 node and number of devices are one text.
        written = json.loads(path.read_text())
        node = written["options"].get("node")
        if found.get(("options", "node"), node) != node:
            assert node.startswith(f"{found['options', 'node']} ({found['options', 'devices']} of ")
            found["options", "node"] = node
            del found["options", "devices"]
        # A rank's copy there and back was called both, as the sum of two directions still is.
        for number, series in enumerate(written["series"]):
            if series["operation"] == "both" and series["experiment"] == "E6":
                assert found["series", number, "operation"] == "there-and-back"
                found["series", number, "operation"] = "both"
        return {
            place: one
            for place, one in found.items()
            if place[0] != "state" or not (one is None or _as_before(place, one, found))
        }

    files = [
        *sorted(SIMULATED.rglob("result.json")),
        *sorted(H200.glob("session-x2/**/result.json")),
        *sorted(H200.glob("faults-x2/*.json")),
        H200 / "beside-1" / "p2p-chase-1.json",
        OUTPUTS / "state" / "h200-healthy.json",
    ]
    small = [_recorded(file, read) for file in files if file.stat().st_size < 60_000]
    good = [one for one in small if _is_document(one.content)]
    built = Text("built", json.dumps(factories.document(), indent=1), read)
    return Reader("result documents", [built, *good], "result.json", plain_json)


def _as_before(place: Any, value: Any, found: Mapping[Any, Any]) -> bool:
    return place[1] == "after" and found.get((place[0], "before", *place[2:])) == value


def _is_document(content: str) -> bool:
    return bool(json.loads(content).get("schema") == document.SCHEMA_NAME)


def _series() -> Reader:
    """What a series is of, and its values: that no damage gives one the values of another."""

    def read(path: Path) -> Mapping[Any, Any]:
        values: dict[Any, Any] = {}
        found = document.load(path)
        for one in found["series"]:
            fields: dict[str, Any] = dict(one)
            for end in ("source", "destination"):
                # Whether pages are huge is optional, and so need not be there.
                fields[end] = {key: part for key, part in fields[end].items()
                               if key != "huge_page_bytes"}  # fmt: skip
            key = json.dumps({name: fields.get(name) for name in (
                "experiment", "operation", "role", "device", "device_set", "source", "destination",
                "engine", "direction", "bytes", "unit", "ranks", "block_size", "placement",
                "bytes_counted", "in_place", "movement")}, sort_keys=True)  # fmt: skip
            count = sum(1 for known in values if known[0] == key)
            values[key, count] = (one["median"], *sorted(one["samples"]))
        return values

    texts = [Text(one.name, one.content, read) for one in _documents().texts]
    return Reader("series of result documents", texts, "result.json",
                  may_lack=lambda key: True, relabelled=_names_its_devices_otherwise)  # fmt: skip


def _names_its_devices_otherwise(one: Any, other: Any) -> bool:
    """Whether a series is the other one but for the order of its devices, or some that are gone."""
    before, after = json.loads(one[0]), json.loads(other[0])
    kept = set(after.pop("device_set")) <= set(before.pop("device_set"))
    return bool(kept and before == after)


def _reports() -> Reader:
    named = ("environ", "partition", "system", "display_name", "result", "tags", "unique_name",
             "fail_reason", "fail_phase", "outputdir", "stagedir", "scheduler", "job_nodelist",
             "job_exitcode", "job_submit_time", "job_completion_time_unix")  # fmt: skip

    def read(path: Path) -> Mapping[Any, Any]:
        found = run_report.parse_report(path)
        values = dict(leaves(found.session_info.model_dump(exclude_unset=True), ("session_info",)))
        for i, run in enumerate(found.runs):
            for j, case in enumerate(run.testcases):
                place = ("runs", i, "testcases", j)
                own = {name: getattr(case, name) for name in named
                       if name in case.model_fields_set}  # fmt: skip
                values |= dict(leaves(own, place))
                for key, one in (case.perfvalues or {}).items():
                    for number, part in enumerate(one):
                        values[(*place, "perfvalues", key, number)] = None if part == "" else part
        whole = session.read_report(path, path.parent)
        assert whole.date and whole.choice is not None and whole.nodes is not None
        return values

    recorded = [
        SIMULATED / "reports" / "run-0.json",
        H200 / "reports-x2" / "node-5-independent.json",
    ]
    texts = [_recorded(file, read) for file in recorded]
    with tempfile.TemporaryDirectory() as folder:
        builder = SessionBuilder(Path(folder), command=None)
        builder.add(good_case()).add(good_case("p2p") | missed())
        built = builder.write_report().read_text()
    return Reader("ReFrame's run reports", [Text("built", built, read), *texts], "run-0.json",
                  plain_json)  # fmt: skip


def _files_of_json() -> Iterator[Reader]:
    def nodes(path: Path) -> Mapping[Any, Any]:
        return _dumped(requested_nodes.read(path))

    asked = {
        "form": "fabricheck-nodes-1", "partition": None, "chosen": ["-t", "smoke"], "job": "17",
        "started": "2026-01-02T03:04:05+00:00",
        "nodes": {
            "node1": {"results": "node1", "state": "IDLE", "ended": "2026-01-02T04:04:05+00:00",
                      "status": 0},
            "node2": {"results": "node2", "state": "DOWN+DRAIN", "because": "fan 3 is broken",
                      "how_ended": "node2 was DOWN+DRAIN, so nothing was started on it."},
            "node3": {"results": "node3", "state": "IDLE", "ended": None, "status": None},
        },
    }  # fmt: skip
    yield Reader("nodes.json", [Text("a job", json.dumps(asked, indent=1), nodes)], "nodes.json",
                 plain_json)  # fmt: skip

    def checks(path: Path) -> Mapping[Any, Any]:
        every = session_checks.checks_of([path.parent])
        found = {name: one.model_dump(exclude_unset=True) for name, one in every.items()}
        return dict(leaves(found, ("partitions",)))

    its = {
        "form": "fabricheck-checks-1", "written": "2026-01-02T03:04:05+00:00",
        "partitions": {
            "local:host": {
                "checks": {"stream_local": ["E1", "full"], "memcpy_near": ["E2", "smoke"]},
                "lost": {"E5": "no check measures it"}, "ran": ["stream_local"],
            },
        },
    }  # fmt: skip
    yield Reader("checks.json", [Text("a session", json.dumps(its, indent=1), checks)],
                 "checks.json", plain_json, may_lack=lambda key: key == ("written",))  # fmt: skip

    def kept(path: Path) -> Mapping[Any, Any]:
        found = metric_records.read(path.with_name("result.json"), factories.document())
        # Without it, or of another run, it is of an older session and says nothing.
        return dict(
            leaves(
                {name: one.model_dump(exclude_unset=True) for name, one in found.metrics.items()},
                ("metrics",),
            )
        )

    metrics = {
        "form": "fabricheck-metrics-1", "started": factories.document()["started"],
        "metrics": {"copy_worst": {"series": [0], "reduce": "worst"},
                    "copy_median": {"series": [0, 0], "reduce": "median"}},
    }  # fmt: skip
    yield Reader("metrics.json", [Text("a check", json.dumps(metrics, indent=1), kept)],
                 "metrics.json", plain_json)  # fmt: skip

    def software(path: Path) -> Mapping[Any, Any]:
        own = path.parent / "software-session" / spack.FOLDER / spack.FILE
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_bytes(path.read_bytes())
        told = spack.sentences([own.parent.parent], 0.0, 1e12)
        if told and told[0] == f"{own}: this is not a record of a session's software.":
            raise NotFoundError(f"{path}: {told[0]}")
        stand = [("environments", i, "says", j) for i, j in _SAYS]
        return dict(zip(stand, told, strict=False))

    kept_file = next(SIMULATED.rglob("software.json"))
    told = json.loads(kept_file.read_text())
    _SAYS = [(i, j) for i, one in enumerate(told["environments"]) for j in range(len(one["says"]))]
    yield Reader("software.json", [_recorded(kept_file, software)], "software.json", plain_json)

    def rounds(path: Path) -> Mapping[Any, Any]:
        return _dumped(table.load(path.parent))

    yield Reader("rounds.json", [_recorded(H200 / "beside-1" / "rounds.json", rounds)],
                 "rounds.json", plain_json)  # fmt: skip

    def plan(path: Path) -> Mapping[Any, Any]:
        return _dumped(read_model(path, benchmarks.Plan))

    launch = {
        "name": "osu_bw0", "program": "osu_bw", "command": "srun osu_bw D D", "ranks": 2,
        "devices": [0, 1], "sizes": [MIB, 2 * MIB], "batch": 1, "verifies": False,
    }  # fmt: skip
    planned = {"tool": "osu", "buffers": "device", "accelerator": "rocm", "facts": "stream",
               "launches": [launch, launch | {"name": "c", "verifies": True}]}  # fmt: skip
    yield Reader("plans of tools", [Text("OSU", json.dumps(planned, indent=1), plan)], "plan.json",
                 plain_json)  # fmt: skip

    def described(path: Path) -> Mapping[Any, Any]:
        content = inventory.parse(read_text(path), path)
        inventory.reported(content)
        return dict(leaves(content))

    kept = OUTPUTS / "inventory"
    yield Reader("descriptions by inventory",
                 [Text(name, (kept / f"{name}.json").read_text(), described)
                  for name in ("h100-x2",)], "node.json", plain_json)  # fmt: skip

    def locked(path: Path) -> Mapping[Any, Any]:
        found = read_model(path, spack.Lock)
        assert found.root_names
        values: dict[Any, Any] = {("_meta", "lockfile-version"): found.format}
        for key, one in found.concrete_specs.items():
            place = ("concrete_specs", key)
            values[(*place, "name")], values[(*place, "version")] = one.name, one.version
            if one.prefix is not None:
                values[(*place, "external", "path")] = one.prefix
        return values

    texts = [Text(f"format {form}", locks.text(form), locked) for form in spack.FORMATS]
    texts.append(_recorded(ROOT / "spack-env" / "local" / "spack.lock", locked))
    yield Reader("spack.lock", texts, "spack.lock", plain_json)


# YAML.


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in what its caller knows it of."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _files_of_yaml() -> Iterator[Reader]:
    def model(path: Path) -> Mapping[Any, Any]:
        found = load(str(path))
        assert found.link_classes is not None and found.hop_matrix is not None
        return dict(leaves(yaml_files.read(path)))

    for name in ("mi250x", "h200", "mi210"):
        text = (ROOT / "config" / "nodes" / f"{name}.yaml").read_text()
        yield Reader(f"node models: {name}", [Text(name, text, model)], f"{name}.yaml", plain_yaml)

    def overlay(path: Path) -> Mapping[Any, Any]:
        found = read_overlay(path)
        apply_overlay(_mi250x(), found, path)
        return _dumped(found.parts)

    texts = [
        Text(file.name, file.read_text(), overlay)
        for file in sorted((ROOT / "config" / "nodes" / "overlays").glob("*.yaml"))
    ]
    yield Reader("overlays", texts, "overlay.yaml", plain_yaml)

    def reference(path: Path) -> Mapping[Any, Any]:
        found = stated.References(path.parent)
        for check, key, metric, entry in found.all_entries():
            for _ in entries.faults(metric, "GB/s", entries.plain(entry)):
                pass
            told = found.stated_origin(check, key, metric)
            if told is not None and told.records:
                with _naming(path):
                    entries.follow(told, found.data)
        return dict(leaves(yaml_files.read(path)))

    names = ("stream", "topology", "affinity", "managed", "rccl", "memcpy")
    texts = [
        Text(name, (ROOT / "reference_values" / f"{name}.yaml").read_text(), reference)
        for name in names
    ]
    yield Reader("references", texts, "stream.yaml", plain_yaml, names=".yaml")

    def rule(path: Path) -> Mapping[Any, Any]:
        return _dumped(rules._read.__wrapped__(path, 0))

    text = (ROOT / "reference_values" / "rules.yaml").read_text()
    yield Reader("rules of references", [Text("rules", text, rule)], "rules.yaml", plain_yaml)

    def data(path: Path) -> Mapping[Any, Any]:
        found = published.Published(path)
        for name, one in found.records.items():
            assert one.place is not None and found.versions(name) is not None
            assert one.size is None or one.size
        return dict(leaves(yaml_files.read(path)))

    yield Reader("published values", [Text("some records", _records(), data)], "published.yaml",
                 plain_yaml)  # fmt: skip

    def calibration(path: Path) -> Mapping[Any, Any]:
        return _dumped(calibrated.read(path))

    def transfer(path: Path) -> Mapping[Any, Any]:
        return _dumped(calibrated.read_transfer(path))

    whole = (ROOT / "reference_values" / "calibrations" / "h200-x2.yaml").read_text()
    taken = (ROOT / "reference_values" / "transfers" / "h200-x8.yaml").read_text()
    yield Reader("calibration records", [Text("h200:x2", _short_record(whole), calibration)],
                 "record.yaml", plain_yaml)  # fmt: skip
    yield Reader("transfers", [Text("h200:x8", taken, transfer)], "transfer.yaml", plain_yaml)

    def compared(path: Path) -> Mapping[Any, Any]:
        beside = path.with_name("published_values.yaml")
        if not beside.exists():
            beside.symlink_to(ROOT / "reference_values" / "published_values.yaml")
        fidelity_plan.read_plan(path, load("mi250-two-sockets"))
        return dict(leaves(yaml_files.read(path)))

    text = (ROOT / "reference_values" / "fidelity-mi250-two-sockets.yaml").read_text()
    yield Reader("comparisons of simulated nodes", [Text("mi250-two-sockets", text, compared)],
                 "plan.yaml", plain_yaml, names="/comparisons-of-simulated-nodes/")  # fmt: skip


@functools.cache
def _mi250x() -> Any:
    return load("mi250x")


def _records() -> str:
    """Return a few records of the published data set, and its setups."""
    whole = yaml.load((ROOT / "reference_values" / published.FILE).read_bytes(), yaml.CSafeLoader)
    few = {"records": whole["records"][::60], "setups": whole["setups"]}
    return yaml.safe_dump(few, sort_keys=False)


def _short_record(whole: str) -> str:
    """Return a calibration record with a few of its metrics."""
    content = yaml.load(whole, yaml.CSafeLoader)
    checks = list(content["checks"])[:2]
    content["checks"] = {
        name: dict(list(content["checks"][name].items())[:2]) for name in checks
    }  # fmt: skip
    content["unused"] = content["unused"][:2]
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)


# What is neither.


def _others() -> Iterator[Reader]:
    def site(path: Path) -> Mapping[Any, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sites.read(path)
        return {}

    texts = [
        Text(name, (ROOT / "config" / "sites" / f"{name}.py").read_text(), site)
        for name in ("lumi", "local")
    ]
    yield Reader("site files", texts, "site.py", free="")

    def cores(path: Path) -> Mapping[Any, Any]:
        root = path.parent / "machine"
        folder = root / "sys/devices/system/node/node0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpulist").write_bytes(path.read_bytes())
        (folder / "meminfo").write_text("Node 0 MemTotal:       131841212 kB\n")
        found = host.describe_host(root)
        return dict.fromkeys(found["numa_domains"][0]["cores"], True)

    def unpacked(path: Path) -> Mapping[Any, Any]:
        before = set(archive._folders)
        try:
            folder = archive.unpacked.__wrapped__(path)
            return {str(file.relative_to(folder)): file.read_bytes()
                    for file in sorted(folder.rglob("*")) if file.is_file()}  # fmt: skip
        finally:
            for one in set(archive._folders) - before:
                del archive._folders[one]
                one.cleanup()

    yield Reader("archives", [Text("a session", _archive(), unpacked)], "node.tar.gz",
                 encoding="latin-1")  # fmt: skip
    yield Reader("lists of cores", [Text("Linux", "0-15,64-79\n", cores)], names="cpulist",
                 may_lack=lambda key: True, ranges=True)  # fmt: skip


def _archive() -> str:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "first-hour"
        SessionBuilder(top / archive.RESULTS, command=None).add(good_case()).write()
        factories.write(top / archive.RESULTS / "output" / "result.json")
        archive.pack(top, Path(folder) / "made.tar.gz", archive.OF_FIRST_HOUR, top.name)
        return (Path(folder) / "made.tar.gz").read_bytes().decode("latin-1")


@functools.cache
def readers() -> Mapping[str, Reader]:
    """Return all readers by name."""
    found = [
        _osu(), _nccl(), _nvbandwidth(), _babelstream(), _p2p_test(), *_loopbacks(),
        *_transferbench(), _rocm_bandwidth_test(), *_topology(), *_slurm(),
        _documents(), _series(), _reports(), *_files_of_json(), *_files_of_yaml(), *_others(),
    ]  # fmt: skip
    return {one.name: one for one in found}
