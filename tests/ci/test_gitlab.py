"""The pipeline of GitLab: valid by its schema, and each job keeps what tells of its result.

`ci/gitlab/try.sh` runs it, where gitlab-ci-local is installed.
"""

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from reframe.core.exceptions import ReframeError

import factories
from fabricheck.rfm.gitlab import child_pipeline
from session_builder import SessionBuilder

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "ci/gitlab").glob("*.sh"))
PIPELINE = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
TRIGGERS = {
    name: job
    for name, job in yaml.safe_load((ROOT / "ci/gitlab/partitions.yml").read_text()).items()
    if not name.startswith(".")
}
GUIDE = (ROOT / "docs/reference/gitlab.md").read_text()

VARIABLE = re.compile(r"\bFABRICHECK_[A-Z_]*")

#: Variables that Jacamar's runners read.
OF_JACAMAR = {"SCHEDULER_PARAMETERS", "CUSTOM_CI_BUILDS_DIR"}

#: Keys of a pipeline that are no jobs.
GLOBAL = {"workflow", "variables", "stages", "default", "include", "image", "cache"}


def jobs(pipeline):
    return {
        name: job
        for name, job in pipeline.items()
        if name not in GLOBAL and not name.startswith(".")
    }


def test_images_are_named_by_their_digest():
    """A tag can be another image tomorrow."""
    images = re.findall(r"^\s*image: (.*)$", (ROOT / ".gitlab-ci.yml").read_text(), re.MULTILINE)
    assert images
    for image in images:
        assert re.fullmatch(r"[a-z-]+:[a-z]+@sha256:[0-9a-f]{64}", image)


