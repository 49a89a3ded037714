"""`fabricheck limits show`: what it says of each metric, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import listing, stated
from fabricheck.references.entries import plain
from fabricheck.references.published import OWN_FOLDER, PREFIX_VARIABLE, of_folder
from fabricheck.references.stated import References
from fabricheck.site import partitions, this_machine
from session_builder import SessionBuilder
from site_dry_runs import H200_TOOLS

ROOT = Path(__file__).resolve().parents[2]
GPU = "lumi:gpu"
STREAM = {
    "copy_worst": {"unit": "GB/s", "entry": [1400, -0.15, None, "GB/s"]},
    "copy_median": {"unit": "GB/s", "entry": [1400, -0.15, None, "GB/s"]},
}
SCAN = {"triad_worst_block": {"unit": "GB/s", "entry": [0, None, None, "GB/s"]}}
SUM = {"copy_all_sum": {"unit": "GB/s", "entry": [204.8, -0.25, None, "GB/s"]}}
PEERS = {"read_switch18_worst": {"unit": "GB/s", "entry": [360, -0.1, None, "GB/s"]}}
COUNT = {"misplaced": {"unit": "count", "entry": [0, 0, 0, "count"]}}


def told(check: str, metrics: dict, partition: str = GPU) -> listing.CheckMetrics:
    return listing.CheckMetrics(check, partition, "rocm", metrics)


@pytest.fixture
def checks(monkeypatch):
    """Let the dry run tell what a test says."""
    found: list[listing.CheckMetrics] = []

    def asked(system, folders, names=()):
        return [one for one in found if not names or one.check in names]

    choose = partitions.choose

    def chosen(system):
        return [choose(name)[0] for name in dict.fromkeys(one.partition for one in found)]

    monkeypatch.setattr(listing, "ask", asked)
    monkeypatch.setattr(partitions, "choose", chosen)
    monkeypatch.delenv(PREFIX_VARIABLE, raising=False)
    return found


def test_named_checks_and_metrics_are_shown_alone_as_a_failure_names_them(command, checks, wording):
    checks += [told("stream_local", STREAM), told("stream_scan", SCAN)]
    rows = command("limits", "show", "--system", GPU, "copy_worst", json=True).json["references"]
    assert [(row["check"], row["metric"]) for row in rows] == [("stream_local", "copy_worst")]
    rows = command("limits", "show", "--system", GPU, "stream_scan", json=True).json["references"]
    assert [row["metric"] for row in rows] == ["triad_worst_block"]
    shown = command("limits", "show", "--system", GPU, "stream_local", "copy_median").stdout
    assert "copy_median" in shown and "copy_worst" not in shown and "1 metric: 1 with" in shown
    wording(command("limits", "show", "--system", GPU, "stream_local", "copy_wors", code=3).stderr)


def test_without_a_system_the_limits_are_those_of_the_latest_session(
    command, checks, tmp_path, monkeypatch, wording
):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "results"))
    checks += [told("stream_local", STREAM)]
    wording(command("limits", "show", code=2).stderr)
    SessionBuilder(tmp_path / "results").add(factories.case(system="lumi", partition="gpu")).write()
    assert "stream_local on lumi:gpu" in command("limits", "show").stdout
    two = [factories.case(), factories.case(partition="sim-mi250x")]
    SessionBuilder(tmp_path / "results", 1, start=factories.SESSION_START + 60).bare(two).write()
    wording(command("limits", "show", code=2).stderr)


def lines(command, *starts: str, system: str = GPU, code: int = 0) -> list[str]:
    """Return those lines of the text that start so."""
    shown = command("limits", "show", "--system", system, code=code).stdout.splitlines()
    return [line for line in shown if line.startswith(starts)]


def test_a_published_value_is_shown_with_its_document_and_what_it_was_measured_with(
    command, checks, wording
):
    checks.append(told("stream_local", STREAM))
    shown = command("limits", "show", "--system", GPU, json=True).json["references"]
    assert [(row["kind"], row["entry"]) for row in shown] == [
        (listing.ELSEWHERE, [1400, -0.15, None, "GB/s"])
    ] * 2
    wording(lines(command, "  copy_*", "[1]", "2 metrics"))


@pytest.mark.parametrize(
    ("partition", "kind"),
    [
        ("lumi:gpu", "published"),
        ("frontier:gpu", listing.ELSEWHERE),
        ("north:gpu", listing.ELSEWHERE),
    ],
)
def test_published_is_told_apart_by_the_machine_that_was_measured(partition, kind):
    """A site without measurements of its own has none by using LUMI's set."""
    entry = (25.2833, -0.4, None, "GB/s")
    metrics = {"h2d_pageable_near_worst": {"unit": "GB/s", "entry": entry}}
    found = told("memcpy_near_pageable", metrics, partition)
    sets = {"lumi:gpu": "lumi", "frontier:gpu": "frontier", "north:gpu": "frontier"}
    (row,) = listing.rows([found], References(OWN_FOLDER), sets, {})
    assert (row.kind, row.sources[0].system) == (kind, "lumi-g")


