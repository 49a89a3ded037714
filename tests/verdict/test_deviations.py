"""What loosens a limit, leaves out a check or runs other programs stands under the status."""

import sys
import typing
from types import SimpleNamespace

import pytest

import factories
from fabricheck.core import checkout
from fabricheck.core.checkout import ROOT
from fabricheck.judge.verdict.rules import RULES
from fabricheck.references import shipped
from fabricheck.results.metric_records import MetricRecord, write
from fabricheck.rfm import deviations, reframe_internals
from fabricheck.site.deviations import DeviationName
from session_builder import PARTITION, SessionBuilder, good_case, judge, rules

CHECKS = {"stream_local": "E1 smoke full", "p2p_engine": "E7 smoke full", "p2p_scan": "E7 full"}

#: By what a session recorded, words of the sentence.
RECORDED = {
    "other-references": (["/their/refs", "p2p.yaml"], "in /their/refs p2p.yaml differs."),
    "without-mpi": (["FABRICHECK_MPI=OFF"], "FABRICHECK_MPI=OFF left out checks of ranks on"),
    "changed-checks": (["-S tags=x"], "-S tags=x changed the checks of cluster:gpu."),
    "other-programs": (
        ["0.3.0 (aaaa)", "0.3.0 (bbbb)"],
        "they are 0.3.0 (bbbb), the checkout is 0.3.0 (aaaa). Build them again.",
    ),
}


def judged(tmp_path, *names, command="reframe -r --mode=smoke", **record):
    """Judge a session of some checks with what it recorded besides its checks."""
    cases = [(good_case(name), factories.document()) for name in names]
    results = SessionBuilder(tmp_path, command=command).each(cases).write()
    factories.recorded_checks(results / "output", PARTITION, **record, **CHECKS)
    return judge(results)["node1"]


def test_a_session_as_its_commit_states_it_has_none(tmp_path):
    assert judged(tmp_path, "stream_local", "p2p_engine").status == "PASS"


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_session_recorded_accepts_no_node(tmp_path, name):
    facts, words = RECORDED[name]
    found = judged(tmp_path, "stream_local", "p2p_engine", deviations={name: facts})
    assert (found.status, rules(found)) == ("INCOMPLETE", {name})
    assert words in found.reasons[0].sentence


@pytest.mark.parametrize("content", ["", None])
def test_a_session_whose_record_is_lost_accepts_no_node(tmp_path, content):
    stamp = factories.stamp(0)
    session = SessionBuilder(tmp_path, stamp=stamp).each(
        (good_case(name), factories.document()) for name in CHECKS
    )
    results = session.write()
    # Of a version before marks none is known to be lost.
    assert judge(results)["node1"].status == "PASS"
    factories.mark(results, 0, outputs=stamp)
    if content is not None:
        (results / "output" / "checks.json").write_text(content)
    found = judge(results)["node1"]
    assert (found.status, rules(found)) == ("INCOMPLETE", {"report"})
    assert "(checks.json) is lost or damaged" in found.reasons[0].sentence


@pytest.mark.parametrize("name", RECORDED)
def test_what_the_site_accepts_by_name_is_a_caveat(tmp_path, name):
    facts, words = RECORDED[name]
    record = {"deviations": {name: facts}, "accepts": [name]}
    found = judged(tmp_path, "stream_local", "p2p_engine", **record)
    assert (found.status, found.reasons) == ("PASS", [])
    assert any(words in caveat for caveat in found.caveats)


def test_it_stands_under_a_failure_too(tmp_path):
    results = SessionBuilder(tmp_path, command="reframe -r -n stream_local").missed().write()
    facts = {"other-references": ["/their/refs", "p2p.yaml"]}
    factories.recorded_checks(results / "output", PARTITION, facts, **CHECKS)
    found = judge(results)["node1"]
    assert (found.status, rules(found)) == ("PERF-FAIL", {"reference", "other-references"})


@pytest.mark.parametrize(
    ("options", "ran", "left_out"),
    [
        ("--mode=smoke -x p2p", ["stream_local"], "1 check of cluster:gpu: p2p_engine."),
        ("-n stream_local", ["stream_local"], "2 checks of cluster:gpu: p2p_engine, p2p_scan."),
        ("-t E1$", ["stream_local"], "2 checks of cluster:gpu: p2p_engine, p2p_scan."),
        ("--mode=smoke -x none", ["stream_local", "p2p_engine"], None),
    ],
)
def test_checks_that_options_left_out(tmp_path, options, ran, left_out):
    found = judged(tmp_path / "refused", *ran, command=f"reframe -r {options}")
    if left_out is None:
        assert found.status == "PASS"
        return
    assert (found.status, rules(found)) == ("INCOMPLETE", {"left-out-checks"})
    assert found.reasons[0].sentence.endswith(f" left out {left_out}")
    accepted = judged(
        tmp_path / "accepted", *ran, command=f"reframe -r {options}", accepts=["left-out-checks"]
    )
    assert accepted.status == "PASS"


