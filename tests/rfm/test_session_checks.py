"""The checks that each shipped partition has, and their record beside the results of a session."""

from __future__ import annotations

import ast
import importlib
import json
from types import SimpleNamespace

import pytest
import yaml
from reframe.core.runtime import temp_runtime
from reframe.frontend.executors import generate_testcases

import factories
import site_checks
from fabricheck.core.checkout import ROOT
from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.judge.verdict import judging
from fabricheck.results import reading
from fabricheck.rfm import reframe_internals, started_session
from fabricheck.rfm.findings import NicLoopbackCheck
from fabricheck.site import partitions, sets, sites
from session_builder import SessionBuilder
from site_dry_runs import H200_TOOLS

pytestmark = pytest.mark.slow

#: All programs and tools that a site file cannot know of.
INSTALLED = {
    **H200_TOOLS,
    "FABRICHECK_MPI": "ON",
    "FABRICHECK_HOST_OSU": "/osu",
    "FABRICHECK_ROCM_OSU": "/osu",
    "FABRICHECK_RCCL_TESTS": "/rccl",
    "FABRICHECK_SIM_OSU": "/osu",
}

#: The fewest checks of each set, all programs installed: smoke, node, full, network, soak. One
#: that vanishes is missed here.
COUNTS = {
    "cloud:mi300x": (7, 23, 71, 0, 1),
    "dardel:gpu": (8, 24, 72, 5, 1),
    "frontier:gpu": (9, 25, 73, 5, 1),
    "h200:x1": (3, 6, 16, 0, 1),
    "h200:x2": (7, 20, 56, 0, 1),
    "h200:x4": (7, 20, 56, 0, 1),
    "h200:x8": (7, 20, 56, 0, 1),
    "hunter:gpu": (8, 24, 70, 5, 1),
    "jureca:a100": (7, 21, 61, 5, 1),
    "jureca:mi250": (7, 23, 71, 0, 1),
    "leonardo:booster": (8, 22, 62, 5, 1),
    "local:gpu": (7, 23, 71, 0, 1),
    "local:host": (4, 9, 13, 0, 1),
    "local:sim-mi250x": (7, 23, 56, 0, 1),
    "lumi:gpu": (9, 25, 73, 5, 1),
    "tuolumne:gpu": (7, 23, 69, 5, 1),
}


def test_no_check_vanishes_from_a_shipped_site(tmp_path, monkeypatch, single_machine):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for variable, value in INSTALLED.items():
        monkeypatch.setenv(variable, value)
    single_machine("mi300x")
    loaded, found = [], {}
    for file in sites.files(sites.SHIPPED):
        site = sites.read(file)
        for system in site["systems"]:
            settings = tmp_path / f"{system['name']}.yaml"
            settings.write_text(
                yaml.safe_dump(site_checks.settings_of(system, site["environments"]))
            )
            with temp_runtime(str(settings), system["name"], {"systems/prefix": str(tmp_path)}):
                loaded = loaded or site_checks.load([ROOT / "reframe_checks"])
                for case in generate_testcases(loaded):
                    own = found.setdefault(case.partition.fullname, {})
                    own[type(case.check).__name__] = case.check.tags
    counts = {
        where: tuple(sum(name in tags for tags in own.values()) for name in sets.known())
        for where, own in found.items()
    }
    lacking = {
        where: counts.get(where)
        for where, least in COUNTS.items()
        if any(one < few for one, few in zip(counts.get(where, (0,) * 5), least, strict=True))
    }
    assert lacking == {} and counts.keys() == COUNTS.keys()
    every = partitions.able(partitions.known_sites())
    for where, own in found.items():
        experiments = {tag for tags in own.values() for tag in tags} & partitions.IMPLIED.keys()
        implied = {one for one, names in every.items() if where in {n.split()[0] for n in names}}
        assert experiments == implied, where


def test_checks_run_in_one_order_wherever_their_files_are_found_first(suite):
    """A file system lists the folders of checks in an order of its own."""
    orders = []
    for topics in (("stream", "memcpy"), ("memcpy", "stream")):
        suite.topics, told = topics, suite.folder / topics[0]
        suite.variables[ENV_METRICS] = str(told)
        assert suite("--dry-run", "-t", "smoke").status == 0
        orders.append([json.loads(line)["check"] for line in told.read_text().splitlines()])
    assert orders == [["memcpy_near", "stream_local"]] * 2


def test_a_record_that_cannot_be_read_is_named_and_loses_no_result(results_folder):
    SessionBuilder(results_folder).add(factories.case()).write()
    record = factories.recorded_checks(results_folder / "output", "local:host", stream_local="full")
    record.write_text(record.read_text()[:-20])
    found = reading.read([str(results_folder)])
    (problem,) = found.problems
    assert problem.sentence.startswith(str(record)) and len(list(found.checks)) == 1
    assert "INCOMPLETE" in {one.status for one in judging.judge(found)}


def test_a_check_that_only_an_allocation_has_is_not_lost_on_a_login_node(monkeypatch, tmp_path):
    class nic_loopback:
        tags = frozenset({"full"})
        depends_on_place = True

    class stream_local:
        tags = frozenset({"full", "E1"})

    partition = SimpleNamespace(fullname="lumi:gpu", features=["devices"], environs=[], extras={})
    session = object.__new__(started_session.StartedSession)
    unset = dict.fromkeys(("names", "restore_session", "vars", "parameterize", "hooks"))
    options = SimpleNamespace(**unset)
    monkeypatch.setattr(reframe_internals.session, "options", options)
    session._generated = [
        SimpleNamespace(check=kind(), partition=partition) for kind in (nic_loopback, stream_local)
    ]
    context = SimpleNamespace(output_prefix=str(tmp_path / "output" / "20260102T030405-1"))
    monkeypatch.setattr(started_session.runtime, "runtime", lambda: context)
    monkeypatch.setattr(started_session, "_whole_partitions", lambda: [partition])
    assert session.checks().partitions["lumi:gpu"].checks.keys() == {"stream_local"}
    assert NicLoopbackCheck.depends_on_place


def test_what_checks_import_late_is_there():
    """A check imports what judges when it judges, where only a run of it would notice."""
    for file in sorted((ROOT / "reframe_checks").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fabricheck"):
                there = vars(importlib.import_module(node.module))
                lacking = [one.name for one in node.names if one.name not in there]
                assert lacking == [], f"{file}: {node.module}"