def test_acceptance_limits_are_no_measurements(command, checks, wording):
    entry = References(OWN_FOLDER).entries("p2p_kernel", "lumi")["write_links4_worst"]
    checks.append(told("p2p_kernel", {"write_links4_worst": {"unit": "GB/s", "entry": entry}}))
    (row,) = command("limits", "show", "--system", GPU, json=True).json["references"]
    assert row["kind"] == "derived"
    wording(lines(command, "  write_links4_worst", "[1]"))


def test_derived_values_say_of_what(command, checks, monkeypatch, wording):
    monkeypatch.setenv("FABRICHECK_NODE", "h200")
    checks.append(told("stream_concurrent", SUM))
    checks.append(told("p2p_kernel", PEERS, "local:gpu"))
    shown = command("limits", "show", "--system", GPU, json=True).json["references"]
    assert [row["kind"] for row in shown] == ["derived", "derived"]
    wording(lines(command, "  copy_all_sum", "  read_switch18_worst", "[1]", "[2]"))


def test_report_only_and_calibrated_values_are_told_apart(command, checks, wording):
    checks.append(told("stream_scan", SCAN))
    entry = References(OWN_FOLDER).entries("stream_local", "h200:x2")["copy_worst"]
    checks.append(told("stream_local", {"copy_worst": {"unit": "GB/s", "entry": entry}}, "h200:x2"))
    shown = command("limits", "show", "--system", GPU, json=True).json["references"]
    assert {row["metric"]: row["kind"] for row in shown} == {
        "copy_worst": "calibration", "triad_worst_block": "report only"
    }  # fmt: skip
    wording(lines(command, "  Report only", "  copy_worst", "[1]", "2 metrics"))


def test_a_metric_without_a_reference_is_named_and_ends_with_9(command, checks, wording):
    checks.append(told("stream_local", STREAM | {"new": {"unit": "GB/s", "entry": None}}))
    wording(lines(command, "  new", "3 metrics", "stream_local new", code=9))


def test_an_expected_check_that_tells_nothing_is_no_silent_gap(
    command, checks, monkeypatch, wording
):
    checks.append(told("stream_local", STREAM))
    checks.append(told("memcpy_numa", {}))
    wording(lines(command, "memcpy_numa on", code=9))


def test_what_weakens_a_limit_is_marked_and_explained(command, checks, monkeypatch, wording):
    checks.append(told("stream_local", STREAM))
    checks.append(told("affinity", COUNT))
    for version, expected in (("6.2.4", True), ("5.2.0", False)):
        monkeypatch.setattr(listing, "version_at_hand", lambda environment, v=version: v)
        wording(lines(command, GPU, "another version", "maximum", "one session"))
        first, *_, last = command("limits", "show", "--system", GPU, json=True).json["references"]
        words = [one["word"] for one in first["marks"]]
        assert words == ["another version"] * expected + ["maximum", "one session"]
        assert last["marks"] == []


def test_a_calibration_with_another_major_version_is_marked(command, checks, monkeypatch, wording):
    entry = References(OWN_FOLDER).entries("stream_local", "h200:x2")["copy_worst"]
    checks.append(told("stream_local", {"copy_worst": {"unit": "GB/s", "entry": entry}}, "h200:x2"))
    target = partitions.choose("h200:x2")[0]
    environment = {"extras": {"runtime": "cuda", "spack_environment": "local-cuda"}}
    here = replace(target, environments=[environment])
    monkeypatch.setattr(partitions, "choose", lambda system: [here])
    monkeypatch.setattr(listing, "version_at_hand", lambda environment: "14.1")
    shown = command("limits", "show", "--system", "h200:x2", json=True).json["references"]
    assert [mark["word"] for mark in shown[0]["marks"]] == ["another version"]
    wording(lines(command, "another version", system="h200:x2"))