def test_a_check_that_was_run_again_beside_its_set_leaves_nothing_out(tmp_path):
    for name, line, ran in (
        ("set", "reframe -r --mode=smoke", ("stream_local", "p2p_engine")),
        ("again", "reframe -r -n p2p_engine", ("p2p_engine",)),
    ):
        judged(tmp_path / name, *ran, command=line)
    assert judge(tmp_path / "set", tmp_path / "again")["node1"].status == "PASS"
    assert judge(tmp_path / "again")["node1"].status == "INCOMPLETE"


def test_a_check_of_a_set_that_no_session_ran_is_missing_beside_others(tmp_path):
    judged(tmp_path / "set", "stream_local")
    judged(tmp_path / "again", "stream_local", command="reframe -r -n stream_local")
    found = judge(tmp_path / "set", tmp_path / "again")["node1"]
    assert (rules(found), found.checks.missing) == ({"missing"}, ["p2p_engine"])


@pytest.mark.parametrize(
    ("lower", "upper", "unit", "rule", "wide"),
    [
        (-0.999, None, "GB/s", None, True),
        (-0.5, None, "GB/s", None, False),
        (None, 5.0, "us", None, True),
        (None, 1.0, "us", None, False),
        (-0.9, None, "GB/s", "ten times its time", False),
    ],
)
def test_a_limit_that_a_link_at_half_its_width_reaches(tmp_path, lower, upper, unit, rule, wide):
    values = {f"{PARTITION}:copy_worst": factories.judged(10.0, 10.0, lower, upper, unit)}
    case, document = good_case(perfvalues=values), factories.document()
    results = SessionBuilder(tmp_path).add(case, document).write()
    folder = factories.case_folder(results, case["unique_name"])
    write(folder, document, {"copy_worst": MetricRecord(series=(), reduce="worst", rule=rule)})
    found = judge(results)["node1"]
    assert rules(found) == ({"wide-limits"} if wide else set())
    if wide:
        assert found.reasons[0].sentence.startswith("1 limit accepts on cluster:gpu less than ")


def test_the_rule_by_which_a_site_accepts_it_is_on_the_screen(command, results_folder):
    SessionBuilder(results_folder).passed().write()
    facts = {"without-mpi": ["FABRICHECK_MPI=OFF"]}
    factories.recorded_checks(results_folder / "output", PARTITION, facts, **CHECKS)
    done = command("verdict", code=13)
    assert "  INCOMPLETE (without-mpi): FABRICHECK_MPI=OFF left out checks of" in done.output


def test_each_is_a_rule_of_its_name_that_accepts_no_node():
    for name in typing.get_args(DeviationName):
        assert (RULES[name].status, RULES[name].evidence) == ("INCOMPLETE", None)


@pytest.fixture
def folder(tmp_path):
    """A copy of the references of this commit."""
    for own in shipped.OWN_FOLDER.rglob("*.yaml"):
        copy = tmp_path / own.relative_to(shipped.OWN_FOLDER)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(own.read_bytes())
    return tmp_path


def test_a_copy_of_the_references_differs_where_it_was_changed(folder):
    assert list(shipped.differing_files(folder)) == []
    (folder / "of_own_checks.yaml").write_text("own: {}\n")
    (folder / "published_values.yaml").unlink()
    assert list(shipped.differing_files(folder)) == []
    with (folder / "p2p.yaml").open("a") as file:
        file.write("# looser\n")
    (folder / "stream.yaml").unlink()
    assert list(shipped.differing_files(folder)) == ["p2p.yaml", "stream.yaml"]


def test_references_changed_in_the_checkout_are_those_of_no_commit(tmp_path, monkeypatch):
    answers = {"describe": "abc-dirty\n", "diff": "reference_values/p2p.yaml\n"}

    def git(root, *arguments):
        return SimpleNamespace(returncode=0, stdout=answers[arguments[0]])

    monkeypatch.setattr(checkout, "_git", git)
    # A root of its own: that of an image states its commit in a file, and git is not asked.
    folder = ROOT / "reference_values"
    assert checkout.changed_files(folder, tmp_path) == ["p2p.yaml"]
    answers["describe"] = "abc\n"
    assert checkout.changed_files(folder, tmp_path) == []


