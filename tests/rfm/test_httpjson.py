"""Documents for Elasticsearch: what each check came to, and what a bad server costs a session."""

import json
import socket
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from elasticsearch_stand_in import running
from reframe.core.exceptions import ConfigError

from fabricheck.results.table import columns
from fabricheck.rfm import httpjson

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = json.loads((ROOT / "config" / "elasticsearch" / "index-template.json").read_text())
FIELDS = TEMPLATE["template"]["mappings"]["properties"]
SECRET = "ApiKey c2VjcmV0LW9mLXRoZS10ZXN0"


@pytest.fixture(scope="module")
def sent(shared_suite):
    """A session of a check that passed and of one whose program is not there, in every word."""
    suite = shared_suite
    stream = suite.programs / "stream"
    stream.write_text(stream.read_text().replace("exec", f"env >> {suite.folder}/env.txt; exec"))
    (suite.programs / "memcpy").unlink()
    with running() as server:
        suite.variables |= {
            httpjson.URL: server.url,
            httpjson.AUTHORIZATION: SECRET,
            httpjson.FIELDS: "pipeline=4711, site=here",
        }
        outcome = suite("-vvvv", "-r", "-n", "stream_local", "-n", "memcpy_near$")
    return suite, outcome, server


def of(sent, kind):
    return [one for one in sent[2].documents.values() if one["kind"] == kind]


def test_a_check_and_each_of_its_metrics_are_documents(sent):
    suite, outcome, server = sent
    assert outcome.status == 1 and {path for path, _, _ in server.requests} == {"/fabricheck/_bulk"}
    report = suite.report()
    uuid, cases = report["session_info"]["uuid"], report["runs"][0]["testcases"]
    assert {one["session"] for one in server.documents.values()} == {uuid}
    results = {one["check"]: one["result"] for one in of(sent, "check")}
    assert results == {case["display_name"]: case["result"] for case in cases}
    assert sorted(results.values()) == ["fail", "pass"]
    [passed] = [case for case in cases if case["result"] == "pass"]
    recorded = {key.split(":")[-1]: entry for key, entry in passed["perfvalues"].items()}
    metrics = {
        one["metric"]: (one["value"], one["unit"], one["judged"]) for one in of(sent, "metric")
    }
    assert metrics == {name: (one[0], one[4], one[5]) for name, one in recorded.items()} != {}
    assert {one["labels"]["pipeline"] for one in server.documents.values()} == {"4711"}
    assert {one["clock"] for one in of(sent, "metric")} == {"measured"}


def test_what_failed_before_it_was_judged_is_sent_too(sent):
    [failed] = [one for one in of(sent, "check") if one["result"] == "fail"]
    assert failed["check"] == "memcpy_near" and "There is no program" in failed["reason"]
    assert "clock" not in failed and failed["experiment"] == "E2"


def test_documents_fit_the_index_template(sent):
    assert TEMPLATE["template"]["mappings"]["dynamic"] == "strict"
    for document in sent[2].documents.values():
        assert list(faults(document)) == []


def faults(document):
    """Yield what Elasticsearch would refuse of a document, or store as something else."""
    if not isinstance(document.get("@timestamp"), str):
        yield "a data stream needs @timestamp"
    fitting = {
        "keyword": lambda value: isinstance(value, str) and len(value.encode()) <= 32766,
        "text": lambda value: isinstance(value, str),
        "long": lambda value: isinstance(value, int) and not isinstance(value, bool),
        "double": lambda value: isinstance(value, float),
        "boolean": lambda value: isinstance(value, bool),
        "date": lambda value: datetime.fromisoformat(value).tzinfo is not None,
        "flattened": lambda value: all(isinstance(one, str) for one in value.values()),
    }
    for name, value in document.items():
        if name not in FIELDS:
            yield f"{name} is not in the template"
        elif not fitting[FIELDS[name]["type"]](value):
            yield f"{name} is no {FIELDS[name]['type']}: {value!r}"


def test_faults_of_documents_are_found(sent):
    [good, *_] = sent[2].documents.values()
    assert list(faults(good | {"x": 1})) == ["x is not in the template"]
    assert len(list(faults(good | {"failed_attempts": 1.5, "complete": "yes"}))) == 2


def test_the_template_has_the_columns_of_checks_and_metrics():
    types = {"text": "keyword", "integer": "long", "number": "double", "boolean": "boolean"}
    expected = {
        column.name: types.get(column.type, "date")
        for column in columns()
        if {"check", "metric"} & set(column.kinds)
    }
    own = {"@timestamp": "date", "labels": "flattened", "reason": "text"}
    assert {name: field["type"] for name, field in FIELDS.items()} == expected | own


def test_the_header_is_sent_and_is_nowhere_else(sent):
    suite, outcome, server = sent
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {SECRET}
    assert (suite.folder / "env.txt").read_text().count("FAKE_STREAM=") == 1
    assert SECRET.split()[1] not in outcome.text
    holders = [
        path
        for path in suite.folder.rglob("*")
        if path.is_file() and SECRET.split()[1].encode() in path.read_bytes()
    ]
    assert holders == []


