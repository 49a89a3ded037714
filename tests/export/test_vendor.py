"""The archive for a vendor: what it needs, by a list, and nothing that names users or folders."""

from __future__ import annotations

import json
import tarfile

import pytest

import factories
from fabricheck.tools import parts
from session_builder import SessionBuilder

#: What a document has of users, paths and other people's programs.
SECRETS = ("ada", "copy_loop", "/home/ada", "TOKEN", "secret", "python-of-ada")

XID = "NVRM: Xid (PCI:0000:41:00): 79, pid=4711, name=python-of-ada, GPU has fallen off the bus."


@pytest.fixture
def broken(results_folder):
    """A session in which a device of node1 fell off the bus beside a job of somebody else."""
    used = factories.device_state(processes=[factories.process()])
    document = factories.on_h200(
        state=factories.state([used], [factories.device_state()]),
        environment={"HOME": "/home/ada", "TOKEN": "secret"},
        arguments=["/home/ada/stream", "--kernels", "copy"],
        notes=["run by ada in /home/ada"],
        aftermath={
            "exit_code": 134,
            "pci_functions": None,
            "kernel_log": [{"kind": "hardware", "pci_address": "0000:41:00.0", "text": XID,
                            "row": "xid-79"}],
            "runtime_log": None,
            "absent": [],
        },
    )  # fmt: skip
    return SessionBuilder(results_folder).check("stream_local", document=document).write()


def members(archive) -> dict[str, str]:
    with tarfile.open(archive) as packed:
        return {
            member.name.partition("/")[2]: packed.extractfile(member).read().decode()
            for member in packed.getmembers()
        }


def test_it_has_what_a_vendor_needs_and_names_nobody(command, broken, tmp_path, wording):
    archive = tmp_path / "v.tar.gz"
    ended = command("results", "pack", "--vendor", "node1", "--output", archive)
    wording(ended.stderr)
    files = members(archive)
    assert set(files) == {
        "README.txt", "ticket.txt", "verdict.json", "documents/000-stream_local.json",
    }  # fmt: skip
    readme = files["README.txt"]
    assert "HW-FAIL (device-error, device 0 (0000:41:00.0))" in readme
    assert "name=..., GPU has fallen off the bus" in readme
    assert "fabricheck verdict run-0" in files["ticket.txt"]
    document = json.loads(files["documents/000-stream_local.json"])
    assert document["series"] and document["state"]["before"]["devices"][0]["vbios"]
    for name, text in files.items():
        for secret in SECRETS:
            assert secret not in text, f"{secret} in {name}"


def test_serial_numbers_and_slots_are_those_of_this_machine(command, broken, tmp_path, monkeypatch):
    bus = tmp_path / "sys/bus/pci"
    for path, text in {
        "slots/12/address": "0000:41:00", "devices/0000:41:00.0/serial_number": "692251001234",
    }.items():  # fmt: skip
        (bus / path).parent.mkdir(parents=True)
        (bus / path).write_text(f"{text}\n")
    read = parts.parts(["0000:41:00.0"], tmp_path)
    device = read["devices"]["0000:41:00.0"]
    assert (device["serial_number"], device["slot"]) == ("692251001234", "12")
    assert read["machine"]["product_serial"] is None
    monkeypatch.setenv("SLURMD_NODENAME", "node1")
    archive = tmp_path / "v.tar.gz"
    command("results", "pack", "--vendor", "node1", "--output", archive)
    assert json.loads(members(archive)["parts.json"])["devices"].keys() >= {"0000:41:00.0"}


def test_a_node_without_results_is_named(command, broken):
    assert "node7" in command("results", "pack", "--vendor", "node7", code=3).stderr
    command("results", "pack", "latest", code=2)
