"""What the sites with a batch system share: how a partition is reached, and what it must run."""

from __future__ import annotations

import re

import pytest

from fabricheck.core import checkout
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.rfm import host
from fabricheck.schedulers.table import SLURM
from fabricheck.site import clusters, sites

INSIDE = {"SLURM_JOB_ID": "7"}


def test_on_a_login_node_each_check_is_a_job():
    assert clusters.reached("gpu", "--gres=gpu:4", environment={}) == {
        "scheduler": "slurm",
        "launcher": "srun",
        "max_jobs": 4,
        "access": ["--partition=gpu", "--gres=gpu:4"],
        "sched_options": {"use_nodes_option": True},
    }


def test_who_asks_and_where_is_said_by_variables():
    environment = {
        "FABRICHECK_ACCOUNT": "project_1",
        "FABRICHECK_RESERVATION": "night",
        "FABRICHECK_QOS": "debug",
        "FABRICHECK_QUEUE": "dev",
        "FABRICHECK_SCHEDULER": "squeue",
    }
    found = clusters.reached("gpu", environment=environment)
    assert found["scheduler"] == "squeue"
    assert found["access"] == [
        "--partition=dev",
        "--account=project_1",
        "--reservation=night",
        "--qos=debug",
    ]


@pytest.mark.parametrize("variable", [*SLURM.job_options, "FABRICHECK_QUEUE"])
def test_white_space_is_no_account_and_no_part_of_one(variable):
    assert clusters.reached("gpu", environment={variable: " "})["access"] == ["--partition=gpu"]
    padded = clusters.reached("gpu", environment={variable: " a "})["access"]
    assert padded[-1].endswith("=a")
    with pytest.raises(InvalidInputError, match=f"^{variable}='a b' contains white space.$"):
        clusters.reached("gpu", environment={variable: "a b"})


def test_a_variable_that_is_none_of_its_values_is_refused(monkeypatch):
    both = ("jureca-mi250", "jureca-mi250-ompi5")
    monkeypatch.delenv("FABRICHECK_JURECA_MI250", raising=False)
    assert clusters.one_of("FABRICHECK_JURECA_MI250", both) == "jureca-mi250"
    monkeypatch.setenv("FABRICHECK_JURECA_MI250", "jureca-mi250-ompi5")
    assert clusters.one_of("FABRICHECK_JURECA_MI250", both) == "jureca-mi250-ompi5"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("FABRICHECK_NODE", "h2000", "h2000: There is no node model 'h2000'"),
        (
            "FABRICHECK_NODE",
            "/my/node.yaml",
            "/my/node.yaml: /my/node.yaml: there is no such file.",
        ),
        (
            "FABRICHECK_NODE",
            "my.yaml",
            "my.yaml is not an absolute path: write FABRICHECK_NODE=$PWD/my.yaml.",
        ),
        (
            "FABRICHECK_JURECA_MI250",
            "typo",
            "typo must be one of jureca-mi250, jureca-mi250-ompi5.",
        ),
    ],
)
def test_a_site_names_the_variable_that_is_wrong(monkeypatch, variable, value, sentence):
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidInputError) as error:
        sites.gather(checkout.ROOT / "config" / "sites")
    assert re.search(rf"^Site file \S+: {variable}={re.escape(sentence)}", str(error.value))


def test_inside_an_allocation_each_check_is_a_step():
    found = clusters.reached("gpu", environment=INSIDE)
    assert (found["scheduler"], found["launcher"], found["max_jobs"]) == ("local", "srun", 1)


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({}, ["a", "b"]),
        # Left over from elsewhere: no job is around this session.
        ({"SLURM_JOB_PARTITION": "gpu-b"}, ["a", "b"]),
        (INSIDE | {"SLURM_JOB_PARTITION": "gpu-b"}, ["b"]),
        (INSIDE | {"SLURM_JOB_PARTITION": "other"}, ["a", "b"]),
    ],
)
def test_inside_an_allocation_only_the_partition_of_its_nodes_is_there(environment, names):
    partitions = [{"name": one, "access": [f"--partition=gpu-{one}"]} for one in ("a", "b")]
    found = clusters.of_this_job(*partitions, environment=environment)
    assert [one["name"] for one in found] == names


def test_a_partition_is_what_its_node_model_is():
    amd = clusters.node("mi250x", references="lumi", noise_limit=0.2)
    assert amd["devices"] == [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}]
    assert {"sdma", "xnack", "several_domains"} <= set(amd["features"])
    assert (amd["extras"]["references"], amd["extras"]["noise_limit"]) == ("lumi", 0.2)
    nvidia = clusters.node("h200", references="nvidia")
    assert not {"sdma", "xnack", "several_domains"} & set(nvidia["features"])


