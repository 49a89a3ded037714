"""Texts of others that would forge a line or control a terminal, in all texts of a session."""

import copy
import json
import re
import shlex

import pytest

import factories
from fabricheck.core.errors import InvalidInputError
from fabricheck.results import document as documents
from fabricheck.results import requested_nodes
from fabricheck.results.run_report import parse_report
from session_builder import SessionBuilder

LINE = "scontrol update NodeName=node1 State=DRAIN Reason=forged"

#: Every kind of end of a line, and what moves the cursor, rings, and reverses or hides text.
EVIL = (
    f"x\n{LINE}\r{LINE}\x0b{LINE}\x0c{LINE}\x1c{LINE}\x85{LINE}\u2028{LINE}\u2029{LINE}"
    "\x1b[2J\x07\x9b2J\x08\x7f\u202e\u2066\u200b\ufeff<b>*c*"
)

#: What never comes out of a command, whatever goes in.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

COMMANDS = (
    ["verdict"], ["verdict", "--json"], ["verdict", "--drain-lines"], ["summary"],
    ["summary", "--json"], ["results", "list"], ["results", "list", "--json"],
    ["results", "show"], ["results", "show", "--all"], ["results", "show", "--json"],
    ["results", "validate"], ["results", "coverage"], ["results", "export"], ["diagnose"],
    ["diagnose", "--json"], ["fleet", "--all"], ["papers", "claims"],
)  # fmt: skip


