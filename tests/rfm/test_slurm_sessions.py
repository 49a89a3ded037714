"""Sessions through a real Slurm of one node, with a queue per check and inside one allocation.

It counts the simulated node's eight devices.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from real_slurm import SITE, SLURM, Competitor, make_cluster, record, started, tell, until, used
from text_edit import edit

from fabricheck.node import node_directory
from fabricheck.results.document import load

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]

#: A program that says that it runs, and does not end by itself.
HANGS = '#!/bin/sh\n: > "{started}"\nexec sleep 3600\n'


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Start a Slurm of one node for the tests of this module."""
    with started(tmp_path_factory.mktemp("slurm")) as folder:
        yield folder


@pytest.fixture
def on_slurm(slurm, suite, monkeypatch):
    """The suite on that Slurm, which it leaves with an empty queue."""
    with used(slurm, monkeypatch):
        yield suite


@pytest.fixture
def cluster(on_slurm):
    """The suite on a cluster whose programs are those of the simulated node."""
    make_cluster(on_slurm, "affinity", "mpi", "stream", "topology")
    return on_slurm


@pytest.fixture
def hung(cluster):
    """Let the program stream hang; return the file that is there when it runs."""
    started = cluster.folder / "started"
    program = cluster.programs / "stream"
    program.write_text(HANGS.format(started=started))
    built = ROOT / "build" / "sim" / "bin"
    (cluster.programs / "inventory").symlink_to(built / "inventory")
    cluster.variables["FABRICHECK_SIM_PROGRAMS"] = str(cluster.programs)
    return started


def job_of(suite, check: str) -> str:
    """Return the job of the only check of its name that is in the queue."""
    (job,) = tell("squeue", "--noheader", "--format=%i", f"--name=rfm_{check}").split()
    return job


def case(suite, check: str) -> dict:
    (found,) = [one for one in suite.report()["runs"][0]["testcases"] if one["name"] == check]
    return found


def script(suite, check: str) -> str:
    (file,) = suite.results.glob(f"output/*/cluster/*/sim/{check}/rfm_job.sh")
    return file.read_text()


def test_a_check_in_the_queue_passes(cluster):
    outcome = cluster("--system=cluster:queue", "-r", "-n", "stream_local", "-n", "node_topology")
    assert outcome.status == 0, outcome
    assert "[ PASSED ] Ran 2/2 test case(s)" in outcome
    # It has the node, all devices of it, and one rank.
    for option in ("--exclusive", "--ntasks=1", "--ntasks-per-node=1", "--gpus-per-node=8"):
        assert f"#SBATCH {option}\n" in script(cluster, "stream_local")
    assert re.search("\nsrun --nodes=1 --ntasks=1 .*/stream ", script(cluster, "stream_local"))
    found = case(cluster, "stream_local")
    assert (found["job_nodelist"], found["job_exitcode"]) == (["localhost"], 0)
    known = record(found["jobid"])
    assert (known["JobState"], known["TresPerNode"]) == ("COMPLETED", "gres:gpu:8")


def test_each_of_two_checks_in_the_queue_fails_in_its_way(cluster):
    edit(cluster.config / "sites" / SITE.name, "1KiB:8GiB", "1024GiB")
    overlay = f"overlay={node_directory() / 'overlays' / 'device-3-memory-slow.yaml'}"
    checks = ("-n", "stream_local", "-n", "stream_scan")
    outcome = cluster("--system=cluster:queue", "-r", *checks, "-S", overlay)
    assert outcome.status == 1
    assert "Ran 2/2 test case(s) from 2 check(s) (2 failure(s)" in outcome
    assert "Metric copy_worst: device 3 of node mi250x (simulated) measured" in outcome
    # Known without accounting.
    said = "stream ended with exit code 3 (no such device, or not supported): device 0 has 64 GiB"
    assert said in outcome


