"""The description of this machine by `inventory`, with virtual devices."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


def described(output: Path) -> dict[str, Any]:
    return json.loads(output.read_text())


def test_each_value_has_its_source_or_the_reason_why_it_is_unknown(run):
    ran = run("inventory", devices=2)
    assert (ran.code, ran.err) == (0, "")
    found = described(ran.output)
    assert (found["schema"], found["schema_version"]) == ("fabricheck-inventory", 1)
    assert found["node"] is None and found["program"]["runtime"] == "host"
    assert [device["index"] for device in found["devices"]] == [0, 1]
    assert [(link["from"], link["to"], link["kind"], link["links"]) for link in found["links"]] == [
        (0, 1, "none", 0),
        (1, 0, "none", 0),
    ]
    unknown = {entry["item"]: entry["why"] for entry in found["absent"]}
    for items in ("devices", "links"):
        for name, value in found[items][0].items():
            item = f"{items}.{name}"
            if name in ("index", "from", "to"):
                continue
            reasons = [why for key, why in unknown.items() if key.split(".")[:2] == item.split(".")]
            assert reasons if value is None else found["sources"][item], item


def test_the_domains_are_those_of_the_machine(run):
    found = described(run("inventory", devices=1).output)
    cores = {core for domain in found["domains"] for core in domain["cores"]}
    assert cores >= os.sched_getaffinity(0)
    assert all(domain["memory_bytes"] > 0 for domain in found["domains"])
    device = found["devices"][0]
    near = next(one for one in found["domains"] if one["index"] == device["numa_domain"])
    assert device["cores"] == near["cores"]
    assert found["links"] == []


def test_accelerators_of_pci_are_listed_though_the_runtime_lacks_them(run, tmp_path):
    folder = tmp_path / "sys/bus/pci/devices/0000:c1:00.0"
    folder.mkdir(parents=True)
    for name, text in {"vendor": "0x1002", "device": "0x7408", "class": "0x038000"}.items():
        (folder / name).write_text(f"{text}\n")
    found = described(run("inventory", "--sys", str(tmp_path / "sys")).output)
    assert [
        (one["address"], one["indices"], one["in_driver"]) for one in found["pci_functions"]
    ] == [("0000:c1:00.0", [], None)]


def test_it_prints_to_standard_output_and_says_what_it_cannot_write(programs, environment, run):
    done = subprocess.run([programs / "inventory"], env=environment(1), capture_output=True,
                          text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["devices"]) == 1
    ran = run("inventory", output=Path("/nowhere/node.json"))
    assert ran.code == 4
    assert "/nowhere/node.json" in ran.sentence


def test_a_wrong_setting_of_the_runtime_is_bad_usage(run):
    ran = run("inventory", FABRICHECK_HOST_DEVICES="none")
    assert ran.code == 2
    assert "FABRICHECK_HOST_DEVICES" in ran.sentence