def lock(**changed) -> dict:
    specs = {"a": {"name": "cmake", "version": "3"}, "b": {"name": "hip", "version": "6.2.4"}}
    return {
        "_meta": {"file-type": "spack-lockfile", "lockfile-version": 6},
        "roots": [{"hash": "b", "spec": "hip"}],
        "concrete_specs": specs | changed,
    }


def test_the_version_at_hand_is_that_of_the_lock(tmp_path):
    environment = {"extras": {"runtime": "rocm", "spack_environment": "lumi"}}
    installed, committed = tmp_path / "build", tmp_path / "spack-env"
    assert listing.version_at_hand(environment, (installed, committed)) is None
    (committed / "lumi").mkdir(parents=True)
    (committed / "lumi" / "spack.lock").write_text(json.dumps(lock()))
    assert listing.version_at_hand(environment, (installed, committed)) == "6.2.4"
    assert listing.version_at_hand({"extras": {"runtime": "rocm"}}, (committed,)) is None


def test_a_copied_lock_of_other_software_is_told(command, checks, tmp_path, monkeypatch, wording):
    """The site's spack.yaml was changed, and the lock beside it is the one that was copied."""
    committed = tmp_path / "spack-env"
    for part in ("common", "lumi"):
        shutil.copytree(ROOT / "spack-env" / part, committed / part)
    folders = (tmp_path / "build", committed)
    monkeypatch.setattr(listing.version_at_hand, "__defaults__", (folders,))
    monkeypatch.setattr(listing.disagreement, "__defaults__", (folders,))
    checks.append(told("stream_local", STREAM))
    assert command("limits", "show", "--system", GPU, json=True).json["disagreements"] == []
    file = committed / "lumi" / "spack.yaml"
    file.write_text(file.read_text().replace("6.3.4", "6.3.2"))
    wording(lines(command, GPU, str(file)))
    (sentence,) = command("limits", "show", "--system", GPU, json=True).json["disagreements"]
    assert "hip 6.3.2 (/opt/rocm-6.3.2), locked 6.3.4 (/opt/rocm-6.3.4)" in sentence


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        json.dumps(lock(b={"name": "hip"})),
        json.dumps(lock(b=["hip", "6.2.4"])),
        json.dumps(lock() | {"concrete_specs": None}),
    ],
    ids=["cut", "a list", "no version", "a list as spec", "no specs"],
)
def test_a_broken_lock_is_one_sentence(tmp_path, text):
    """Also where the lock that is committed is whole: what was installed counts first."""
    environment = {"extras": {"runtime": "rocm", "spack_environment": "lumi"}}
    installed, committed = tmp_path / "build", tmp_path / "spack-env"
    for folder, content in ((installed, text), (committed, json.dumps(lock()))):
        (folder / "lumi").mkdir(parents=True)
        (folder / "lumi" / "spack.lock").write_text(content)
    with pytest.raises(
        InvalidInputError,
        match=r"^[^\n]*spack\.lock: (it is not valid JSON|concrete_specs|it must contain)[^\n]*$",
    ):
        listing.version_at_hand(environment, (installed, committed))


def test_json_has_every_metric(command, checks):
    checks.append(told("stream_local", STREAM))
    found = command("limits", "show", "--system", GPU, json=True).json
    assert [row["metric"] for row in found["references"]] == ["copy_worst", "copy_median"]
    assert found["references"][0]["sources"][0]["versions"] == [["rocm", "5.7.0"]]
    assert found["silent_checks"] == []


def test_a_reference_that_reframe_does_not_use_is_refused(command, checks, wording):
    checks.append(told("stream_local", {"copy_worst": STREAM["copy_worst"] | {"entry": [9, 0, 0]}}))
    wording(command("limits", "show", "--system", GPU, code=4).stderr)


def test_the_folder_is_the_one_that_reframe_reads(command, checks, tmp_path, monkeypatch):
    content = (OWN_FOLDER / "stream.yaml").read_text()
    (tmp_path / "stream.yaml").write_text(content.replace("limit: [1400,", "limit: [7,"))
    monkeypatch.setenv(PREFIX_VARIABLE, str(tmp_path))
    checks.append(told("stream_local", STREAM))
    assert str(tmp_path) in command("limits", "show", "--system", GPU, code=4).stderr


