"""Result documents of a node's topology, simulated and told by tools, and how recordings end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import topology_texts as texts
from fabricheck.cli import app
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.node import load, node_directory
from fabricheck.node.platform import platform, platform_json
from fabricheck.node.system import system_json
from fabricheck.results import document
from fabricheck.tools.topology import detection, parse_files, record, recording
from fabricheck.tools.topology.host import balancing_setting, describe_host, driver_version

OVERLAYS = node_directory() / "overlays"
NODE = load("mi250x")


def run(*arguments: str):
    return CliRunner().invoke(app, ["topology", "record", *arguments])


def simulated(folder: Path, overlay: str | None = None) -> list[str]:
    """Write the platform of a simulated node; returns the arguments that record it."""
    node = load("mi250x", OVERLAYS / f"{overlay}.yaml" if overlay else None)
    (folder / "node.json").write_text(platform_json(node))
    return ["--simulated", str(folder / "node.json"), "--output", str(folder / "result.json")]


def system(root: Path, domains: dict[int, str], balancing: str | None = "0") -> Path:
    """Build the files of an operating system that a recording reads."""
    for index, cores in domains.items():
        folder = root / f"sys/devices/system/node/node{index}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cores}\n")
        (folder / "meminfo").write_text(f"Node {index} MemTotal:       1024 kB\n")
    (root / "proc/sys/kernel").mkdir(parents=True)
    if balancing is not None:
        (root / "proc/sys/kernel/numa_balancing").write_text(f"{balancing}\n")
    return root


MI250X = {0: "0-15,64-79", 1: "16-31", 2: "32-47", 3: "48-63"}


@pytest.fixture
def outputs(tmp_path):
    """Return files with what the tools of a healthy mi250x say."""

    def write(*printed: str) -> list[Path]:
        paths = [tmp_path / f"tool{number}" for number in range(len(printed))]
        for path, text in zip(paths, printed, strict=True):
            path.write_text(text)
        return paths

    return write


def test_a_healthy_simulated_node_has_no_difference(tmp_path):
    result = run("mi250x", *simulated(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "")
    found = document.load(tmp_path / "result.json")
    assert found["differences"] == [] and found["complete"]
    assert (found["clock"], found["program"]["runtime"]) == ("simulated", "sim")
    assert found["node"] == platform(NODE)["node"]
    assert found["host"]["hostname"] == "mi250x (simulated)"
    assert [device["numa_domain"] for device in found["devices"]] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert found["notes"][0] == (
        "compared with mi250x: devices, links, peak of a link, NUMA domains, NUMA domains and "
        "cores of the host"
    )
    assert "not reported: NUMA balancing" in found["notes"]
    assert not (tmp_path / "result.json.partial").exists()


@pytest.mark.parametrize(
    ("overlay", "count", "first"),
    [
        ("link-0-6-gone", 1, "Pair 0-6: 2 links in mi250x, no direct link in the simulated node "),
        ("numa-map-rotated", 8, "Device 0: NUMA domain 3 in mi250x, 0 in the simulated node "),
        ("cable-map-swapped", 4, "Pair 0-2: 1 link in mi250x, no direct link in the simulated "),
        # Tools tell the number of links; a link's width and a memory's bandwidth are measured.
        ("link-0-1-half-width", 0, None),
        ("domain-2-half-memory", 0, None),
    ],
)
def test_an_overlay_is_found_where_tools_would_tell_it(tmp_path, overlay, count, first):
    result = run("mi250x", *simulated(tmp_path, overlay))
    assert result.exit_code == 0
    found = document.load(tmp_path / "result.json")
    assert found["differences"] == result.stdout.splitlines()
    assert len(found["differences"]) == count and found["outcome"]["status"] == "good"
    assert not first or found["differences"][0].startswith(first)
    assert (
        found["node"]["overlay"]["name"]
        == load("mi250x", OVERLAYS / f"{overlay}.yaml").overlay.name
    )


def test_another_model_is_a_difference(tmp_path):
    assert run("mi250", *simulated(tmp_path)).exit_code == 0
    found = document.load(tmp_path / "result.json")["differences"]
    assert any(sentence.startswith("Pair 0-4: 2 links in mi250, no direct") for sentence in found)


def recorded(tmp_path, outputs, printed, root, model="mi250x"):
    output = tmp_path / "result.json"
    return record(model, "rocm", output, files=outputs(*printed), root=root)


def test_a_node_as_its_model(tmp_path, outputs):
    printed = (texts.shownodesbw(NODE), texts.showtoponuma(NODE), texts.showbus(texts.PCI))
    found = recorded(tmp_path, outputs, printed, system(tmp_path, MI250X))
    assert found["differences"] == []
    assert (found["clock"], found["node"]) == ("measured", None)
    assert found["notes"][0].endswith("NUMA domains and cores of the host, NUMA balancing")
    assert [device["pci_address"] for device in found["devices"]] == list(texts.PCI)
    assert {device["memory_bytes"] for device in found["devices"]} == {None}
    assert found["host"]["numa_domains"][3] == {
        "index": 3, "cores": list(range(48, 64)), "memory_bytes": 1 << 20,
    }  # fmt: skip


def test_what_the_operating_system_says_is_compared_too(tmp_path, outputs):
    root = system(tmp_path, {0: "0-15", 1: "16-30", 3: "48-63", 5: "64-79", 6: ""}, "1")
    printed = (texts.shownodesbw(NODE), texts.showtoponuma(NODE))
    found = recorded(tmp_path, outputs, printed, root)
    node = f"on node {found['host']['hostname']}"
    assert found["differences"] == [
        f"NUMA domain 1: the cores 16-31 in mi250x, 16-30 {node}.",
        f"NUMA domain 2: the cores 32-47 in mi250x, no such domain {node}.",
        f"NUMA domain 5: not in mi250x, the cores 64-79 {node}.",
    ]
    # It is a setting and no matter of the hardware, of which something is wrong here.
    assert found["notes"][-1].startswith(f"{node[3:].capitalize()} has NUMA balancing on (")


def test_numa_balancing_alone_is_a_setting(tmp_path, outputs):
    printed = (texts.shownodesbw(NODE), texts.showtoponuma(NODE))
    found = recorded(tmp_path, outputs, printed, system(tmp_path, MI250X, "1"))
    node = found["host"]["hostname"]
    assert found["outcome"] == {
        "exit_code": 8,
        "status": "setting",
        "message": f"Node {node} has NUMA balancing on (/proc/sys/kernel/numa_balancing is 1), "
        "which moves pages while devices use them: turn it off (sysctl kernel.numa_balancing=0).",
    }
    assert found["differences"] is None and not found["complete"]


def first_devices(count):
    seen = texts.gpus(NODE)[:count]
    table = texts.rocm_table("Bandwidth", seen, lambda a, b: texts.bandwidth_cell(NODE, a, b))
    return (f"{table}\nFormat: min-max; Units: mps\n",)


@pytest.mark.parametrize(
    ("name", "value"),
    [("SLURM_STEP_GPUS", "4"), ("SLURM_JOB_GPUS", "4"), ("SLURM_GPUS_PER_NODE", "mi250x:1"),
     ("NVIDIA_VISIBLE_DEVICES", "4"), ("ROCR_VISIBLE_DEVICES", "4")],
)  # fmt: skip
def test_each_variable_that_grants_devices_explains_those_that_are_seen(
    tmp_path, outputs, monkeypatch, name, value
):
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    monkeypatch.setenv(name, value)
    found = recorded(tmp_path, outputs, first_devices(1), tmp_path / "nowhere")
    assert found["outcome"]["status"] == "setting"
    assert found["outcome"]["message"].startswith(f"{name} is {value} on node ")


@pytest.mark.parametrize(
    ("packages", "parts", "mode", "beside"),
    [(8, 8, "CPX", False), (1, 8, "CPX", True), (4, 2, "DPX", True), (6, 8, "CPX", True)],
)
def test_parts_of_devices_are_told_by_their_addresses(
    tmp_path, outputs, packages, parts, mode, beside
):
    """Also where they are as many as whole devices would be."""
    addresses = [f"0000:{64 + one:02x}:00.{part}" for one in range(packages)
                 for part in range(parts)]  # fmt: skip
    found = recorded(tmp_path, outputs, (texts.showbus(addresses),), tmp_path / "nowhere", "mi300x")
    assert found["outcome"]["status"] == "setting"
    said = found["outcome"]["message"]
    assert f"in mode {mode}, as {packages * parts} devices: set SPX" in said
    assert (f"It shows {packages} GPUs; mi300x has 8." in said) == beside


def test_devices_that_the_scheduler_did_not_grant_are_a_setting(tmp_path, outputs, monkeypatch):
    count = 4
    printed = first_devices(count)
    for granted in ("", "2", "8"):
        monkeypatch.setenv("SLURM_GPUS_ON_NODE", granted)
        found = recorded(tmp_path, outputs, printed, tmp_path / "nowhere")
        assert found["outcome"]["status"] == "good", "the hardware lacks them"
        assert len(found["differences"]) == 1
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", str(count))
    found = recorded(tmp_path, outputs, printed, tmp_path / "nowhere")
    assert found["outcome"]["message"].startswith(f"SLURM_GPUS_ON_NODE is {count} on node ")
    assert found["environment"]["SLURM_GPUS_ON_NODE"] == str(count)


def test_a_driver_that_tells_no_links_is_named(tmp_path, outputs):
    silent = re.sub(r"\d+-\d+", "0", texts.shownodesbw(NODE))
    root = system(tmp_path, MI250X)
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.2.4\n")
    found = recorded(tmp_path, outputs, (silent, texts.showtoponuma(NODE)), root)
    assert found["outcome"]["status"] == "tool" and found["differences"] is None
    assert "the driver reports no bandwidth of links: " in found["outcome"]["message"]
    assert "tool0 prints 0 for every pair; amdgpu 6.2.4), so they" in found["outcome"]["message"]


def test_domains_that_no_tool_knows_are_not_told(tmp_path, outputs):
    unknown = re.sub(r"Node: \d", "Node: 4294967295", texts.showtoponuma(NODE))
    found = recorded(
        tmp_path, outputs, (texts.shownodesbw(NODE), unknown), system(tmp_path, MI250X)
    )
    assert found["outcome"]["status"] == "tool"
    assert found["outcome"]["message"].startswith("The NUMA domains of node ")


def test_a_system_that_tells_nothing_is_noted(tmp_path, outputs):
    printed = (texts.shownodesbw(NODE), texts.showtoponuma(NODE))
    found = recorded(tmp_path, outputs, printed, tmp_path / "nowhere")
    assert found["differences"] == []
    assert "not reported: NUMA balancing" in found["notes"]
    assert "not reported: NUMA domains and cores of the host" in found["notes"]
    assert found["host"]["cpu_model"] == "unknown" and found["versions"]["driver"] == "unknown"


def test_a_lost_device_is_one_difference(tmp_path, outputs):
    printed = (texts.shownodesbw(load("mi250x")), texts.showtoponuma(NODE))
    found = recorded(tmp_path, outputs, printed, tmp_path / "nowhere", "a100-booster")
    assert [sentence.split(" in ")[0] for sentence in found["differences"]] == [
        "The node has 4 nvidia devices"
    ]


def test_links_that_nobody_tells_are_no_silent_pass(tmp_path, outputs):
    (path,) = outputs(texts.showtopo(NODE))
    for name, cores in (("as-the-model", "48-63"), ("different", "48-62")):
        root = system(tmp_path / name, {**MI250X, 3: cores})
        found = record("mi250x", "rocm", tmp_path / "result.json", files=[path], root=root)
        node = found["host"]["hostname"]
        said = f"The links of node {node} are not reported in {path}, so they cannot be compared "
        if name == "as-the-model":
            assert (found["outcome"]["exit_code"], found["outcome"]["status"]) == (10, "tool")
            assert found["outcome"]["message"] == f"{said}with mi250x."
            assert found["differences"] is None and not found["complete"]
        else:
            # What differs counts, whatever is missing beside it.
            (difference,) = found["differences"]
            assert (
                difference.startswith("NUMA domain 3: ") and f"{said}with mi250x." in found["notes"]
            )


def test_types_tell_enough_where_a_pair_has_one_link(tmp_path, outputs):
    node = load("mi300x")
    addresses = [f"0000:{index:02x}:00.0" for index in range(8)]
    silent = re.sub(r"\b\d+-\d+\b", "0-0", texts.amd_smi(node, addresses))
    numa = texts.showtoponuma(node)
    found = recorded(tmp_path, outputs, (silent, numa), tmp_path / "nowhere", "mi300x")
    assert (found["outcome"]["message"], found["differences"]) == (None, [])
    rows = silent[silent.index("LINK TYPE") :].splitlines()[2:10]
    changed = silent
    for row, other in ((2, 5), (5, 2)):
        cells = re.split(r"( +)", rows[row])
        cells[2 * (other + 1)] = "PCIE"
        changed = changed.replace(rows[row], "".join(cells))
    found = recorded(tmp_path, outputs, (changed, numa), tmp_path / "nowhere", "mi300x")
    (difference,) = found["differences"]
    assert difference.startswith("Pair 2-5: 1 link in mi300x, a connection of type PCIE in ")


NVML = "echo 'Failed to initialize NVML: Driver/library version mismatch'"


@pytest.mark.parametrize(
    ("tool", "script", "status", "said"),
    [
        ("nvidia-smi", f"{NVML}; echo 'NVML library version: 550.54'; exit 18", "tool",
         "ended with exit code 18: Failed to initialize NVML: Driver/library version mismatch."),
        # It ends with 0 and explains itself on standard error.
        ("rocm-smi", "echo 'cat: initstate: No such file or directory' >&2; "
         "echo 'ERROR:root:Driver not initialized (amdgpu not found in modules)' >&2",
         "tool", "printed no table: ERROR:root:Driver not initialized (amdgpu not found in "),
        ("rocm-smi", "echo '/usr/bin/env: python3: No such file or directory' >&2; exit 127",
         "tool", "ended with exit code 127: /usr/bin/env: python3: No such file or directory."),
        ("amd-smi", "printf 'Traceback (most recent call last):\\n  raise Error\\n"
         "ImportError: no library\\nNote: install it\\n' >&2; exit 1",
         "tool", "ended with exit code 1: ImportError: no library."),
        ("amd-smi", "echo something new", "tool", "it contains no topology table of rocm-smi, "),
        ("nvidia-smi", "echo 'Unable to determine the device handle for GPU0000:03:00.0: "
         "GPU is lost.  Reboot the system'; exit 15", "device-error", "GPU is lost"),
    ],
)  # fmt: skip
def test_a_tool_that_does_not_work_accuses_no_hardware(
    tmp_path, monkeypatch, tool, script, status, said
):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / tool).write_text(f"#!/bin/sh\n{script}\n")
    (folder / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = record("mi250x", "rocm", tmp_path / "result.json", root=tmp_path / "nowhere")
    assert (found["outcome"]["status"], found["devices"]) == (status, [])
    assert said in found["outcome"]["message"] and f"{tool} " in found["outcome"]["message"]


def test_the_decisive_call_that_failed_is_the_reason(tmp_path, monkeypatch):
    """nvidia-smi cuts the rows of a wide table; the list of addresses beside it is no table."""
    node = load("h200")
    wide = re.sub(r"PXB\t(\d)", r"PX\1", texts.topo_m(node, nics=2))
    addresses = "".join(f"{index}, 00000000:{index:02x}:00.0\n" for index in range(8))
    for name, text in (("wide", wide), ("addresses", addresses)):
        (tmp_path / name).write_text(text)
    script = "case $1 in topo) printed=wide;; *) printed=addresses;; esac"
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n/bin/cat {tmp_path}/$printed\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = record("h200", "cuda", tmp_path / "result.json", root=tmp_path / "nowhere")
    assert found["outcome"]["status"] == "tool"
    assert found["outcome"]["message"].startswith("nvidia-smi topo -m, line ")
    assert "is not a kind of connection" in found["outcome"]["message"]


def test_this_machine_describes_itself():
    host = describe_host()
    assert host["hostname"] and host["cores_allowed"] and host["page_size_bytes"] >= 4096


def test_a_described_machine(tmp_path):
    root = system(tmp_path, {0: "0-1"}, None)
    pages = root / "sys/kernel/mm/transparent_hugepage"
    pages.mkdir(parents=True)
    (pages / "enabled").write_text("always [madvise] never\n")
    (root / "proc/cpuinfo").write_text("processor : 0\nmodel name\t: A Processor\n")
    for number, (level, size) in enumerate((("1", "32K"), ("3", "4096K"), ("2", "512K"))):
        cache = root / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        cache.mkdir(parents=True)
        (cache / "level").write_text(level)
        (cache / "size").write_text(size)
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.7.0\n")
    host = describe_host(root)
    assert (host["cpu_model"], host["transparent_hugepage"]) == ("A Processor", "madvise")
    assert (host["last_level_cache_bytes"], host["numa_balancing"]) == (4 << 20, None)
    assert driver_version(root) == "amdgpu 6.7.0"


@pytest.mark.parametrize("cores", ["0-15,0-15", "all", "0-4000000000"])
def test_cores_that_cannot_be_read_are_a_sentence(tmp_path, cores):
    root = system(tmp_path, MI250X)
    (root / "sys/devices/system/node/node0/cpulist").write_text(cores)
    with pytest.raises(InvalidInputError, match="node0/cpulist: "):
        describe_host(root)


def test_no_balancing_is_no_setting_to_speak_of():
    host = describe_host(Path("/nowhere")) | {"numa_balancing": 0}
    assert balancing_setting(host) is None
    assert "numa_balancing is 2" in (balancing_setting(host | {"numa_balancing": 2}) or "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "r"], "--runtime must be rocm or cuda, or give a simulated node."),
        (
            ["--output", "r", "--runtime", "sim"],
            "--runtime sim and --simulated require each other.",
        ),
        (["--output", "r", "--simulated", "n", "--runtime", "rocm"], "--runtime sim and"),
        (["--output", "r", "--simulated", "n", "--from", "f"], "A simulated node and"),
    ],
)
def test_bad_usage(arguments, said):
    result = run("mi250x", *arguments)
    assert result.exit_code == 2 and result.stderr.startswith(f"fabricheck: {said}")


def test_a_failed_run_leaves_a_document(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    output = tmp_path / "result.json"
    result = run("mi250x", "--runtime", "rocm", "--output", str(output))
    said = "This machine has none of the tools rocm-smi, amd-smi, nvidia-smi."
    assert result.exit_code == 10 and result.stderr == f"fabricheck: {said}\n"
    found = document.load(output)
    assert found["outcome"] == {"exit_code": 10, "status": "tool", "message": said}
    assert found["differences"] is None and found["program"]["commit"] == "unknown"
    assert run("nothing", "--runtime", "rocm", "--output", str(output)).exit_code == 3


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[]", 4, "this is not the platform of a simulated node."),
        ('{"node": {"name": "mi250x"}}', 4, "this is not the platform of a simulated node."),
        ("{", 4, "this is not the platform of a simulated node."),
    ],
)
def test_no_platform(tmp_path, text, code, said):
    arguments = simulated(tmp_path)
    path = tmp_path / "node.json"
    path.write_text(text)
    result = run("mi250x", *arguments)
    assert result.exit_code == code and result.stderr == f"fabricheck: {path}: {said}\n"
    found = document.load(tmp_path / "result.json")
    assert found["host"]["hostname"] == "unknown (simulated)" and found["node"] is None


def test_a_system_of_several_nodes_is_no_node(tmp_path):
    arguments = simulated(tmp_path)
    (tmp_path / "node.json").write_text(system_json(load("mi250x"), 3))
    result = run("mi250x", *arguments)
    assert result.exit_code == 4
    assert "this is a system of 3 nodes, and one node is needed" in result.stderr


def test_a_platform_of_an_older_model(tmp_path):
    arguments = simulated(tmp_path)
    path = tmp_path / "node.json"
    content = json.loads(path.read_text())
    content["devices"][3]["domain"] = 0
    path.write_text(json.dumps(content))
    result = run("mi250x", *arguments)
    assert result.exit_code == 4
    assert "this is not the platform of the present node model mi250x" in result.stderr
    path.unlink()
    gone = run("mi250x", *arguments)
    assert (gone.exit_code, gone.stderr) == (3, f"fabricheck: There is no file {path}.\n")
    path.mkdir()
    assert "cannot be read (it is not a regular file)" in run("mi250x", *arguments).stderr


def test_tools_that_hang_end_at_the_time_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "rocm-smi").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    (tmp_path / "rocm-smi").chmod(0o755)
    output = tmp_path / "result.json"
    result = run("mi250x", "--runtime", "rocm", "--output", str(output), "--time-limit", "0.1")
    assert result.exit_code == 6
    assert result.stderr == "fabricheck: The node did not answer within the time limit of 0.1 s.\n"
    assert document.load(output)["outcome"]["status"] == "time-limit"


def test_calls_that_failed_are_noted(tmp_path, outputs, monkeypatch):
    files = outputs(texts.shownodesbw(NODE), texts.showtoponuma(NODE))
    found = detection.Detection(parse_files(files), failed=("'amd-smi topology' failed.",))
    monkeypatch.setattr(recording, "detect", lambda limit_s: found)
    said = record("mi250x", "rocm", tmp_path / "result.json", root=tmp_path)
    assert "not used: 'amd-smi topology' failed." in said["notes"]


def test_a_document_that_can_not_be_written(tmp_path):
    with pytest.raises(NotFoundError, match=r"result\.json cannot be written"):
        record("mi250x", "rocm", tmp_path / "no" / "result.json", files=[tmp_path])


@pytest.mark.parametrize(("told", "said"), [("node3", "node3"), ("", None), (None, None)])
def test_the_scheduler_s_name_of_the_node_is_recorded(tmp_path, monkeypatch, told, said):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    if told is not None:
        monkeypatch.setenv("SLURMD_NODENAME", told)
    assert run("mi250x", *simulated(tmp_path)).exit_code == 0
    host = document.load(tmp_path / "result.json")["host"]
    assert (host["hostname"], host["scheduler_node"]) == ("mi250x (simulated)", said)
    assert describe_host()["scheduler_node"] == said