def test_a_cancelled_job_fails_and_had_its_node_alone(cluster, hung, wording):
    run = cluster.start("--system=cluster:queue", "-r", "-n", "stream_local")
    until(hung.exists, "the program runs")
    job = job_of(cluster, "stream_local")
    competitor = Competitor(cluster.folder)
    until(competitor.is_kept_waiting, "the scheduler has looked at the competitor")
    tell("scancel", job)
    outcome = cluster.ended(run)
    assert outcome.status == 1
    wording(outcome.reasons)
    assert case(cluster, "stream_local")["fail_info"]["exc_type"] == "EndedBySchedulerError"
    assert competitor.started_after(job)


def test_a_job_over_its_time_limit_fails(cluster, hung, wording):
    run = cluster.start("--system=cluster:queue", "-r", "-n", "stream_local")
    until(hung.exists, "the program runs")
    # The limit is whole minutes: it is moved here, and Slurm looks at it twice a minute.
    tell("scontrol", "update", f"JobId={job_of(cluster, 'stream_local')}", "EndTime=now")
    outcome = cluster.ended(run)
    assert outcome.status == 1
    wording(outcome.reasons)


CHECKS = ("node_topology", "stream_local", "stream_scan")
ALLOCATION = ("salloc", "--quiet", "--exclusive", "--nodes=1", "--gpus-per-node=8", "--time=10")


def test_the_suite_runs_inside_one_allocation_and_alone(cluster):
    chosen = [part for name in CHECKS for part in ("-n", name)]
    run = cluster.start("--system=cluster:allocation", "-r", *chosen, inside=ALLOCATION)
    until(lambda: tell("squeue", "--noheader", "--states=RUNNING"), "the allocation is there")
    (job,) = tell("squeue", "--noheader", "--format=%i", "--states=RUNNING").split()
    competitor = Competitor(cluster.folder)
    until(competitor.is_kept_waiting, "the scheduler has looked at the competitor")
    outcome = cluster.ended(run)
    assert outcome.status == 0, outcome
    assert "[ PASSED ] Ran 3/3 test case(s)" in outcome
    assert competitor.started_after(job)
    # No check was a job of its own: the competitor's is still the latest of all.
    assert tell("squeue", "--states=all", "--noheader", "--format=%i", "--sort=-i").split()[0] == (
        competitor.job
    )
    for check in CHECKS:
        assert "#SBATCH" not in script(cluster, check)
        assert "\nsrun --nodes=1 --ntasks=1 " in script(cluster, check)


def test_a_check_over_its_time_limit_leaves_the_allocation_to_the_next(cluster, hung):
    stream = cluster.own_checks() / "stream" / "stream.py"
    # ReFrame's limit is later than the program's by GRACE_S = 30 s.
    edit(stream, '    program = "stream"\n', '    program = "stream"\n    seconds = -27\n')
    chosen = ("-n", "stream_local", "-n", "node_topology")
    run = cluster.start("--system=cluster:allocation", "-r", *chosen, inside=ALLOCATION)
    outcome = cluster.ended(run)
    assert outcome.status == 1
    assert re.search(r"FAIL.*stream_local", outcome.text)
    assert "job timed out" in outcome
    assert re.search(r"OK.*node_topology", outcome.text)


@pytest.mark.parametrize("partition", ["queue", "allocation"])
def test_an_aborted_program_has_an_aftermath_on_its_node(cluster, partition):
    built = ROOT / "build" / "sim" / "bin"
    stream = cluster.programs / "stream"
    stream.write_text(f'#!/bin/sh\nexec "{built}/stream" "$@" --inject-fault abort\n')
    (cluster.programs / "aftermath").symlink_to(built / "aftermath")
    cluster.variables["FABRICHECK_SIM_PROGRAMS"] = str(cluster.programs)
    inside = ALLOCATION if partition == "allocation" else ()
    arguments = (f"--system=cluster:{partition}", "-r", "-n", "stream_local")
    outcome = cluster.ended(cluster.start(*arguments, inside=inside))
    assert "stream was ended by signal 6 (exit code 134)" in outcome, outcome
    (file,) = cluster.results.glob("stage/*/cluster/*/sim/stream_local/result.json.partial")
    assert load(file)["aftermath"]["exit_code"] == 134
    # Under salloc the script may run on another machine: a step brings it to the node.
    line = r"trap 'timeout 20 (srun --nodes=1 --ntasks=1 .*)?/\S+/aftermath "
    found = re.search(line, (file.parent / "rfm_job.sh").read_text())
    assert found is not None and bool(found[1]) == bool(inside)