@pytest.mark.parametrize("system", ["lumy", "lumi:cpu", ":gpu", ""])
def test_an_unknown_system_is_one_sentence(command, system):
    result = command("limits", "show", "--system", system, code=2)
    assert "There is no site" in result.stderr or "has no partition" in result.stderr
    assert result.stderr.count("\n") == 1


def test_expected_failures_are_compared_by_their_reference():
    entry = [1400, -0.05, None, "GB/s"]
    assert plain(["$xfail", "known", entry]) == entry


@pytest.mark.slow
def test_a_dry_run_tells_what_reframe_will_use(command, site_dry_run, monkeypatch):
    """Every metric of all checks of LUMI-G has a reference, and each is the file's."""
    asked = site_dry_run("lumi").told
    monkeypatch.setattr(listing, "ask", lambda system, folders, names=(): asked)
    monkeypatch.delenv(PREFIX_VARIABLE, raising=False)
    result = command("limits", "show", "--system", "lumi", json=True)
    found = result.json["references"]
    assert {row["partition"] for row in found} == {GPU}
    kinds = {(row["check"], row["metric"]): row["kind"] for row in found}
    assert kinds["p2p_kernel", "write_links4_worst"] == "derived"
    assert kinds["p2p_kernel", "read_links4_worst"] == "rule"
    assert kinds["p2p_kernel", "read_links2_2hops_worst"] == "report only"
    assert len(kinds) > 300


@pytest.mark.slow
def test_the_dry_run_of_a_command_tells_what_that_of_a_site_does(site_dry_run, monkeypatch):
    """Tests of the commands have the latter, which they share."""
    for name, value in H200_TOOLS.items():
        monkeypatch.setenv(name, value)
    shared = site_dry_run("h200", **H200_TOOLS).of("h200:x1")
    assert len(shared) > 10
    assert listing.ask("h200:x1", checks_folders()) == shared


def test_the_draft_of_this_machine_is_that_of_its_dry_run(tmp_path, monkeypatch):
    """The results folder has it; the dry run has a results folder of its own."""
    monkeypatch.delenv(this_machine.NODE, raising=False)
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    draft = this_machine.draft()
    draft.parent.mkdir()
    model = (ROOT / "config" / "nodes" / "h200.yaml").read_text()
    draft.write_text(model.replace("name: h200", f"name: {draft.stem}", 1))
    given = {}

    def run(line, env, **_):
        given.update(env)
        raise subprocess.TimeoutExpired(line, 0)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(InvalidInputError, match="took more than"):
        listing.ask(this_machine.NAME, checks_folders())
    assert given[this_machine.NODE] == str(draft)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("kth-bw-01", {"rocm": "5.7.0"}),  # its own words
        ("lab-osubw-sdma1-01", {"rocm": "5.4"}),
        ("lumirfm-rccl-1n", {"rocm": "6.2.1"}),  # a container
        ("stas-h200-allreduce-max", {"cuda": "13.0"}),
        ("paper-stream-local", {"rocm": "5.7.0"}),  # the setup of its source
        ("jsc-copy", {"rocm": "5.2.0"}),
        ("jsc-a100-copy", {"cuda": "11.5"}),  # the same setup, the other device
        ("epicure-lumi-single-h2d", {}),  # the page states none
        ("paper-ddr-bw", {}),  # theoretical
    ],
)
def test_what_a_record_was_measured_with(record, expected):
    assert References(OWN_FOLDER).data.versions(record) == expected


def test_no_checks_and_a_dry_run_that_reaches_none_are_sentences(tmp_path):
    with pytest.raises(NotFoundError, match="The checks were not found"):
        listing.ask("lumi", [])
    with pytest.raises(
        InvalidInputError, match=r"dry run on lumi reached no check.*contains no check"
    ):
        listing.ask("lumi", [tmp_path])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("hello\nrun: error: no such file\nLog file: x", "run: error: no such file"),
        ("FAILED 2\n  * Reason: pipeline hook\n  * Reason: b\nend", "Reason: pipeline hook"),
        ("[ReFrame]\n\x1b[31mERROR: stopped: why\x1b[0m\nLog file: x", "stopped: why"),
        ("one\nthe last", "the last"),
        ("", "nothing"),
    ],
)
def test_of_what_reframe_said_the_first_reason_is_shown(said, expected):
    assert listing.reason(said) == expected