@pytest.mark.parametrize(
    ("name", "architecture", "expected"),
    [
        # KFD registers no device memory for page migration where it is that of the host.
        ("mi300a", "gfx942", {"sdma", "xnack"}),
        ("mi300x", "gfx942", {"sdma", "xnack", "managed_memory"}),
        ("mi210", "gfx90a", {"sdma", "xnack", "managed_memory"}),
        ("mi355x", "gfx950", {"sdma", "xnack", "managed_memory"}),
        ("h200", "sm_90", {"managed_memory"}),
        ("b200", "sm_100", {"managed_memory"}),
    ],
)
def test_features_follow_from_the_architecture_and_where_memory_is(name, architecture, expected):
    found = clusters.node(name, references="amd")
    assert found["devices"][0]["arch"] == architecture
    assert {"sdma", "xnack", "managed_memory"} & set(found["features"]) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a100-booster", True), ("a100-jureca", True), ("mi250x", False), ("h200", False)],
)
def test_ranks_far_from_their_devices_are_where_a_domain_has_none(name, expected):
    found = clusters.node(name, references="nvidia")
    assert ("far_domain" in found["features"]) == expected


def test_a_node_model_that_is_not_there_is_one_sentence():
    with pytest.raises(NotFoundError, match="There is no node model 'b20'"):
        clusters.node("b20", references="nvidia")


def test_no_programs_of_an_unknown_runtime():
    with pytest.raises(ValueError, match="runtime 'rcom': write rocm or cuda"):
        clusters.programs("rcom", "lumi")


def test_programs_are_in_the_view_unless_a_variable_names_them(monkeypatch):
    for name in ("ROCM_PROGRAMS", "ROCM_OSU", "RCCL_TESTS"):
        monkeypatch.delenv(f"FABRICHECK_{name}", raising=False)
    view = checkout.ROOT / "build" / "spack" / "lumi" / "view"
    found = clusters.programs("rocm", "lumi")
    assert "rccl-tests" in found["features"]
    assert found["extras"] == {
        "runtime": "rocm",
        "programs": str(view / "bin"),
        "osu_folder": str(view / "libexec" / "osu-micro-benchmarks"),
        "rccl_folder": str(view / "bin"),
        "build_command": "spack-env/install lumi",
        "spack_environment": "lumi",
    }
    for name in ("ROCM_PROGRAMS", "ROCM_OSU", "RCCL_TESTS"):
        monkeypatch.setenv(f"FABRICHECK_{name}", f"/opt/{name}")
    found = clusters.programs("rocm", "lumi")
    folders = [found["extras"][key] for key in ("programs", "osu_folder", "rccl_folder")]
    assert folders == ["/opt/ROCM_PROGRAMS", "/opt/ROCM_OSU", "/opt/RCCL_TESTS"]
    # What was not built by Spack is built again by CMake, for the devices of a partition.
    assert clusters.build_command(found["extras"], ["gfx90a"]) == (
        "cmake -S . -B build/rocm -DFABRICHECK_RUNTIME=rocm -DFABRICHECK_MPI=ON "
        "-DCMAKE_HIP_ARCHITECTURES=gfx90a && cmake --build build/rocm"
    )


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("build/spack/local/view/bin", "local"),
        ("build/spack/local/view-sim/bin", "local"),
        ("build/spack/local2/view/bin", None),
        ("build/host/bin", None),
    ],
)
def test_local_names_its_spack_environment_only_for_programs_of_it(monkeypatch, folder, expected):
    monkeypatch.setenv("FABRICHECK_HOST_PROGRAMS", str(checkout.ROOT / folder))
    monkeypatch.setenv("FABRICHECK_SIM_PROGRAMS", str(checkout.ROOT / folder))
    environments = sites.gather(checkout.ROOT / "config" / "sites")["environments"]
    stated = {one["name"]: one["extras"].get("spack_environment") for one in environments}
    assert (stated["host"], stated["sim"]) == (expected, expected)


def test_ranks_of_the_host_are_started_by_the_mpi_of_make_build_whatever_the_path_has():
    environments = sites.gather(checkout.ROOT / "config" / "sites")["environments"]
    (host,) = [one for one in environments if one["name"] == "host"]
    own = checkout.ROOT / ".venv" / "mpich" / "bin"
    assert (own / "mpiexec").exists()
    assert ["PATH", f"{own}:$PATH"] in host["env_vars"]


def test_a_machine_is_called_as_the_site_calls_it(monkeypatch):
    monkeypatch.setattr(host.socket, "gethostname", lambda: "uan01")
    for name in host.NAMED_BY:
        monkeypatch.delenv(name, raising=False)
    assert host.system_name() == "uan01"
    monkeypatch.setenv("SNIC_RESOURCE", "dardel")
    monkeypatch.setenv("LMOD_SYSTEM_NAME", "dardel")
    assert host.system_name() == "uan01 dardel"
