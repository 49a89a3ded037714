"""The checks of NICs: their metrics, and a session on a machine that has none of the model's."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_ins import findings_figure, script

import factories
import loopback_texts as texts
from fabricheck.node import load
from fabricheck.results.document import load as load_document
from fabricheck.rfm.findings import NicCheck, NicLoopbackCheck
from fabricheck.rfm.metrics import MetricError
from fabricheck.site import clusters

HERE = Path(__file__).parent


def reached(**values):
    """Build a document in which NICs reached some bandwidths, and return its figure."""
    nics = [{"node": "node1", "name": name, "loopback_gbs": one} for name, one in values.items()]
    check = SimpleNamespace(required_node=load("mi250x"))
    document = factories.document(series=[], nics=nics)
    return NicLoopbackCheck.figure(check, document, NicLoopbackCheck.metrics[0])


def test_the_worst_nic_decides():
    figure = reached(cxi0=23.1, cxi1=22.8, cxi2=23.2, cxi3=23.3, cxi9=1.0)
    assert (figure.value, figure.compared, figure.series) == (22.8, "22.8 GB/s at cxi1", ())


def test_the_worst_nic_decides_by_its_present_name():
    figure = reached(hsn0=23.1, hsn1=22.8, hsn2=23.2, hsn3=23.3)
    assert (figure.value, figure.compared) == (22.8, "22.8 GB/s at hsn1")


def test_every_nic_has_a_value_that_is_possible():
    with pytest.raises(MetricError, match=r"loopback_worst: node1:cxi3 has no value\."):
        reached(cxi0=23.1, cxi1=22.8, cxi2=23.2)
    with pytest.raises(MetricError, match=r"node1:cxi1 reported 25.1 GB/s, above the physical"):
        reached(cxi0=23.1, cxi1=25.1, cxi2=23.2, cxi3=23.3)


def test_differences_name_node_and_nic_already():
    document = factories.document(series=[], differences=["node1:cxi2 is down."])
    assert findings_figure(NicCheck, document).value == 1
    assert list(NicCheck.findings(SimpleNamespace(), document)) == ["node1:cxi2 is down."]
    with pytest.raises(MetricError, match="node node1 was not compared with a node model"):
        findings_figure(NicCheck, factories.document())


def test_inside_an_allocation_the_node_is_asked_for_its_loopback(monkeypatch):
    """The PATH of this process may be that of a login node, where salloc was typed."""
    monkeypatch.delenv("FABRICHECK_LOOPBACK", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert "loopback" not in clusters.programs("cuda", "leonardo")["features"]
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    environment = clusters.programs("cuda", "leonardo")
    assert "loopback" in environment["features"] and "loopback" not in environment["extras"]
    monkeypatch.setenv("FABRICHECK_LOOPBACK", "/opt/hpe/cxi_gpu_loopback_bw")
    monkeypatch.delenv("SLURM_JOB_ID")
    environment = clusters.programs("rocm", "lumi")
    assert "loopback" in environment["features"]
    assert environment["extras"]["loopback"] == "/opt/hpe/cxi_gpu_loopback_bw"


@pytest.mark.parametrize(
    ("system", "tool", "service"),
    [("lumi", "cxi_gpu_loopback_bw", True), ("leonardo", "ib_write_bw", False)],
)
def test_a_step_of_one_node_gets_a_service_of_slingshot(suite, system, tool, service):
    suite.topics = ("network",)
    suite.variables |= {"FABRICHECK_LOOPBACK": tool}
    suite(f"--system={system}", "--dry-run", "-n", "nic_loopback")
    (file,) = suite.results.glob("stage/**/nic_loopback/rfm_job.sh")
    (line,) = [line for line in file.read_text().splitlines() if "--loopback" in line]
    assert f" --loopback {tool} " in line
    assert (" --network=single_node_vni " in line) == service, line


@pytest.mark.slow
def test_a_session_on_a_machine_without_the_nics(suite, monkeypatch, wording):
    """This machine has no NIC of Slingshot, so the inventory fails, and the loopback too."""
    suite.topics = ("network",)
    site = suite.folder / "nics_site.py"
    text = (HERE / "device_site.py").read_text()
    text = text.replace('"a100-booster"', '"a100-booster", "fabric": "infiniband"')
    text = text.replace('"peers"]', '"peers", "nics"]')
    tool = suite.folder / "tools" / "ib_write_bw"
    script(tool, f"cat <<E\n{texts.ib_write_bw(size=1 << 20)}E")
    text = text.replace('"features": ["osu", "nccl-tests"]', '"features": ["stream", "loopback"]')
    stated = text.replace('"rccl_version"', f'"loopback": "{tool}", "rccl_version"')
    site.write_text(stated)
    suite.own_site(site)
    suite.own_references()
    suite.variables |= {"RFM_SYSTEM": "node", "FAKE_OSU": "/none", "FAKE_NCCL": "/none"}
    monkeypatch.setenv("SLURMD_NODENAME", "nid001005")
    outcome = suite("-r", "-n", "nic_inventory", "-n", "nic_loopback")
    assert outcome.status == 1
    machine = platform.node()
    reasons = "\n".join(outcome.reasons)
    wording(reasons.replace(f"Node {machine}", "NODE").replace(f"{machine}:mlx", "NODE:mlx"))
    (path,) = (suite.results / "stage").rglob("nic_inventory/result.json")
    assert load_document(path)["options"]["fabric"] == "infiniband"
    cases = suite.report()["runs"][0]["testcases"]
    (case,) = [one for one in cases if one["name"] == "nic_inventory"]
    assert [one[0] for one in case["perfvalues"].values()] == [4], json.dumps(case["perfvalues"])
    # An environment without one: the node has none, which is found there.
    (suite.config / "sites" / site.name).write_text(text)
    outcome = suite("-r", "-n", "nic_loopback")
    assert "1 skipped" in outcome
    wording(outcome.reasons)