def test_an_error_of_the_settings_is_shown(tmp_path, monkeypatch):
    broken = tmp_path / "settings.py"
    broken.write_text("site_configuration = 1 / 0\n")
    monkeypatch.setenv("RFM_CONFIG_FILES", str(broken))
    with pytest.raises(InvalidInputError, match=r"ended with exit code 1.*division by zero"):
        listing.ask("lumi", [tmp_path])


def test_what_stands_under_any_is_for_partitions_without_a_key(tmp_path):
    (tmp_path / "copies.yaml").write_text(
        "copies:\n"
        "  any: {$why: nobody has stated it, worst: [0, null, null, GB/s]}\n"
        "  lumi: {worst: [5, -0.1, null, GB/s]}\n"
        "  here:own: {median: [6, -0.1, null, GB/s]}\n"
    )
    found = References(tmp_path)
    assert found.entries("copies", "here:other") == {"worst": [0, None, None, "GB/s"]}
    assert found.entries("copies", "lumi:gpu", "lumi") == {"worst": [5, -0.1, None, "GB/s"]}
    # A metric that a partition's own entries lack is missing there.
    assert found.entries("copies", "here:own") == {"median": [6, -0.1, None, "GB/s"]}
    origin = found.origin("copies", "here:other", "worst")
    assert origin.kind == "report only" and origin.why == "nobody has stated it"
    assert found.origin("copies", "lumi:gpu", "worst", "lumi") is None


def test_a_partition_s_own_entries_come_before_those_of_its_set(tmp_path):
    (tmp_path / "copies.yaml").write_text(
        "copies:\n"
        "  any: {worst: [0, null, null, GB/s]}\n"
        "  lumi: {worst: [5, -0.1, null, GB/s]}\n"
        "  lumi:gpu: {worst: [6, -0.1, null, GB/s]}\n"
    )
    own = References(tmp_path).entries("copies", "lumi:gpu", "lumi")
    assert own == {"worst": [6, -0.1, None, "GB/s"]}


def test_a_file_that_changed_is_read_again(tmp_path):
    file = tmp_path / "copies.yaml"
    for number in (5, 6):
        file.write_text(f"copies:\n  here:gpu: {{worst: [{number}, -0.1, null, GB/s]}}\n")
        os.utime(file, (number, number))
        assert stated.references_in(tmp_path).entries("copies", "here:gpu")["worst"][0] == number


def test_a_metric_s_own_source_comes_before_the_reason_of_the_partition(tmp_path):
    (tmp_path / "copies.yaml").write_text(
        "copies:\n"
        "  lumi:\n"
        "    $why: nobody has stated it\n"
        "    quad_{worst,median}:\n"
        "      {limit: [0, null, null, us], source: {kind: report only, why: x}}\n"
        "    dual_worst: [0, null, null, us]\n"
        "    single_worst: [5, null, 0.1, us]\n"
    )
    found = References(tmp_path)
    whys = {metric: (origin := found.stated_origin("copies", "lumi", metric)) and origin.why
            for metric in found.stated("copies", "lumi")}  # fmt: skip
    assert whys == {
        "quad_worst": "x", "quad_median": "x", "dual_worst": "nobody has stated it",
        "single_worst": None,
    }  # fmt: skip


def test_a_folder_of_references_may_have_its_own_data_set(tmp_path):
    assert of_folder(tmp_path).records
    (tmp_path / "published_values.yaml").write_text("setups: []\nrecords: []\n")
    assert not of_folder(tmp_path).records


SITE = """\
small_copies:
  north:gpu:
    h2d_worst: {limit: [6.4, -0.1, null, GB/s], source: {kind: site, why: our vendor promised it}}
"""


def check(command, folder, text, monkeypatch):
    (folder / "small_copies.yaml").write_text(text)
    monkeypatch.setenv(PREFIX_VARIABLE, str(folder))
    return command("limits", "check", code=None)