def test_ranks_are_started_by_srun(cluster):
    chosen = ("-n", "^affinity$", "-n", "^mpi_data$")
    outcome = cluster("--system=cluster:ranks", "-r", *chosen)
    assert outcome.status == 0, outcome
    assert "affinity: rank 1 on " in outcome
    assert "[ PASSED ] Ran 2/2 test case(s)" in outcome
    (job,) = cluster.results.glob("output/*/cluster/ranks/host/mpi_data/rfm_job.sh")
    assert "#SBATCH --ntasks=2\n" in job.read_text()
    assert re.search(r"^srun .*--ntasks=2 .*mpi ", job.read_text(), re.MULTILINE)


def test_ranks_are_started_by_srun_inside_an_allocation(cluster):
    chosen = ("-n", "^affinity$", "-n", "^mpi_data$")
    run = cluster.start("--system=cluster:ranks-allocation", "-r", *chosen, inside=ALLOCATION)
    outcome = cluster.ended(run)
    assert outcome.status == 0, outcome
    assert "[ PASSED ] Ran 2/2 test case(s)" in outcome


#: A program that notes how each of its ranks was started, and then is the stand-in of before.
NOTES = """#!/bin/sh
{{ printf '%s\\n' "$*"; env; }} > "{folder}/$(basename "$0").$SLURM_PROCID"
test ! -x "$0.stand-in" || exec "$0.stand-in" "$@"
"""

#: What a site calls `module`, as a function of the shell; this one notes what it is asked to load.
MODULE = '() { export LOADED="$LOADED $2"; }'

SITES_OF_AMD = pytest.mark.parametrize(
    ("system", "loaded"),
    [
        ("lumi", "CrayEnv PrgEnv-gnu cpe/25.03 gcc-native/14.2 craype-accel-amd-gfx90a rocm/6.3.4"),
        (
            "frontier",
            "craype-x86-trento craype-network-ofi libfabric xpmem "
            "PrgEnv-gnu cpe/24.11 gcc-native/13.2 craype-accel-amd-gfx90a rocm/6.2.4",
        ),
    ],
)


@pytest.fixture
def noting(on_slurm):
    """The suite with the repository's own sites, on a Slurm without accounting and modules."""
    suite = on_slurm
    suite.topics = ("affinity", "stream")
    (suite.programs / "stream").rename(suite.programs / "stream.stand-in")
    for name in ("stream", "affinity"):
        (suite.programs / name).write_text(NOTES.format(folder=suite.folder))
        (suite.programs / name).chmod(0o755)
    suite.variables |= {
        "FABRICHECK_ROCM_PROGRAMS": str(suite.programs),
        "FABRICHECK_QUEUE": "test",
        "FABRICHECK_SCHEDULER": "squeue",
        "FABRICHECK_ACCOUNT": "project_1",
        # What the stand-in tells of; its runtime is host.
        "FABRICHECK_HOST_DEVICES": "8",
        "BASH_FUNC_module%%": MODULE,
    }
    return suite


def noted(suite, program: str, rank: int) -> tuple[str, dict[str, str]]:
    """Return the arguments and the environment of one rank."""
    arguments, *lines = (suite.folder / f"{program}.{rank}").read_text().splitlines()
    return arguments, dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))


