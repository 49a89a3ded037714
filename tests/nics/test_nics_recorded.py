"""Result documents of a node's NICs, the command for prologs, and what keeps messages from NICs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import loopback_texts as texts
from fabricheck.cli import nics
from fabricheck.core.errors import UsageError
from fabricheck.node import load
from fabricheck.results import document
from fabricheck.tools import nic_comparison
from fabricheck.tools.nic_comparison import libraries
from fabricheck.tools.nic_loopback import loopbacks
from fabricheck.tools.nic_recording import record
from fabricheck.tools.nics import read_nics
from fabricheck.tools.runner import ProgramFailed
from factories import difference_sentences
from nic_trees import frontier, leonardo, nic, put, remove, rename


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """Let Slurm name the node, and no tool of this machine be found."""
    monkeypatch.setenv("SLURMD_NODENAME", "nid001005")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Return what writes a stand-in for a tool into the PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def write(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


def recorded(root: Path, model="mi250x", fabric="slingshot-11", **options):
    output = root / "result.json"
    return record(model, "rocm", output, fabric=fabric, root=root, interval_s=0, **options)


def check(command, root: Path, monkeypatch, *arguments: str):
    monkeypatch.setattr(nics, "SYSTEM", root)
    return command("network", "nics", *arguments, code=None)


def test_a_healthy_node(tmp_path):
    found = recorded(frontier(tmp_path))
    assert found == document.load(tmp_path / "result.json")
    assert (difference_sentences(found), found["outcome"]["status"]) == ([], "good")
    assert (found["program"]["name"], found["clock"]) == ("nics", "measured")
    assert found["options"]["digest"] == load("mi250x").sha256
    first, *_ = found["nics"]
    assert (first["node"], first["name"], first["numa_domain"]) == ("nid001005", "cxi0", 3)
    assert first["errors"]["rh:nacks"] == [11, 11]
    assert first["pcie"] == {
        "gt_per_s": 25.0, "width": 16, "gt_per_s_max": 16.0, "width_max": 16,
    }  # fmt: skip
    assert "loopback_gbs" not in first
    assert found["notes"] == [
        "no version of libfabric: fi_info is not in the PATH",
        "no version of ucx: ucx_info is not in the PATH",
    ]


def test_differences_are_a_result(tmp_path, wording):
    root = frontier(tmp_path)
    put(nic(root, "cxi2") / "properties/speed", 100000)
    put(root / "sys/class/net/hsn1/address", "02:00:00:00:38:05")
    found = recorded(root)
    assert found["complete"] and found["outcome"]["exit_code"] == 0
    assert found["nics"][2]["gbit_per_s"] == 100
    wording(difference_sentences(found))


def test_errors_that_are_counted_during_the_run(tmp_path, tools, wording):
    root = frontier(tmp_path)
    count = nic(root, "cxi0") / "properties/pcie_uncorr_err"
    tools("fi_info", f'echo 4 > {count}; echo "provider: cxi"; echo "libfabric: 1.22.0"')
    found = recorded(root)
    wording(difference_sentences(found))
    assert found["nics"][0]["errors"]["device/properties/pcie_uncorr_err"] == [0, 4]
    assert found["versions"]["libfabric"] == "1.22.0"


def test_a_provider_that_is_missing_is_a_setting(tmp_path, tools, wording):
    tools(
        "fi_info",
        '[ "$1" = --version ] && echo "libfabric: 1.15.2.0" && exit 0\n'
        'echo "fi_getinfo: -61 (No data available)" >&2; exit 61',
    )
    found = recorded(frontier(tmp_path))
    setting = found["outcome"]
    assert (setting["exit_code"], setting["status"]) == (8, "setting")
    wording(setting["message"])
    assert difference_sentences(found) is None and not found["complete"]
    # Beside a difference of the hardware it is noted.
    put(nic(tmp_path, "cxi2") / "properties/link", 0)
    found = recorded(tmp_path)
    wording(difference_sentences(found))
    assert found["notes"][-1] == setting["message"]


def test_a_setting_is_no_difference_of_a_nic(command, tmp_path, tools, monkeypatch):
    """A health check drains by 8: a wrong libfabric must not drain every node."""
    tools("fi_info", '[ "$1" = --version ] && echo "libfabric: 1.15.2.0" && exit 0\nexit 61')
    root = frontier(tmp_path)
    arguments = ("mi250x", "--fabric", "slingshot-11")
    assert check(command, root, monkeypatch, *arguments).exit_code == 13
    put(nic(root, "cxi2") / "properties/link", 0)
    assert check(command, root, monkeypatch, *arguments).exit_code == 8


def test_a_device_file_that_is_missing_is_a_setting(tmp_path, wording):
    root = leonardo(tmp_path)
    (root / "dev/infiniband/uverbs1").unlink()
    found = recorded(root, "a100-booster", "infiniband")
    wording(found["outcome"]["message"])
    (nic(root, "mlx5_2") / "infiniband_verbs/uverbs2").rmdir()
    (told,) = libraries(
        "nid001005", read_nics("nid001005", None, root)[2:3], "verbs", root
    ).settings
    wording(told)


def test_a_speed_that_cannot_be_read_is_no_pass(tmp_path):
    root = frontier(tmp_path)
    put(nic(root, "cxi2") / "properties/speed", "fast")
    put(root / "sys/class/net/hsn2/speed", "fast")
    found = recorded(root)
    assert (found["outcome"]["exit_code"], difference_sentences(found)) == (10, None)
    assert found["outcome"]["message"].startswith("The speed of nid001005:cxi2 cannot be read (")
    assert [one["name"] for one in found["nics"]] == ["cxi0", "cxi1", "cxi2", "cxi3"]


def test_what_cannot_be_compared(tmp_path, wording):
    wording(recorded(tmp_path, "mi210")["outcome"]["message"])
    assert recorded(tmp_path)["outcome"]["exit_code"] == 3
    assert recorded(frontier(tmp_path), fabric="none")["outcome"]["exit_code"] == 3


def test_versions_of_libraries(tmp_path, tools, monkeypatch):
    tools("fi_info", 'echo "fi_info: 1.22.0"; echo "libfabric: 1.22.0"; echo "libfabric api: 2.0"')
    tools("ucx_info", 'echo "# Library version: 1.17.0"')
    library = tmp_path / "usr/lib64/libibverbs.so.1.14.50.0"
    put(library, "")
    library.with_name("libibverbs.so.1").symlink_to(library.name)
    found = libraries("n", (), None, tmp_path)
    assert found.versions == {"libfabric": "1.22.0", "ucx": "1.17.0", "rdma_core": "50.0"}
    assert (found.settings, found.notes) == ((), ())
    tools("ucx_info", 'echo "# UCT version=1.9.0 revision 1d0a420"')
    assert libraries("n", (), None, tmp_path).versions["ucx"] == "1.9.0"
    monkeypatch.setattr(nic_comparison, "LIMIT_S", 0.2)
    tools("ucx_info", "sleep 60")
    assert libraries("n", (), None, tmp_path).notes == (
        "no version of ucx: ucx_info did not answer within 0.2 s",
    )


def test_the_check_for_people_and_prologs(command, tmp_path, monkeypatch, wording):
    root = frontier(tmp_path)
    fabric = ("--fabric", "slingshot-11")
    good = check(command, root, monkeypatch, "mi250x", *fabric)
    assert good.exit_code == 0
    wording(good.stdout)
    put(nic(root, "cxi2") / "properties/speed", 100000)
    (root / "dev/cxi1").unlink()
    bad = check(command, root, monkeypatch, "mi250x", *fabric)
    assert bad.exit_code == 8
    wording(bad.stdout.splitlines())
    told = check(command, root, monkeypatch, "mi250x", *fabric, "--json")
    assert told.exit_code == 8
    content = json.loads(told.stdout)
    assert content["differences"] == bad.stdout.splitlines()[:1]
    assert content["settings"] == bad.stdout.splitlines()[1:]
    assert content["nics"][2]["gbit_per_s"] == 100.0


def test_other_names_are_no_difference_of_the_command_and_of_the_check(
    command, tmp_path, monkeypatch, wording
):
    root = leonardo(tmp_path)
    rename(root, mlx5_0="ibp26s0", mlx5_1="ibp82s0", mlx5_2="ibp139s0", mlx5_3="ibp197s0")
    arguments = ("a100-booster", "--fabric", "infiniband")
    ended = check(command, root, monkeypatch, *arguments)
    assert ended.exit_code == 0
    wording(ended.stdout)
    _, note = ended.stdout.splitlines()
    found = recorded(root, "a100-booster", "infiniband")
    assert (difference_sentences(found), found["outcome"]["status"]) == ([], "good")
    assert note == f"Note: {found['notes'][0]}."
    for name in ("ibp26s0", "ibp82s0"):
        put(root / "sys/class/infiniband" / name / "ports/1/link_layer", "Ethernet")
    ended = check(command, root, monkeypatch, *arguments)
    assert ended.exit_code == 13
    found = recorded(root, "a100-booster", "infiniband")
    assert (found["outcome"]["status"], difference_sentences(found)) == ("setting", None)
    wording(ended.stdout)
    *settings, _ = ended.stdout.splitlines()
    assert found["outcome"]["message"] == " ".join(settings)
    remove(root, "ibp197s0")
    ended = check(command, root, monkeypatch, *arguments)
    assert ended.exit_code == 8
    assert (
        difference_sentences(recorded(root, "a100-booster", "infiniband"))
        == (ended.stdout.splitlines()[:1])
    )


def test_the_other_ends_of_the_check(command, tmp_path, monkeypatch):
    command("network", "nics", "mi210", code=3)
    root = frontier(tmp_path)
    put(nic(root, "cxi0") / "properties/link", "?")
    unread = check(command, root, monkeypatch, "mi250x")
    assert unread.exit_code == 4
    assert unread.stdout.startswith("The state of nid001005:cxi0 cannot be read (")


def test_a_whole_check_is_quick_and_needs_no_reframe(tmp_path, wording):
    """The command as a prolog starts it: an empty environment, and no ReFrame."""
    code = (
        "import sys; from pathlib import Path; from fabricheck.cli import app, nics; "
        f"nics.SYSTEM = Path({str(frontier(tmp_path))!r}); "
        "sys.argv = ['fabricheck', 'network', 'nics', 'mi250x', '--fabric', 'slingshot-11']\n"
        "try: app()\n"
        "finally: print([one for one in ('reframe', 'jinja2', 'polars') if one in sys.modules])"
    )
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "SLURMD_NODENAME": "nid001005"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    healthy, imported = done.stdout.splitlines()
    assert imported == "[]"
    wording(healthy)


def test_a_loopback_of_each_nic(tmp_path, tools, wording):
    folder = tmp_path / "printed"
    folder.mkdir()
    for name in ("cxi0", "cxi1", "cxi2", "cxi3"):
        (folder / name).write_text(texts.cxi_loopback(name))
    tools("cxi_gpu_loopback_bw", f'cat "{folder}/$2"')
    found = recorded(frontier(tmp_path), tool="cxi_gpu_loopback_bw")
    assert [one["loopback_gbs"] for one in found["nics"]] == [
        184.63 / 8, 182.44 / 8, 185.33 / 8, 184.63 / 8,
    ]  # fmt: skip
    assert found["notes"][-1] == "the loopback compares no data"
    tools("cxi_gpu_loopback_bw", 'echo "Failed to allocate LNI: No space left" >&2; exit 1')
    found = recorded(tmp_path, tool="cxi_gpu_loopback_bw")
    assert (found["outcome"]["exit_code"], difference_sentences(found)) == (10, None)
    wording(found["outcome"]["message"])


@pytest.mark.parametrize(
    "line",
    [
        "Failed to allocate LNI: Key has been revoked",
        "Failed to allocate LNI: Required key not available",
        "Failed to allocate LNI: Operation not permitted",
        "Failed to get service 1: Invalid argument",
        "Failed to get default service 1: No such file or directory",
        "VNI 0 is not a valid VNI.",
        "Failed to allocate Domain: Invalid argument",
        "Failed to open CXI device: Permission denied",
        "NET/OFI Couldn't open domain. RC: -1, ERROR: Operation not permitted",
        "OFI domain open failed: Operation not permitted",
        "OFI domain creation failed (ofi_init.c:1:Permission denied)",
        "libfabric:1:2:cxi:domain:cxip_gen_auth_key():1<warn> node1: cxip_gen_auth_key failed: -38",
    ],
)
def test_a_service_that_does_not_let_a_loopback_use_the_nic_is_a_setting(
    tmp_path, tools, line, wording
):
    printed = texts.cxi_loopback("cxi0").split("Hugepages")[0]
    (tmp_path / "head").write_text(printed)
    tools("cxi_gpu_loopback_bw", f'cat "{tmp_path}/head"; echo "{line}" >&2; exit 1')
    found = recorded(frontier(tmp_path / "node"), tool="cxi_gpu_loopback_bw")
    assert (found["outcome"]["status"], difference_sentences(found)) == ("setting", None)
    wording(found["outcome"]["message"])


@pytest.mark.parametrize(
    "line",
    [
        "Failed to open CXI device: No such device",
        "NET/OFI Couldn't open domain. RC: -12, ERROR: Cannot allocate memory",
        "Failed to allocate LNI: Input/output error",
        "Failed to map CXI buffer: Cannot allocate memory",
    ],
)
def test_other_errors_of_a_loopback_are_those_of_a_tool(tmp_path, tools, line):
    tools("cxi_gpu_loopback_bw", f'echo "{line}" >&2; exit 1')
    outcome = recorded(frontier(tmp_path), tool="cxi_gpu_loopback_bw")["outcome"]
    assert outcome["status"] == "tool" and line in outcome["message"]


def test_each_nic_is_used_by_the_service_that_slurm_made_on_it(tmp_path, tools, monkeypatch):
    """The default service is closed on many sites; those of a step differ between NICs."""
    for name in ("cxi0", "cxi1", "cxi2", "cxi3"):
        (tmp_path / name).write_text(texts.cxi_loopback(name))
    revoked = "echo 'Failed to allocate LNI: Key has been revoked'; exit 1"
    tools(
        "cxi_gpu_loopback_bw",
        rf'case "$*" in *cxi3*--svc-id\ 5|*cxi[012]*--svc-id\ 7) cat "{tmp_path}/$2";; '
        f"*) {revoked};; esac",
    )
    root = frontier(tmp_path / "node")
    assert recorded(root, tool="cxi_gpu_loopback_bw")["outcome"]["status"] == "setting"
    monkeypatch.setenv("SLINGSHOT_DEVICES", "cxi3,cxi0,cxi1,cxi2")
    monkeypatch.setenv("SLINGSHOT_SVC_IDS", "5,7,7,7")
    found = recorded(root, tool="cxi_gpu_loopback_bw")
    assert found["outcome"]["message"] is None
    assert None not in [one["loopback_gbs"] for one in found["nics"]]


def test_a_loopback_that_the_node_lacks(tmp_path, tools, wording):
    outcome = recorded(frontier(tmp_path), tool="cxi_gpu_loopback_bw")["outcome"]
    assert outcome["exit_code"] == 3
    wording(outcome["message"])


def test_a_loopback_of_perftest_is_a_server_and_a_client(tmp_path, tools):
    def loopback(tool: str) -> dict[str, float]:
        return loopbacks(tool, nics[:1], time.monotonic() + 30)

    whole = tmp_path / "whole"
    whole.write_text(texts.ib_write_bw(size=1 << 20))
    tools("ib_write_bw", f'for last; do :; done; [ "$last" = localhost ] && cat {whole} || sleep 1')
    nics = read_nics("nid001005", None, leonardo(tmp_path))
    assert loopback("ib_write_bw") == {"mlx5_0": 92.62}
    tools("ib_write_bw", 'echo "Unable to init the socket connection"; exit 1')
    with pytest.raises(ProgramFailed, match="ib_write_bw of mlx5_0: it ended with exit code 1"):
        loopback("ib_write_bw")
    tools("cxi_gpu_loopback_bw", "exit 1")
    tools("ping", "exit 1")
    with pytest.raises(UsageError, match="measures NICs of cxi; mlx5_0 is one of infiniband"):
        loopback("cxi_gpu_loopback_bw")
    with pytest.raises(UsageError, match="There is no loopback ping; known are cxi_gpu_loopback"):
        loopback(str(tmp_path / "tools/ping"))