def test_a_limit_of_the_site_with_its_sentence_is_right(command, tmp_path, monkeypatch, wording):
    done = check(command, tmp_path, SITE, monkeypatch)
    assert done.exit_code == 0
    wording(done.stdout)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", source: {kind: site, why: our vendor promised it}", "", "neither [value, lower,"),
        ("{limit: [6.4, -0.1, null, GB/s], source: {kind: site, why: our vendor promised it}}",
         "[6.4, -0.1, null, GB/s]",
         "small_copies on north:gpu: the limit of h2d_worst, [6.4, -0.1, null, GB/s], has no "
         "source: state one beside it (docs/limits.md)."),
        (", why: our vendor promised it", "",
         "small_copies.yaml, h2d_worst of small_copies on north:gpu: a limit of the site requires"),
        ("-0.1", "null", "[6.4, null, null, GB/s], has no limit"),
        ("[6.4, -0.1, null, GB/s]", "6.4", "h2d_worst, 6.4, is not [value, lower, upper, unit]."),
        ("[6.4, -0.1, null, GB/s]", "[6.4, -0.1, null]",
         "[6.4, -0.1, null], has no unit; the metric is in GB/s, us, count or %."),
        ("kind: site, why: our vendor promised it",
         "kind: derived, peak: memory, map: h200, efficiency: 0.5, why: a half",
         "does not hold: its source gives 2400 GB/s."),
        ("[6.4, -0.1, null, GB/s], source: {kind: site, why: our vendor promised it",
         "[2400, -0.1, null, GB/s], source: "
         "{kind: derived, peak: memory, map: h200, efficiency: 0.5, why: a half",
         "the limit of h2d_worst, [2400, -0.1, null, GB/s], needs '# Why the limits are as wide as "
         "they are: ...' at the head of the file."),
    ],
    ids=["no source", "a list", "no sentence", "no bounds", "a number", "no unit", "another value",
         "no why"],
)  # fmt: skip
def test_what_is_wrong_with_a_limit_is_one_sentence(command, tmp_path, monkeypatch, old, new, said):
    assert SITE.count(old) == 1
    done = check(command, tmp_path, SITE.replace(old, new), monkeypatch)
    assert done.exit_code == 4
    assert said in done.output and "Traceback" not in done.output


def test_a_reason_at_the_head_of_the_file_is_one_for_all_its_limits(
    command, tmp_path, monkeypatch, wording
):
    derived = SITE.replace("6.4", "2400").replace(
        "kind: site, why: our vendor promised it",
        "kind: derived, peak: memory, map: h200, efficiency: 0.5, why: a half",
    )
    two = derived + derived.splitlines()[-1].replace("h2d_worst", "h2d_median") + "\n"
    assert check(command, tmp_path, two, monkeypatch).output.count("needs '# Why") == 1
    done = check(
        command, tmp_path, f"# Why the limits are as wide as they are:\n# x\n{two}", monkeypatch
    )
    wording(done.stdout)


def test_a_limit_of_a_metric_that_is_no_more_is_named(command, checks, tmp_path, monkeypatch):
    text = SITE.replace("north:gpu", "lumi:gpu").replace("h2d_worst", "h2d_{worst,median}")
    check(command, tmp_path, text, monkeypatch)
    entry = [6.4, -0.1, None, "GB/s"]
    checks.append(told("small_copies", {"h2d_worst": {"unit": "GB/s", "entry": entry}}))
    said = "small_copies.yaml: small_copies has no metric h2d_median on lumi:gpu, and a limit for"
    assert said in " ".join(command("limits", "show", "--system", GPU).stdout.split())
    (sentence,) = command("limits", "show", "--system", GPU, json=True).json["unused"]
    assert sentence.startswith(said)
    # Which metrics there are between nodes depends on the nodes.
    checks[-1] = replace(checks[-1], tags=["E17"])
    assert command("limits", "show", "--system", GPU, json=True).json["unused"] == []


def test_a_limit_of_the_site_is_shown_with_its_sentence(command, checks, tmp_path, monkeypatch):
    entry = [6.4, -0.1, None, "GB/s"]
    text = SITE.replace("north:gpu", "lumi:gpu")
    check(command, tmp_path, text, monkeypatch)
    checks.append(told("small_copies", {"h2d_worst": {"unit": "GB/s", "entry": entry}}))
    shown = command("limits", "show", "--system", GPU).stdout
    assert "site" in shown and "our vendor promised it" in " ".join(shown.split())
    assert ", 1 stated by the site)" in " ".join(shown.split())