@SITES_OF_AMD
def test_jobs_of_a_real_site_are_started_and_no_stand_in_passes(noting, system, loaded):
    chosen = ("-n", "^stream_local$", "-n", "^affinity$")
    outcome = noting(f"--system={system}", "-r", *chosen)
    assert outcome.status == 1
    assert "Ran 2/2 test case(s) from 2 check(s) (2 failure(s)" in outcome
    # What ran is no ROCm program, and the other left nothing.
    assert "ran with runtime host; the environment requires rocm" in outcome
    assert "affinity left no usable result" in outcome
    _, environment = noted(noting, "stream", 0)
    assert environment["LOADED"].split() == loaded.split()
    assert environment["MPICH_GPU_SUPPORT_ENABLED"] == "1"
    assert environment["SLURM_NTASKS"] == "1"
    assert environment["SLURM_GPUS_PER_NODE"] == "8"
    for rank in range(8):
        arguments, environment = noted(noting, "affinity", rank)
        assert arguments.startswith("--map 0,1,2,3,4,5,6,7 --bind 49,57,17,25,1,9,33,41 ")
        assert environment["SLURM_NTASKS"] == "8"
    (job,) = noting.results.glob(f"stage/*/{system}/gpu/rocm/affinity/rfm_job.sh")
    assert {"#SBATCH --account=project_1", "#SBATCH --nodes=1"} <= set(job.read_text().splitlines())


def test_the_binding_of_frontier_is_taken_by_srun(noting):
    # That of LUMI needs Slurm 24.05, which is not here.
    outcome = noting("--system=frontier", "-r", "-n", "^affinity_site$")
    assert outcome.status == 1
    assert "affinity left no usable result" in outcome
    for rank in range(8):
        arguments, environment = noted(noting, "affinity", rank)
        assert arguments == "--time-limit 120 --output result.json"
        assert environment["SLURM_CPUS_PER_TASK"] == "7"


def test_the_same_partition_is_steps_inside_an_allocation(noting):
    run = noting.start("--system=lumi", "-r", "-n", "^affinity$", inside=ALLOCATION)
    outcome = noting.ended(run)
    assert outcome.status == 1
    assert "affinity left no usable result" in outcome
    assert [noted(noting, "affinity", rank)[1]["SLURM_NTASKS"] for rank in range(8)] == ["8"] * 8
    # Of the allocation, not of a job of its own.
    jobs = {noted(noting, "affinity", rank)[1]["SLURM_JOB_NAME"] for rank in range(8)}
    assert not any(name.startswith("rfm_") for name in jobs)


def test_outside_an_allocation_nothing_is_started(cluster, wording):
    outcome = cluster("--system=cluster:allocation", "-r", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_an_allocation_that_may_share_its_node_is_refused(cluster, wording):
    shared = [option for option in ALLOCATION if option != "--exclusive"]
    run = cluster.start("--system=cluster:allocation", "-r", "-n", "stream_local", inside=shared)
    outcome = cluster.ended(run)
    assert outcome.status == 1
    (refused,) = outcome.lines_with("ERROR")
    wording(re.sub(r"allocation \d+", "allocation JOB", refused))


def test_a_second_start_is_refused_by_a_sentence(slurm, wording):
    again = subprocess.run([SLURM, "start", slurm], capture_output=True, text=True, check=False)
    assert again.returncode == 4
    wording(again.stderr.replace(str(slurm), "FOLDER"))


def test_what_does_not_start_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    broken = tmp_path / "bin" / "slurmd"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no memory for slurmd >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    folder = tmp_path / "slurm"
    ended = subprocess.run([SLURM, "start", folder], capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    said = f"slurm.sh: slurmd did not start (log: {folder}/slurmd.localhost.out)"
    assert ended.stderr.splitlines() == ["no memory for slurmd", said]
    # Each removes its file when it has ended.
    assert not list(folder.glob("*.pid"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("start",), "too few arguments"),
        (("start", "here"), "'here' is not an absolute path"),
        (("begin", "/tmp"), "'begin' is neither start, stop nor kill"),
        (("start", "/tmp", "many"), "CORES, GPUS and NODES are whole numbers above 0"),
        (("start", "/tmp", "64", "8", "0"), "CORES, GPUS and NODES are whole numbers above 0"),
        (("kill", "/tmp"), "kill needs the name of a node"),
        (("kill", "/tmp/none", "node1"), "there is no Slurm in /tmp/none"),
    ],
)
def test_bad_usage_of_the_script(arguments, sentence):
    ended = subprocess.run([SLURM, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"slurm.sh: {sentence}; usage: ")