def places(value, at=()):
    """Yield the places of all texts in JSON, names of members included."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if isinstance(member, str):
            yield (*at, key)
        elif isinstance(member, dict | list):
            yield from places(member, (*at, key))


def planted(content, place):
    """Return JSON with the text at one place replaced."""
    changed = copy.deepcopy(content)
    *above, last = place
    here = changed
    for key in above:
        here = here[key]
    here[last] = EVIL
    return changed


def planted_where_accepted(content, read):
    """Return JSON with every text replaced that a reader accepts, and the places of the others.

    An error is one line without control characters.
    """
    refused = []
    read(json.dumps(content))
    for place in places(content):
        changed = planted(content, place)
        try:
            read(json.dumps(changed))
        except InvalidInputError as error:
            assert "\n" not in str(error)
            refused.append(place)
        else:
            content = changed
    return content, refused


def measured():
    """Build a document with nearly all that one can have."""
    devices = [factories.device_state(index, processes=[factories.process()]) for index in range(2)]
    nic = {
        "node": "node1", "name": "mlx5_0", "kind": "infiniband", "interface": "ib0",
        "address": "00:11", "pci_address": "0000:01:00.0", "near_devices": ["0000:41:00.0"],
        "firmware": "1", "driver": "mlx5_core", "absent": [{"item": "a", "why": "b"}],
        "place": {"group": "1", "switch": "s", "port": "p"},
    }  # fmt: skip
    settings = [{"name": "kernel.numa_balancing", "value": "1", "concerns": "launches"}]
    return factories.on_h200(
        complete=False,
        outcome={"exit_code": 4, "status": "software", "message": "it differs"},
        host=factories.document()["host"] | {"scheduler_node": "node1"},
        state=factories.state(devices, others=factories.host_use(4.0, loops=2)),
        settings=settings,
        skipped=[{"operation": "copy", "reason": "none"}],
        differences=[factories.difference("Device 0 differs", 0)],
        nics=[nic],
        notes=["a note"],
        devices=[
            factories.device(index, pci_address=f"0000:4{index}:00.0", unique_id="GPU-1")
            for index in range(2)
        ],
        versions={"runtime": "1", "driver": "2", "mpi": "3", "ucx": "4"},
    )


def of_an_aborted_run():
    """Build what an aborted run leaves, with the lines of a log."""
    line = {"kind": "hardware", "pci_address": "0000:41:00.0", "text": "NVRM: Xid 79"}
    content = factories.on_h200(
        complete=False, finished=None,
        outcome=factories.killed_document()["outcome"],
    )  # fmt: skip
    content["aftermath"] = factories.aftermath(
        kernel_log=[line], runtime_log=[line], pci_functions=[factories.pci_function(0x41)]
    )
    return content


def identifiers(refused):
    """Return the last names of places, of those in lists that of the list."""
    return {next(key for key in reversed(place) if isinstance(key, str)) for place in refused}


def test_identifiers_of_documents_have_a_form():
    _, refused = planted_where_accepted(measured(), documents.parse)
    names = identifiers(refused)
    assert {"hostname", "scheduler_node", "node", "pci_address", "near_devices"} <= names
    assert {"unique_id", "commit", "version", "arch", "interface", "address"} <= names
    _, refused = planted_where_accepted(of_an_aborted_run(), documents.parse)
    assert {("aftermath", log, 0, "pci_address") for log in ("kernel_log", "runtime_log")} <= {
        *refused
    }
    assert ("aftermath", "pci_functions", 0, "address") in refused


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("hostname", "node1\nscontrol x"),
        ("hostname", "node1 ; true"),
        ("hostname", "$(true)"),
        ("hostname", "-x"),
        ("hostname", ""),
        ("scheduler_node", "node1\n"),
    ],
)
def test_a_name_that_no_node_has_is_refused_in_a_sentence(command, tmp_path, field, name):
    content = factories.document()
    content["host"][field] = name
    path = factories.write(tmp_path / "result.json", content)
    result = command("results", "validate", path, code=4)
    why = f"$.host.{field}: {json.dumps(name)} is not the name of a node"
    assert why in result.stdout


@pytest.mark.parametrize(
    "name", ["n", "nid001234", "n1.hpc.example.edu", "a_b-2", "mi250x (simulated)"]
)
def test_names_of_nodes_are_accepted(name):
    content = factories.document()
    content["host"]["hostname"] = name
    assert documents.parse(json.dumps(content))["host"]["hostname"] == name


def a_report(tmp_path):
    """Build a report with all texts that are read."""
    texts = {
        "fail_reason": "it failed", "fail_phase": "sanity", "scheduler": "squeue",
        "job_nodelist": ["node1"], "fail_info": {"exc_type": "SanityError"},
    }  # fmt: skip
    failed = factories.case(
        "p2p", result="fail", display_name="p2p %.nid=node1", **texts,
        perfvalues={"local:host:worst": [1.0, 2.0, -0.1, None, "GB/s", "fail"]},
    )  # fmt: skip
    report = SessionBuilder(tmp_path).add(factories.case()).add(failed).write_report()
    content = json.loads(report.read_text())
    content["session_info"] |= {
        "cmdline": "reframe -r -t smoke",
        "version": "4.10.4",
        "joined": {"set": "smoke", "lacking": ["node2 is missing"]},
    }
    return report, content


#: Where reports name folders: planted, the documents would not be found.
FOLDERS = ("prefix_output", "prefix_stage", "outputdir", "stagedir", "unique_name")


def test_identifiers_of_run_reports_have_a_form(tmp_path):
    report, content = a_report(tmp_path)

    def read(text):
        report.write_text(text)
        parse_report(report)

    _, refused = planted_where_accepted(content, read)
    names = identifiers(refused)
    assert {"hostname", "uuid", "system", "partition", "environ", "job_nodelist"} <= names
    content["runs"][0]["testcases"][1]["display_name"] = "p2p %.nid=node1;true"
    with pytest.raises(InvalidInputError, match="display_name"):
        read(json.dumps(content))


def test_names_of_requested_nodes_have_a_form(tmp_path):
    content = {"form": "fabricheck-nodes-1", "partition": None, "started": "2026-01-01T00:00:00Z"}
    path = tmp_path / "nodes.json"
    for name, good in (("node1", True), (EVIL, False), ("a b", False)):
        path.write_text(json.dumps(content | {"nodes": {name: {}}}))
        if good:
            assert requested_nodes.read(path).nodes
            continue
        with pytest.raises(InvalidInputError) as error:
            requested_nodes.read(path)
        assert "\n" not in str(error.value) and not RAW.search(str(error.value))


def require_harmless(text, where):
    found = RAW.search(text)
    assert not found, f"{where}: {found[0]!r} in {text[max(0, found.start() - 80) :][:200]!r}"
    for line in text.splitlines():
        if line.startswith("scontrol"):
            # The document does accuse its own node, whose reason is one word of the line.
            *call, reason = shlex.split(line)
            assert call == ["scontrol", "update", "NodeName=node1", "State=DRAIN"], where
            assert reason.startswith("Reason=fabricheck HW-FAIL: "), where


def test_no_text_of_a_session_controls_a_terminal_or_forges_a_line(command, tmp_path, monkeypatch):
    results = tmp_path / "results"
    report, content = a_report(results)

    def read(text):
        report.write_text(text)
        parse_report(report)

    kept = {place: None for place in places(content) if place[-1] in FOLDERS}
    content, _ = planted_where_accepted(content, read)
    _, original = a_report(tmp_path / "again")
    for place in kept:
        here, good = content, original
        for key in place[:-1]:
            here, good = here[key], good[key]
        here[place[-1]] = str(good[place[-1]]).replace(str(tmp_path / "again"), str(results))
    report.write_text(json.dumps(content))
    folder = factories.case_folder(results, "stream_local")
    whole, _ = planted_where_accepted(measured(), documents.parse)
    factories.write(folder / "result.json", whole)
    aborted, _ = planted_where_accepted(of_an_aborted_run(), documents.parse)
    stage = factories.case_folder(results, "p2p", "stage")
    factories.write(stage / "result.json.partial", aborted)
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results))
    told = ""
    for line in COMMANDS:
        result = command(*line, code=None)
        require_harmless(result.stdout, line)
        require_harmless(result.stderr, line)
        told += result.output
    assert LINE in told, "no text was shown"
    for path in results.rglob("verdicts/**/*.json"):
        require_harmless(path.read_text(encoding="utf-8"), path)


@pytest.mark.slow
def test_no_text_of_a_session_controls_a_page(command, tmp_path, monkeypatch):
    results = tmp_path / "results"
    whole, _ = planted_where_accepted(measured(), documents.parse)
    SessionBuilder(results).add(factories.case(fail_reason=EVIL), whole).write()
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results))
    result = command("report", "--output", tmp_path / "page", code=4)
    assert "Report:" in result.stdout, result.output
    for path in (tmp_path / "page").rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not RAW.search(text), path
            assert "<b>*c*" not in text
