"""Faulty plans, programs and documents: one sentence each, never a table of wrong numbers."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from pathlib import Path

import pytest

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.node import load
from fabricheck.papers import fidelity
from fabricheck.papers.fidelity import compare, evaluate, value_of
from fabricheck.papers.fidelity_plan import Read, plan_path, read_plan
from fabricheck.references.published import at
from fabricheck.tools.runner import ProgramFailed, TimeLimit

ROOT = Path(__file__).resolve().parents[2]


def entry(content, section, title):
    return next(one for one in content[section] if one["title"].startswith(title))


def read(content, section, title):
    return entry(content, section, title)["read"]


def rename(old, new, section="predicted"):
    def change(content):
        for one in content[section]:
            if isinstance(one["records"], dict) and old in one["records"]:
                one["records"][new] = one["records"].pop(old)

    return change


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (rename("lumi-train-hipstream", "lumi-nothing"), NotFoundError, "no record 'lumi-nothing'"),
        (
            rename("lumi-train-hipstream", "paper-ddr-latency"),
            InvalidInputError,
            "record 'paper-ddr-latency' cannot be compared: it is in ns.",
        ),
        (
            rename("lumirfm-commscope-dual", "jsc-copy"),
            InvalidInputError,
            "'jsc-copy' is of jureca-mi250 (MI250 (1 GCD)), which has no node mi250x.",
        ),
        (
            rename("lumi-train-hipstream", "lumi-train-hipstream-ach"),
            InvalidInputError,
            "neither compared nor left out: lumi-train-hipstream.",
        ),
        (
            lambda c: c["predicted"].append(
                {
                    "title": "an approximate one",
                    "records": {"paper-p2p-bw-3hop": "1-7"},
                    "read": {"run": "copies", "operation": "engine", "counts": "once"},
                }
            ),
            InvalidInputError,
            "not measured, exact and of these experiments: paper-p2p-bw-3hop.",
        ),
        (rename("kth-lat-71", "kth-lat-72", "fitted"), InvalidInputError, "kth-lat-71, kth-lat-72"),
        (
            lambda c: c["left_out"].update({"kth-bw-10": "once more"}),
            InvalidInputError,
            "kth-bw-10 must occur only once.",
        ),
        (
            lambda c: c["left_out"].update({"kth-nothing": "it does not exist"}),
            NotFoundError,
            "no record 'kth-nothing'",
        ),
        (
            lambda c: read(c, "predicted", "copy-engine transfers between").update(run="walks"),
            InvalidInputError,
            "there is no run 'walks'.",
        ),
        (
            lambda c: entry(c, "predicted", "latency of copy-engine transfers").update(
                places="0-9"
            ),
            InvalidInputError,
            "'0-9' is not a device, pair or link class of mi250x.",
        ),
        (
            lambda c: entry(c, "predicted", "latency of copy-engine transfers").update(
                places=5000 * "9"
            ),
            InvalidInputError,
            "99' is not a device, pair or link class of mi250x.",
        ),
        (
            lambda c: entry(c, "predicted", "latency of copy-engine transfers").update(
                places="0,1"
            ),
            InvalidInputError,
            "the pattern 'kth-lat-{from}{to}' and the places '0,1' do not match.",
        ),
        (
            lambda c: entry(c, "predicted", "STREAM").update(
                records={"lumi-train-hipstream": "links4"}
            ),
            InvalidInputError,
            "lumi-train-hipstream must occur only once.",
        ),
        (
            lambda c: entry(c, "predicted", "STREAM").update(places="all"),
            InvalidInputError,
            "predicted[4]: places require a pattern of records",
        ),
        (
            lambda c: entry(c, "predicted", "STREAM").update(not_run="a reason"),
            InvalidInputError,
            "an entry has either read or not_run",
        ),
        (
            lambda c: c["statements"][0].update(ratio=["0,1", "0"]),
            InvalidInputError,
            "a statement has either places or ratio",
        ),
        (
            lambda c: c["statements"][0].update(below="paper-p2p-lat-single"),
            InvalidInputError,
            "one of near, between, below and lost",
        ),
        (lambda c: c.update(node="mi250"), InvalidInputError, "it is for node mi250, not for"),
        (
            lambda c: c.update(published="nowhere.yaml"),
            NotFoundError,
            "nowhere.yaml: there is no such file.",
        ),
    ],
)
def test_a_faulty_plan_is_one_sentence(changed, node, change, error, said):
    path = changed(change)
    with pytest.raises(error) as caught:
        read_plan(path, node)
    assert said in str(caught.value)
    assert ".yaml: " in str(caught.value) or ".yaml has no record" in str(caught.value)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c: read(c, "predicted", "copy-engine transfers, %").pop("percent_of"),
            "'paper-commscope-util-single' is in percent, but what is read for it is in GB/s.",
        ),
        (
            lambda c: read(c, "predicted", "STREAM").update({"as": "time"}),
            "record 'lumi-train-hipstream' is in GB/s, but what is read for it is in us",
        ),
        (
            lambda c: read(c, "predicted", "copy-engine transfers between").pop("counts"),
            "in GB/s, but what is read for it is in us: 'counts' is required for a bandwidth.",
        ),
        (
            lambda c: c["statements"][0].update(near="paper-p2p-lat-single"),
            "record 'paper-p2p-lat-single' is in us, but what is read for it is in GB/s",
        ),
        (
            lambda c: entry(c, "statements", "host STREAM").update(near="paper-p2p-bw-hi"),
            "record 'paper-p2p-bw-hi' is not a ratio.",
        ),
    ],
)
def test_a_conversion_to_another_unit_is_refused(changed, node, change, said):
    with pytest.raises(InvalidInputError) as caught:
        read_plan(changed(change), node)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("section", "title", "change"),
    [
        pytest.param(
            "predicted",
            "copy-engine transfers between",
            {"counts": "read+write"},
            marks=pytest.mark.full,
        ),
        ("predicted", "STREAM", {"counts": "once"}),
        ("predicted", "copy-engine transfers, %", {"percent_of": "path-both"}),
        ("fitted", "a kernel reads", {"counts": "read+write"}),
        ("fitted", "STREAM copy in the memory", {"percent_of": "path"}),
    ],
)
@pytest.mark.full
def test_a_wrong_convention_leaves_nothing_within(changed, node, documents, section, title, change):
    plan = read_plan(changed(lambda c: read(c, section, title).update(change)), node)
    tables = evaluate(plan, documents).tables[section]
    [table] = [one for one in tables if one.title.startswith(title)]
    assert not any(row.within for row in table.rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"operation": "read"}, (0, 1), "has 0 series of operation read at place 0-1"),
        ({"bytes": 7}, (0, 1), "has 0 series"),
        ({}, (0, 0), "has 0 series of operation engine at place 0-0"),
        ({"operation": "latency"}, (0, 1), "it is in us, which is not a bandwidth."),
        ({"operation": "latency", "as": "time"}, (0, 1), "it is in us, which is not a bandwidth."),
        ({"counts": None}, (0, 1), "it is in GB/s, which is not a latency."),
        (
            {"run": "local", "operation": "copy", "bytes": 16, "percent_of": "path"},
            (0,),
            "only a pair has a path's peak.",
        ),
    ],
)
def test_a_series_that_does_not_fit_is_one_sentence(documents, node, changes, place, said):
    good = {"run": "copies", "operation": "engine", "counts": "once"}
    with pytest.raises(InvalidInputError) as caught:
        value_of(documents, Read.model_validate(good | changes), place, node)
    assert said in str(caught.value)


def test_a_slower_node_is_not_within(found, node, documents):
    slower = copy.deepcopy(documents)
    for series in slower["copies"]["series"]:
        if series["operation"] == "engine" and 0 in series["device_set"]:
            series["median"] *= 0.9
    share = evaluate(found.plan, slower).share(latency=False)
    assert (share.n, share.within) == (97, 80 - 13)  # 14 pairs have device 0; 0-2 is fitted


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (
            "echo p2p: the node is broken. >&2; exit 4",
            ProgramFailed,
            "ended with exit code 4: p2p: the node",
        ),
        (
            "exit 3",
            ProgramFailed,
            "the run 'copies' of p2p on mi250x ended with exit code 3: it printed nothing",
        ),
        ("kill -9 $$", ProgramFailed, "was ended by signal 9: it printed nothing"),
        ("exit 0", ProgramFailed, "left no usable document: There is no result document"),
        ('for last; do :; done; echo "{" > "$last"', ProgramFailed, "left no usable document: "),
    ],
)
def test_a_program_that_fails_is_named(node, fake, text, error, said):
    with pytest.raises(error) as caught:
        compare(node, fake(text))
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"node": {"name": "mi250x", "digest": "0" * 64, "overlay": None}}, "another node"),
        ({"clock": "measured", "node": None}, "its clock is measured"),
        ({"complete": False}, "left an incomplete document"),
    ],
)
def test_a_document_of_something_else_is_refused(node, documents, fake, monkeypatch, change, said):
    replaced = {**documents["copies"], **change}
    monkeypatch.setattr(fidelity.document, "load", lambda path: replaced)
    with pytest.raises(FabricheckError, match=said):
        compare(node, fake("exit 0"))


def test_a_program_that_can_not_start_or_end_is_named(node, fake, monkeypatch):
    folder = fake("exit 0")
    (folder / "p2p").write_text("#!/nowhere/sh\n")
    with pytest.raises(ProgramFailed, match="p2p cannot be run"):
        compare(node, folder)
    monkeypatch.setattr(fidelity, "TIME_LIMIT", 0.2)
    with pytest.raises(TimeLimit, match=r"did not end within 0\.2 s"):
        compare(node, fake("exec sleep 20"))


def test_variables_of_the_caller_do_not_change_a_simulation(
    node, found, documents, programs, monkeypatch
):
    monkeypatch.setenv("HSA_ENABLE_SDMA", "0")
    monkeypatch.setenv("FABRICHECK_SIM_NOISE", "0.1")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    # A run that each of them would change.
    plan = found.plan.file.model_copy(update={"runs": {"copies": found.plan.file.runs["copies"]}})
    again = fidelity.run_all(plan, node, programs)["copies"]
    assert len(again["series"]) == 112
    assert [one["samples"] for one in again["series"]] == [
        one["samples"] for one in documents["copies"]["series"]
    ]


def test_a_changed_node_is_not_compared(programs):
    overlay = ROOT / "config" / "nodes" / "overlays" / "link-0-6-gone.yaml"
    with pytest.raises(InvalidInputError, match="published values describe healthy nodes only"):
        compare(load("mi250x", overlay), programs)


def test_a_node_without_a_plan_or_a_simulation_is_refused(node):
    with pytest.raises(NotFoundError, match="h200 has no comparison"):
        plan_path(load("h200"))
    with pytest.raises(InvalidInputError, match=r"a comparison needs the key simulation\."):
        read_plan(plan_path(node), dataclasses.replace(node, simulation=None))


def test_too_many_fitted_parameters_are_refused(node, monkeypatch):
    monkeypatch.setattr("fabricheck.papers.fidelity_plan.MOST_FITTED", 8)
    with pytest.raises(InvalidInputError, match="15 records are fitted, more than 8"):
        read_plan(plan_path(node), node)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("records: [", "it is not valid YAML"),
        ("records: 3", "published.yaml: records: input should be a valid list, not 3"),
        ("[]", "published.yaml: it must contain a mapping of keys to values"),
        ("records: [{id: x}]", r"records\[x\]: its value is not a finite number"),
    ],
)
def test_a_broken_data_set_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "published.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        at(path)


def test_the_command_ends_with_a_sentence_and_a_code(command, tmp_path):
    missing = command("papers", "fidelity", "mi250x", "--programs", tmp_path, code=3)
    assert missing.stderr.startswith(
        f"fabricheck: There is no simulated program {tmp_path}/libfabricheck_node.so"
    )
    assert missing.stdout == ""
    unknown = command("papers", "fidelity", "mi999", code=3)
    assert "There is no node model 'mi999'" in unknown.stderr


def test_a_page_that_can_not_be_written_is_a_sentence(command, made, tmp_path, programs):
    page = tmp_path / "nowhere" / "page.md"
    refused = command(
        "papers", "fidelity", "mi250x", "--programs", programs, "--output", page, code=3
    )
    assert f"{page} cannot be written" in refused.stderr


def test_the_environment_of_a_run_names_the_node_alone(node, fake, tmp_path, monkeypatch):
    """The platform that the programs get is the node's, whatever the caller has set."""
    monkeypatch.setenv("FABRICHECK_SIMULATED_NODE", "/nowhere.json")
    seen = tmp_path / "seen"
    fake(f'cat "$FABRICHECK_SIMULATED_NODE" > {seen}; exit 4')
    with pytest.raises(ProgramFailed):
        compare(node, tmp_path)
    assert json.loads(seen.read_text())["node"]["digest"] == node.sha256
    assert os.environ["FABRICHECK_SIMULATED_NODE"] == "/nowhere.json"