def test_a_dry_run_sends_nothing(suite):
    with running() as server:
        suite.variables[httpjson.URL] = server.url
        assert suite("--dry-run", "-n", "stream_local").status == 0
    assert server.requests == []


@pytest.mark.parametrize("behaviour", ["absent", 503, "hangs"])
def test_a_bad_server_costs_a_session_little_and_is_told_once(suite, monkeypatch, behaviour):
    monkeypatch.setattr(httpjson, "TIMEOUT_S", 0.25)
    monkeypatch.setattr(httpjson, "PATIENCE_S", 0.5)
    with running("hangs" if behaviour == "absent" else behaviour) as server:
        suite.variables[httpjson.URL] = server.url
        if behaviour == "absent":
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            suite.variables[httpjson.URL] = f"http://127.0.0.1:{port}/fabricheck/_bulk"
        outcome = suite("-r", "-n", "stream_local", "--repeat=3")
        # A server that hangs is asked until the patience is at its end, and no more.
        asked = {"absent": 0, 503: 3, "hangs": 2}[behaviour]
        assert (outcome.status, len(server.requests)) == (0, asked), outcome
    assert outcome.text.count(f"({httpjson.URL})") == 1
    assert "This session's own results are complete." in outcome
    assert len(suite.report()["runs"][0]["testcases"]) == 3
    [kept] = (suite.results / "logs").glob("httpjson-*.ndjson")
    # What was kept can be sent as it is.
    with running() as later:
        later.answer(kept.read_bytes())
    assert {one["repetition"] for one in later.documents.values()} == {0, 1, 2}


TASK = SimpleNamespace(check=SimpleNamespace(name="stream_local"))


def sender(tmp_path, url, monkeypatch, documents=lambda task, labels: "{}\n{}\n"):
    said = []
    monkeypatch.setattr(httpjson, "documents", documents)
    monkeypatch.setattr(httpjson.seams, "say", said.append)
    return httpjson.Sender(url, {}, tmp_path / "kept"), said


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        (302, "status 302"),
        (401, "status 401"),
        ("other", "the answer is not Elasticsearch's"),
        ("refuses", "it refused documents (strict_dynamic_mapping_exception: no field [x])"),
    ],
)
def test_what_the_server_answers_is_looked_at(tmp_path, monkeypatch, behaviour, sentence):
    with running(behaviour) as server:
        one, said = sender(tmp_path, server.url, monkeypatch)
        one.send(TASK)
        one.send(TASK)
    [text] = said
    assert sentence in text and str(tmp_path / "kept") in text
    assert (tmp_path / "kept").read_text() == "{}\n{}\n" * 2


def test_a_server_that_comes_back_gets_what_follows(tmp_path, monkeypatch):
    with running(503) as server:
        one, said = sender(tmp_path, server.url, monkeypatch)
        one.send(TASK)
        server.behaviour = 200
        monkeypatch.setattr(server, "answer", lambda _: (200, {"errors": False, "items": []}))
        one.send(TASK)
    assert len(said) == 1 and (tmp_path / "kept").read_text() == "{}\n{}\n"


def test_what_can_neither_be_sent_nor_kept_is_said(tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    with running(500) as server:
        one, said = sender(tmp_path, server.url, monkeypatch)
        one.send(TASK)
    assert "cannot be written (Is a directory), so they are not kept" in said[0]


def test_a_defect_in_a_document_fails_nothing(tmp_path, monkeypatch):
    one, said = sender(tmp_path, "http://127.0.0.1:1/x/_bulk", monkeypatch, lambda *_: 1 / 0)
    one.send(TASK)
    assert "the documents of stream_local cannot be made: ZeroDivisionError" in said[0]


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({httpjson.URL: "ftp://host/_bulk"}, "is not an address of http or https"),
        ({httpjson.URL: "http://host:x/_bulk"}, "is not an address of http or https"),
        ({httpjson.URL: "https://me:hidden@host/_bulk"}, "contains a password"),
        ({httpjson.URL: "https://host:9200/fabricheck/_doc"}, "must end with /_bulk"),
        ({httpjson.URL: "https://h/f/_bulk", httpjson.FIELDS: "a"}, "not of the form name=value"),
    ],
)
def test_settings_that_can_not_be_meant_are_refused(tmp_path, monkeypatch, variables, sentence):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=sentence) as refused:
        httpjson.install(tmp_path, "x")
    assert "hidden" not in str(refused.value)


def test_without_an_address_nothing_is_sent(suite):
    with running() as server:
        suite.variables[httpjson.URL] = server.url
        assert suite("-r", "-n", "stream_local").status == 0 and server.requests
        sent = len(server.requests)
        # The same process: what the session before has installed is there.
        del suite.variables[httpjson.URL]
        assert suite("-r", "-n", "stream_local").status == 0
    assert len(server.requests) == sent