def schema_faults(*files):
    command = ["check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    """The child pipeline of the set smoke of local:host, as ReFrame generates it."""
    folder = tmp_path_factory.mktemp("child")
    environment = {
        "FABRICHECK_RESULTS": str(folder / "results"),
        "CI_PIPELINE_ID": "71",
        "FABRICHECK_ACCOUNT": "project_1",
        "FABRICHECK_SET": "smoke",
    }
    file = folder / "child.yml"
    reframe(environment, "--system=local:host", "-t", "smoke$", f"--ci-generate={file}")
    return file


def reframe(environment, *arguments, status=0):
    outcome = subprocess.run(
        ["reframe", "-c", "reframe_checks", *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "RFM_CONFIG_FILES": str(ROOT / "config/settings.py"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == status, outcome.stdout + outcome.stderr
    return " ".join((outcome.stdout + outcome.stderr).split())


def test_all_files_are_valid_by_gitlabs_schema():
    checked = schema_faults(ROOT / ".gitlab-ci.yml", *sorted((ROOT / "ci/gitlab").glob("*.yml")))
    assert checked.returncode == 0, checked.stdout


def test_the_example_of_github_is_valid_by_its_schema_and_keeps_what_tells():
    """Its actions are named by their commits: a tag can be another action tomorrow."""
    file = ROOT / "ci/github/measure.yml"
    command = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", file]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    steps = yaml.safe_load(file.read_text())["jobs"]["measure"]["steps"]
    assert [step.get("if") for step in steps] == [None, "always()", "always()"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", action)


def test_the_schema_tells_a_wrong_keyword(tmp_path):
    file = tmp_path / ".gitlab-ci.yml"
    file.write_text("job: {script: [true], artifacts: {wen: always}}\n")
    assert schema_faults(file).returncode == 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_bash_that_ends_at_the_first_failure(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    assert "set -euo pipefail" in text or 'source "$(dirname "$0")/environment.sh"' in text


def test_scripts_that_jobs_call_are_there():
    for job in jobs(PIPELINE).values():
        for script in re.findall(r"ci/gitlab/\S+\.sh", str(job["script"])):
            assert (ROOT / script).stat().st_mode & 0o100


def test_the_job_of_a_partition_starts_its_pipeline(monkeypatch):
    monkeypatch.setenv("FABRICHECK_NODE", "mi300x")
    sites = [
        runpy.run_path(str(file))["site_configuration"]
        for file in sorted((ROOT / "config/sites").glob("*.py"))
    ]
    partitions = {
        f"{system['name']}:{partition['name']}"
        for site in sites
        for system in site["systems"]
        for partition in system["partitions"]
    }
    without = sorted(partitions - set(TRIGGERS))
    assert not without, f"ci/gitlab/partitions.yml lacks {without}: add an entry for each"
    assert set(TRIGGERS) - {"own"} <= partitions
    for name in partitions:
        job = TRIGGERS[name]
        (include,) = job["trigger"]["include"]
        assert include["artifact"] == f"pipeline/children/{name.replace(':', '-')}.yml"
        system, _, partition = name.partition(":")
        assert f"=~ /^{system}(:{partition})?$/" in job["rules"][0]["if"]
    # What may be chosen in the page of a manual run starts one of them.
    for site in PIPELINE["variables"]["FABRICHECK_SITE"]["options"]:
        assert site in partitions or site in {one.partition(":")[0] for one in partitions}


def test_the_guide_has_the_variables_that_are_used_and_no_other():
    files = [ROOT / ".gitlab-ci.yml", *(ROOT / "ci/gitlab").iterdir()]
    used = {name for file in files for name in VARIABLE.findall(file.read_text())}
    # Folders of programs are the site files'.
    used -= {"FABRICHECK_HOST_PROGRAMS", "FABRICHECK_SIM_PROGRAMS", "FABRICHECK_"}
    # The name of a session is for any other CI: a job of GitLab judges a folder of its own.
    assert used == set(VARIABLE.findall(GUIDE)) - {"FABRICHECK_SESSION"}
    assert set(PIPELINE["variables"]) - {"GIT_CLEAN_FLAGS"} <= used | OF_JACAMAR
    assert set(re.findall(r"\b(?:SCHEDULER|CUSTOM_CI)_[A-Z_]+", GUIDE)) == OF_JACAMAR


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("FABRICHECK_SET", "smoky", "is not a set of checks: smoke, node, full and network are"),
        (
            "FABRICHECK_NODES",
            "0",
            "is not a number of nodes, list of their names, idle, avail or all",
        ),
        ("FABRICHECK_NODES", "node1; reboot", "is not a number of nodes"),
        ("FABRICHECK_RESERVATION", "a b", "is not a name that Slurm takes"),
        ("FABRICHECK_TIME", "1h", "is not a number of minutes"),
        ("FABRICHECK_SITE", "$(reboot)", "is not a system or system:partition"),
    ],
)
def test_a_value_that_can_not_be_is_a_sentence_before_anything_runs(name, value, sentence):
    ended = subprocess.run(
        [ROOT / "ci/gitlab/run.sh", "folder", "true"],
        env={"PATH": os.environ["PATH"], name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"run.sh: {name}='{value}' {sentence}")


@pytest.mark.parametrize("name", ["generate.sh", "every-node.sh"])
@pytest.mark.full
def test_a_site_that_is_not_configured_is_one_sentence(checkout, name):
    ended = script(checkout, name, FABRICHECK_SITE="local:nope", FABRICHECK_NODES="2")
    assert ended.returncode == 2
    sentence = f"{name}: ReFrame has no configuration of FABRICHECK_SITE='local:nope'"
    assert ended.stderr.splitlines()[-1] == sentence
    assert "Traceback" not in ended.stderr


@pytest.fixture
def checkout(tmp_path):
    """Return a folder with the scripts alone, in which they may write."""
    shutil.copytree(ROOT / "ci/gitlab", tmp_path / "ci/gitlab")
    for name in ("src", "config"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def script(checkout, name, *arguments, **variables):
    return subprocess.run(
        [checkout / "ci/gitlab" / name, *arguments],
        env={"PATH": os.environ["PATH"], "CI_PIPELINE_ID": "71", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def own_sites(folder, *partitions):
    """Write the file of a site of one's own, of this machine's memory."""
    folder.mkdir()
    text = (ROOT / "config/sites/local.py").read_text()
    (folder / "north.py").write_text(
        f"{text}\nmemory, _, *_ = site_configuration['systems'][0]['partitions']\n"
        f"north = {{'name': 'north', 'hostnames': ['^$'], 'partitions': "
        f"[memory | {{'name': name}} for name in {partitions}]}}\n"
        "environments = [{**site_configuration['environments'][0], 'target_systems': ['north']}]\n"
        "site_configuration = {'systems': [north], 'environments': environments}\n"
    )
    return str(folder)


def generated(checkout, **variables):
    """Run generate.sh, of one check."""
    (checkout / "reframe_checks").symlink_to(ROOT / "reframe_checks")
    return script(checkout, "generate.sh", FABRICHECK_OPTIONS="-n affinity", **variables)


@pytest.mark.slow
@pytest.mark.full
def test_a_site_of_ones_own_has_a_job_that_starts_its_pipeline(checkout):
    sites = own_sites(checkout / "sites", "gpu")
    ended = generated(checkout, FABRICHECK_SITE="north", FABRICHECK_SITES=sites)
    assert ended.returncode == 0, ended.stderr
    (include,) = TRIGGERS["own"]["trigger"]["include"]
    made = checkout / include["artifact"]
    assert "affinity north:gpu" in yaml.safe_load(made.read_text())
    assert made.read_text() == (checkout / "pipeline/children/north-gpu.yml").read_text()
    # The rule of each other job names its site; that of this one names them all.
    (rule,) = TRIGGERS["own"]["rules"]
    of_ours = re.search(r"!~ /\^\((.*)\)\(:\|\$\)/", rule["if"])[1].split("|")
    assert set(of_ours) == {name.partition(":")[0] for name in TRIGGERS} - {"own"}


@pytest.mark.full
def test_several_partitions_of_ones_own_are_not_started_at_once(checkout):
    sites = own_sites(checkout / "sites", "gpu", "fat")
    ended = generated(checkout, FABRICHECK_SITE="north", FABRICHECK_SITES=sites)
    assert ended.returncode == 2
    said = "generate.sh: north has several partitions: name one, as north:PARTITION"
    assert ended.stderr.splitlines()[-1] == said


def in_a_job(checkout, nodes, has):
    """Run every-node.sh inside of a job, as a batch runner of Jacamar starts it."""
    tools = checkout / "tools"
    tools.mkdir(exist_ok=True)
    partition = [{"name": "gpu", "scheduler": "slurm", "access": []}]
    for name, says in (("reframe", f"echo '{json.dumps(partition)}'"),
                       ("fabricheck", f'echo "$@" >> {checkout}/calls'),
                       ("salloc", "exit 9")):  # fmt: skip
        (tools / name).write_text(f"#!/bin/sh\n{says}\n")
        (tools / name).chmod(0o755)
    variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": has, "FABRICHECK_NODES": nodes}
    path = f"{tools}:{os.environ['PATH']}"
    ended = script(checkout, "every-node.sh", FABRICHECK_SITE="lumi:gpu", PATH=path, **variables)
    calls = checkout / "calls"
    return ended, calls.read_text() if calls.exists() else ""


def test_inside_of_the_job_of_a_batch_runner_no_other_is_asked_for(checkout):
    _, calls = in_a_job(checkout, "2", has="2")
    assert calls.startswith("every-node -- --system=lumi:gpu -c reframe_checks --tag smoke$\n")
    _, calls = in_a_job(checkout, "nid[001-002]", has="4")
    assert "every-node --nodes nid[001-002] -- --system=lumi:gpu" in calls
    ended, _ = in_a_job(checkout, "3", has="2")
    assert ended.returncode == 2
    assert "FABRICHECK_NODES is 3, and job 7 has 2 nodes: --nodes of SCHEDULER_PARAMETERS" in (
        ended.stderr
    )


def kept_verdict(checkout, name, pipeline, status):
    folder = checkout / "pipeline/kept" / str(pipeline) / name
    (folder / "report").mkdir(parents=True)
    (folder / "report/index.html").touch()
    (folder / "ended").write_text(f"{status}\n")
    (folder / "verdict.txt").write_text("Verdict on run-0: 1 PASS\nNode\n" if status != 4 else "")


@pytest.mark.parametrize(
    ("statuses", "ends"), [((0, 0), 0), ((0, 13), 13), ((13, 12), 12), ((12, 13), 12), ((4, 0), 4)]
)
def test_the_summary_ends_as_the_worst_verdict(checkout, statuses, ends):
    for name, status in zip(("site-one", "site-two"), statuses, strict=True):
        (checkout / "pipeline/children").mkdir(parents=True, exist_ok=True)
        (checkout / f"pipeline/children/{name}.yml").touch()
        kept_verdict(checkout, name, 71, status)
    ended = script(checkout, "summary.sh")
    assert ended.returncode == ends, ended.stderr
    assert (checkout / "pipeline/summary/site-two/report").is_dir()
    assert "site-two/report/index.html" in (checkout / "pipeline/summary/index.html").read_text()
    assert ("fabricheck verdict ended with 4" in ended.stdout) == (4 in statuses)


def test_a_child_without_a_verdict_of_this_pipeline_is_incomplete(checkout):
    kept_verdict(checkout, "site-one", 71, 0)
    kept_verdict(checkout, "site-two", 70, 0)
    ended = script(checkout, "summary.sh", "site-one", "site-two", "site-three")
    assert ended.returncode == 13
    said = ended.stdout.splitlines()
    assert "1 PASS" in said[0]
    assert all("no verdict of this pipeline in " in line for line in said[1:])
    assert not (checkout / "pipeline/summary/site-two").exists()
    page = (checkout / "pipeline/summary/index.html").read_text()
    assert "site-one/report" in page
    assert "site-two/report" not in page
    # Another pipeline that runs meanwhile has its own.
    assert (checkout / "pipeline/kept/70/site-two/ended").is_file()
    assert script(checkout, "summary.sh").returncode == 13


def test_verdicts_older_than_artifacts_are_not_kept(checkout):
    kept_verdict(checkout, "site-one", 71, 0)
    kept_verdict(checkout, "site-one", 9, 0)
    long_ago = time.time() - 30 * 86400
    os.utime(checkout / "pipeline/kept/9", (long_ago, long_ago))
    assert script(checkout, "summary.sh", "site-one").returncode == 0
    assert [path.name for path in (checkout / "pipeline/kept").iterdir()] == ["71"]


def test_jobs_that_left_nothing_are_incomplete(checkout):
    ended = script(checkout, "verdict.sh", "site:one", "pipeline/results/site-one/p2p_engine")
    assert ended.returncode == 13
    assert "pipeline/results/site-one/p2p_engine is not there: its job left nothing" in ended.stderr


@pytest.mark.full
def test_jobs_without_a_session_cost_the_others_no_verdict(checkout):
    SessionBuilder(checkout / "good").add(factories.case(), factories.document()).write()
    # One ended before its session began, the runner of the other is gone.
    (checkout / "early/logs").mkdir(parents=True)
    stale = checkout / "pipeline/kept/71/site-one.partial"
    stale.mkdir(parents=True)
    ended = script(checkout, "verdict.sh", "site:one", "good", "early", "gone")
    assert ended.returncode == 13, ended.stderr
    made = checkout / "pipeline/kept/71/site-one"
    assert (made / "ended").read_text() == "13\n"
    assert sorted(path.name for path in made.parent.iterdir()) == ["site-one"]
    rows = json.loads((made / "verdict.json").read_text())["nodes"]
    reasons = {row["node"]: [one["sentence"] for one in row["reasons"]] for row in rows}
    (said,) = [found for node, found in reasons.items() if node == "(no node)"]
    assert any("early" in one for one in said)
    assert any("gone" in one for one in said)
    assert len(reasons) == 2
    assert "stream_local" in (made / "metrics.txt").read_text()
    # What is published has pages and verdicts, no results.
    assert not (made / "output").exists()
    assert (checkout / "pipeline/verdict/site-one/output").is_dir()
    assert "gone has no usable session" in (made / "report/index.html").read_text()


def test_jobs_that_measure_keep_their_results_however_they_end():
    for name in ("smoke", "every-node", "verdict"):
        assert PIPELINE[name]["artifacts"]["when"] == "always"
        assert PIPELINE[name]["extends"] == ".machine"
    assert PIPELINE["smoke"]["artifacts"]["reports"].keys() == {"junit", "metrics"}
    # Nothing that measures is run again because it failed.
    assert PIPELINE[".machine"]["retry"]["when"] == ["runner_system_failure", "scheduler_failure"]


@pytest.mark.full
def test_a_child_is_valid_and_names_no_place_of_this_machine(child):
    checked = schema_faults(child)
    assert checked.returncode == 0, checked.stdout
    text = child.read_text()
    assert str(ROOT) not in text
    assert not re.search(r"(?<![\w}\"])/(?:tmp|home|work|usr|builds)/", text)


@pytest.mark.slow
def test_each_job_of_a_child_keeps_junit_and_results(child):
    found = jobs(yaml.safe_load(child.read_text()))
    verdict = found.pop("verdict local:host")
    assert found
    folders = []
    for name, job in found.items():
        check = name.removesuffix(" local:host")
        (folder,) = job["artifacts"]["paths"]
        assert folder == f"pipeline/results/local-host/{check}"
        assert job["artifacts"]["when"] == "always"
        assert job["artifacts"]["reports"] == {"junit": f"{folder}/junit.xml"}
        (line,) = job["script"]
        assert line.startswith(f"ci/gitlab/run.sh {folder} reframe ")
        assert "--system=local:host" in line
        assert f"--report-junit={folder}/junit.xml" in line
        # Nothing of it lies elsewhere than in the folder.
        assert line.count("--report-junit") == 1
        assert not re.search(r"--prefix|--report-file|-C ", line)
        # It measures this machine: one such job at a time has it.
        assert job["resource_group"] == "fabricheck-node-$FABRICHECK_RUNNER_TAG"
        folders.append(folder)
    assert verdict["script"] == [f"ci/gitlab/verdict.sh local:host {' '.join(folders)}"]
    assert verdict["when"] == "always"
    assert "allow_failure" not in verdict
    assert set(verdict["artifacts"]["reports"]) == {"metrics"}


def test_a_child_has_what_its_parent_was_started_with(child):
    made = yaml.safe_load(child.read_text())
    assert made["variables"]["FABRICHECK_PIPELINE"] == "71"
    assert made["variables"]["FABRICHECK_ACCOUNT"] == "project_1"
    # Its verdict asks whether this set is whole.
    assert made["variables"]["FABRICHECK_SET"] == "smoke"
    assert made["default"]["tags"] == ["$FABRICHECK_RUNNER_TAG", "$FABRICHECK_RUNNER_KIND"]
    # A Jacamar runner refuses a job without it.
    assert made["default"]["id_tokens"] == PIPELINE[".machine"]["id_tokens"]
    # A merge request's child would have no job without it.
    assert made["workflow"] == {"rules": [{"when": "always"}]}


@pytest.mark.full
def test_what_decides_how_a_check_runs_is_in_its_job(tmp_path):
    file = tmp_path / "child.yml"
    overlay = ROOT / "config/nodes/overlays/link-0-6-gone.yaml"
    own = {"FABRICHECK_RESULTS": str(tmp_path / "results")}
    chosen = ("--system=local:sim-mi250x", "-n", "p2p_engine$", f"--ci-generate={file}")
    reframe(own, *chosen, "-S", f"overlay={overlay}")
    job = yaml.safe_load(file.read_text())["p2p_engine local:sim-mi250x"]
    relative = overlay.relative_to(ROOT)
    assert f'-Soverlay="$CI_PROJECT_DIR"/{relative}' in job["script"][0]

    assert "--repeat cannot be used with --ci-generate" in reframe(
        own, *chosen, "--repeat=2", status=1
    )


@pytest.mark.full
def test_a_job_that_measures_again_measures_the_first_as_well(tmp_path):
    file = tmp_path / "child.yml"
    own = {"FABRICHECK_RESULTS": str(tmp_path / "results")}
    reframe(own, "--system=local:sim-mi250x", "-n", "^stream_again$", f"--ci-generate={file}")
    (line,) = yaml.safe_load(file.read_text())["stream_again local:sim-mi250x"]["script"]
    words = shlex.split(line.partition(" reframe ")[2])
    ran = reframe(own, *(word for word in words if not word.startswith("--report-junit")))
    assert "Ran 2/2 test case(s)" in ran
    assert re.search(r"\(2/2\) stream_again", ran), ran


def test_a_job_has_no_file_outside_of_the_repository(tmp_path):
    elsewhere = tmp_path / "overlay.yaml"
    elsewhere.touch()
    case = Mock(deps=(), check=Mock(unique_name="p2p_engine"))
    made = {"p2p_engine": {"script": ["reframe -n /1234abcd"], "artifacts": {"paths": []}}}
    with pytest.raises(ReframeError, match=f"The path {elsewhere} is outside {ROOT}"):
        child_pipeline(made, [case], "local:sim-mi250x", [f"-Soverlay={elsewhere}"])


def test_junit_names_the_files_of_the_checkout_and_the_status_stays(tmp_path):
    (tmp_path / "ci" / "gitlab").mkdir(parents=True)
    for name in ("run.sh", "environment.sh"):
        shutil.copy(ROOT / "ci" / "gitlab" / name, tmp_path / "ci" / "gitlab")
    line = f'<testcase classname="{tmp_path}/reframe_checks/p2p/p2p.py" name="p2p"/>'
    ended = subprocess.run(
        ["ci/gitlab/run.sh", "folder", "sh", "-c", f"echo '{line}' > folder/junit.xml; exit 3"],
        cwd=tmp_path, env=os.environ | {"CI_PROJECT_DIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    file = "reframe_checks/p2p/p2p.py"
    expected = f'<testcase classname="{file}" file="{file}" name="p2p"/>\n'
    assert (tmp_path / "folder" / "junit.xml").read_text() == expected
