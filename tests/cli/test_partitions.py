"""Which partitions can run an experiment is read from checks and sites, or left open."""

import ast
import json

import pytest
from typer.testing import CliRunner

import factories
from fabricheck.cli import app
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge import coverage
from fabricheck.site import partitions

SITES = {
    "systems": [
        {
            "name": "here",
            "partitions": [
                {"name": "cpu", "environs": ["host"], "features": ["devices"]},
                {"name": "gpu", "environs": ["host", "hip"], "features": ["devices", "peers"]},
                {"name": "sim", "environs": ["hip"], "features": ["peers", "simulated"]},
            ],
        }
    ],
    "environments": [{"name": "host"}, {"name": "hip", "features": ["p2p"]}],
}


def asked(systems="['+peers']", environs="['+p2p']", base="Base"):
    source = (
        f"class Base:\n    valid_prog_environs: list[str] = {environs}\n    other = 1\n"
        f"class A({base}):\n    tags = {{'E7', 'smoke'}}\n    valid_systems = {systems}\n"
    )
    return partitions.with_what_it_needs("E7", partitions.read_checks([ast.parse(source)]), SITES)


@pytest.mark.parametrize(
    ("systems", "environs", "found"),
    [
        ("['+peers']", "['+p2p']", ("here:gpu", "here:sim (simulated)")),
        ("['+peers +devices']", "['+p2p']", ("here:gpu",)),
        ("['+peers -simulated']", "['+p2p']", ("here:gpu",)),
        ("['+devices']", "['*']", ("here:cpu", "here:gpu")),
        ("['here:sim', '+nothing']", "['hip']", ("here:sim (simulated)",)),
        ("['here']", "['host']", ("here:cpu", "here:gpu")),
        ("['+nvlink']", "['+p2p']", ()),
        ("['%extra=1']", "['+p2p']", None),
        ("[GPUS]", "['+p2p']", None),
        ("some()", "['+p2p']", None),
    ],
)
def test_what_a_check_asks_for(systems, environs, found):
    assert asked(systems, environs) == found


def test_what_is_not_known_is_left_open():
    assert asked(base="Elsewhere") is None
    check = partitions.Check(frozenset({"E7"}), ("*",), ("*",))
    assert partitions.with_what_it_needs("E7", [check], None) is None
    assert partitions.with_what_it_needs("E8", [check], SITES) is None
    # One check that fits is enough; one that does not says nothing of one that is not known.
    no_fit = partitions.Check(frozenset({"E7"}), ("+nvlink",), ("*",))
    unknown = partitions.Check(frozenset({"E7"}), None, None)
    assert partitions.with_what_it_needs("E7", [no_fit, unknown], SITES) is None
    found = partitions.with_what_it_needs("E7", [check, unknown], SITES)
    assert found == ("here:cpu", "here:gpu", "here:sim (simulated)")


def test_site_files_that_can_not_be_read(tmp_path):
    assert partitions.read_sites(tmp_path) is None
    (tmp_path / "site.py").write_text("raise OSError('no such machine')")
    assert partitions.read_sites(tmp_path) is None


def test_why_a_site_file_can_not_be_read_is_said_once(tmp_path):
    with pytest.raises(NotFoundError, match="run this in the repository"):
        partitions.require_sites(tmp_path / "none")
    (tmp_path / "bad.py").write_text("x = [")
    with pytest.raises(InvalidInputError) as error:
        partitions.require_sites(tmp_path)
    assert str(error.value) == (
        f"Site file {tmp_path}/bad.py can not be read: SyntaxError: '[' was never closed "
        "(bad.py, line 1)."
    )


def test_the_suites_own_checks_and_sites(monkeypatch):
    monkeypatch.delenv("RFM_CHECK_SEARCH_PATH", raising=False)
    able = coverage.partitions_for(coverage.checks_folders(), partitions.read_sites())
    assert {"local:host", "local:sim-mi250x (simulated)"} <= set(able["E1"])
    assert {"local:host", "local:sim-mi250x (simulated)"} <= set(able["E2"])
    for name in ("E3", "E4", "E7", "E8", "E13", "E14"):
        assert "local:sim-mi250x (simulated)" in able[name] and "local:host" not in able[name]
    assert "E12" not in able


def said(monkeypatch, sites):
    monkeypatch.setattr(partitions, "read_sites", lambda: sites)
    result = CliRunner().invoke(app, ["coverage"])
    assert result.exit_code == 0, result.output
    rows = json.loads(CliRunner().invoke(app, ["coverage", "--json"]).stdout)["experiments"]
    return " ".join(result.stdout.split()), {row["experiment"]: row for row in rows}


def test_the_sentence_of_an_experiment_that_did_not_run(one_session, tmp_path, monkeypatch):
    checks = tmp_path / "checks.py"
    checks.write_text(
        "class A:\n    tags = {'E5'}\n    valid_systems = ['+peers']\n"
        "    valid_prog_environs = ['+p2p']\n"
        "class B(A):\n    tags = {'E12'}\n    valid_systems = ['+mpi']\n"
        "class C(A):\n    tags = {'E7'}\n"
    )
    monkeypatch.setenv("RFM_CHECK_SEARCH_PATH", str(checks))
    text, rows = said(monkeypatch, SITES)
    assert "not in session run-0: not selected; needs two devices visible" in text
    assert "which here:gpu, here:sim (simulated) have" in text
    assert "no partition of the sites has what it needs; needs a GPU-aware MPI" in text
    assert "virtual devices have no links and no copy engines; needs two GPUs of one node, " in text
    assert rows["E12"]["partitions"] == [] and rows["E1"]["partitions"] is None
    text, rows = said(monkeypatch, None)
    assert "not selected, or no partition has what it needs" in text
    assert rows["E12"]["partitions"] is None


def test_what_was_only_simulated_is_counted_apart(results_folder):
    cases = [factories.case(), factories.case("on_node", partition="sim-mi250x")]
    factories.session(results_folder, cases)
    simulated = factories.simulated_document()
    for name in ("stream_local", "on_node"):
        factories.write(factories.case_folder(results_folder, name) / "result.json", simulated)
    end = "1 of 15 experiments have results in this session"
    assert f"{end}, 1 of those only simulated." in CliRunner().invoke(app, ["coverage"]).stdout
    factories.write(factories.case_folder(results_folder, "stream_local") / "result.json")
    text = CliRunner().invoke(app, ["coverage"]).stdout
    assert f"{end}." in text
    one_line = " ".join(text.split())
    assert "measured in local:host by the host runtime" in one_line
    assert "simulated in local:sim-mi250x by the sim runtime" in one_line