@pytest.fixture
def partition(monkeypatch):
    """A partition whose programs CMake built, and a session without options."""
    monkeypatch.setattr(reframe_internals, "option", lambda name: None)
    monkeypatch.setattr(deviations.shipped, "differing_files", lambda folder: [])
    environment = SimpleNamespace(features=["stream"], extras={"runtime": "cuda"})
    return SimpleNamespace(features=["devices", "ranks"], environs=[environment], extras={})


@pytest.mark.parametrize(
    ("variable", "value", "facts"),
    [
        ("FABRICHECK_MPI", "OFF", ["FABRICHECK_MPI=OFF"]),
        ("FABRICHECK_CUDA_MPI_WITHOUT", "bcast", ["FABRICHECK_CUDA_MPI_WITHOUT=bcast"]),
        ("FABRICHECK_CUDA_MPI_WITHOUT", "", []),
    ],
)
def test_variables_that_leave_out_checks_of_ranks(partition, monkeypatch, variable, value, facts):
    monkeypatch.setenv(variable, value)
    found = deviations.when_started(partition, [])
    assert [list(each.facts) for each in found] == ([facts] if facts else [])
    partition.features.remove("ranks")
    assert deviations.when_started(partition, []) == []


def test_variables_of_checks_that_change_what_is_judged(partition, monkeypatch):
    given = ["p2p.tags=x", "seconds=9", "overlay=/a/b.yaml", "valid_systems=y"]
    monkeypatch.setattr(reframe_internals, "option", {"vars": given}.get)
    (found,) = deviations.when_started(partition, [])
    assert found.name == "changed-checks"
    assert list(found.facts) == ["-S p2p.tags=x", "-S valid_systems=y"]


def test_options_that_give_checks_other_variables_or_leave_out_their_hooks(partition, monkeypatch):
    given = {"parameterize": ["p2p.reference=a,b", "seconds=5,9"], "hooks": ["_declare_metrics"]}
    monkeypatch.setattr(reframe_internals, "option", given.get)
    (found,) = deviations.when_started(partition, [])
    assert found.name == "changed-checks"
    assert list(found.facts) == ["-P p2p.reference=a,b", "--disable-hook=_declare_metrics"]


def check_of(file, name, monkeypatch):
    """A class of a check as ReFrame loads it from a file."""
    module = f"check_{file.stem}"
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(__file__=str(file)))
    return type(name, (), {"__module__": module})


@pytest.mark.parametrize(
    ("name", "added", "differs"),
    [("p2p_engine", "", False), ("p2p_engine", "# looser\n", True), ("of_my_own", "# x\n", False)],
)
def test_a_check_of_this_commit_from_another_file(
    partition, monkeypatch, tmp_path, name, added, differs
):
    file = tmp_path / "p2p.py"
    file.write_text((ROOT / "reframe_checks/p2p/p2p.py").read_text() + added)
    found = deviations.when_started(partition, [check_of(file, name, monkeypatch)])
    assert [list(each.facts) for each in found] == ([[str(file)]] if differs else [])


def test_a_node_model_that_was_changed_in_the_checkout(partition, monkeypatch):
    partition.extras["node"] = "h200"
    monkeypatch.setattr(checkout, "changed_files", lambda folder: ["h200.yaml"])
    (found,) = deviations.when_started(partition, [])
    assert found.name == "other-references"
    partition.extras["node"] = "mi250x"
    assert deviations.when_started(partition, []) == []


def test_a_node_model_of_the_working_folder(partition, monkeypatch, tmp_path):
    partition.extras["node"] = "h200"
    monkeypatch.setattr(checkout, "changed_files", lambda folder: [])
    assert deviations.when_started(partition, []) == []
    model = tmp_path / "config" / "nodes" / "h200.yaml"
    model.parent.mkdir(parents=True)
    model.write_text((ROOT / "config/nodes/h200.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert deviations.when_started(partition, []) == []
    model.write_text(f"{model.read_text()}# looser\n")
    (found,) = deviations.when_started(partition, [])
    assert found.name == "other-references"
    assert list(found.facts) == [str(model.parent), "h200.yaml"]


def test_programs_of_other_sources(monkeypatch):
    monkeypatch.setattr(checkout, "commit", lambda: "aaaa")
    monkeypatch.setattr(checkout, "has_sources_of", lambda commit: commit == "aaaa")
    deviations._is_of_this_checkout.cache_clear()
    version = deviations.fabricheck.__version__
    assert deviations.of_programs([(version, "aaaa"), (version, "unknown")]) == []
    (found,) = deviations.of_programs([(version, "aaaa"), (version, "bbbb"), ("0.0.1", "aaaa")])
    deviations._is_of_this_checkout.cache_clear()
    assert found.name == "other-programs"
    assert list(found.facts) == [f"{version} (aaaa)", "0.0.1 (aaaa)", f"{version} (bbbb)"]
