"""What `site check` finds of a compute node, and how it ends."""

from __future__ import annotations

import pytest
from site_trees import NODE, USABLE, Tree, environment_of, said, target

import inventories
import site_files
from fabricheck import __version__
from fabricheck.core.errors import UsageError
from fabricheck.node import load, node_directory
from fabricheck.rfm import host
from fabricheck.run import site_check
from fabricheck.site import clusters, sites
from fabricheck.site.partitions import choose


@pytest.fixture
def tree(tmp_path):
    """A compute node as the partition states it."""
    tree = Tree(tmp_path)
    tree.devices()
    tree.inventory()
    return tree


def on(tree, **partition):
    """Return the partition whose programs are those of the tree."""
    return target(environment_of(tree.programs), **partition)


def lacks(tree, cores=USABLE, **partition):
    found = said(site_check.check_node(on(tree, **partition), tree.machine(cores=cores)))
    return [says for status, says in found if status == "missing"]


def test_a_node_as_it_should_be(tree, wording):
    found = said(site_check.check_node(on(tree), tree.machine()))
    assert {status for status, _ in found} == {"ok"}
    wording(found[0][1])
    assert "(8 gfx90a)" in found[1][1]
    wording(found[2][1])
    more = said(site_check.check_node(on(tree), tree.machine(cores=USABLE | {0, 8})))
    wording(more[2][1])


def test_on_a_login_node_nothing_of_it_is_seen(tmp_path, wording):
    login = Tree(tmp_path)
    found = said(site_check.check_node(target(), login.machine()))
    assert len(found) == 5
    assert found[0][0] == "not seen"
    wording(found[0][1])
    assert {status for status, _ in found} == {"not seen"}
    # A job, or who runs it, says otherwise; then nothing is excused.
    assert login.machine().because.startswith("because SLURM_JOB_ID is not set and no driver has")
    login.environ["SLURM_JOB_ID"] = "1"
    wording(login.machine().because)
    assert "missing" in {
        status for status, _ in said(site_check.check_node(target(), login.machine()))
    }
    del login.environ["SLURM_JOB_ID"]
    assert login.machine(compute=True).is_compute
    there = Tree_with_devices(login)
    wording(there.machine().because)
    assert not there.machine(compute=False).is_compute
    assert there.machine(compute=False).because == "as --login states"


def Tree_with_devices(tree):
    tree.devices()
    return tree


def test_another_number_and_architecture_of_devices(tree):
    stated = [{"type": "gpu", "arch": "gfx942", "num_devices": 4}]
    found = lacks(tree, devices=stated, extras={})
    assert found[0].startswith("The node shows 8 devices, but lumi:gpu states 4: request all")
    assert found[1].startswith("The devices are 8 gfx90a, but lumi:gpu states gfx942: choose")


def test_without_the_program_nothing_of_the_node_is_told(tree, wording):
    (tree.programs / "inventory").unlink()
    (sentence,) = lacks(tree)
    wording(sentence)


def test_cores_that_a_job_lacks(tree):
    (sentence,) = lacks(tree, cores=USABLE - {9, 10, 11})
    assert sentence.startswith("This process may not use cores 9-11, which mi250x needs")


def test_numa_domains_and_balancing(tree):
    tree.inventory(numa_balancing=1)
    (sentence,) = lacks(tree)
    assert sentence.startswith("Node node1 has NUMA balancing on")
    assert not lacks(tree, extras={"node": "mi250x", "numa_balancing": "note"})
    domains = inventories.composed(NODE)["domains"]
    domains[2]["cores"] = [0, 1, 2, 3]
    tree.inventory(domains=domains)
    assert any(
        one.startswith("NUMA domain 2: the cores 32-47 in mi250x, 0-3") for one in lacks(tree)
    )


def test_a_link_that_is_gone(tree):
    tree.inventory(load("mi250x", node_directory() / "overlays" / "link-0-6-gone.yaml"))
    (sentence,) = lacks(tree)
    assert sentence.startswith("Pair 0-6: ")


def test_an_nvidia_node(tmp_path, wording):
    tree = Tree(tmp_path)
    tree.put("/proc/driver/nvidia/gpus/0000:01:00.0/information")
    model = load("a100-booster")
    tree.inventory(model)
    environment = environment_of(tree.programs, runtime="cuda")
    about = {"devices": [{"arch": "sm_80", "num_devices": 4}], "extras": {"node": model.name}}
    assert tree.machine().is_compute
    machine = tree.machine(cores=frozenset(range(48)))
    found = said(site_check.check_node(target(environment, **about), machine))
    assert found[0][0] == "ok"
    wording(found[0][1])
    assert found[1][1].endswith("as stated (4 sm_80).")
    assert found[-1][0] == "ok"
    assert found[-1][1].startswith("As in a100-booster: devices, links")


def test_a_simulated_partition_has_no_node(tree):
    environment = environment_of("/my/bin", runtime="sim")
    assert not list(site_check.check_node(target(environment), tree.machine()))


def test_a_site_that_is_not_known():
    with pytest.raises(UsageError, match=r"There is no site 'lumix'; the sites are .*local, lumi"):
        choose("lumix")
    with pytest.raises(UsageError, match=r"The site lumi has no partition 'cpu'; it has gpu\."):
        choose("lumi:cpu")
    (one,) = choose("local:sim-mi250x")
    assert (one.name, one.devices) == ("local:sim-mi250x", len(NODE.devices))
    assert [environment["name"] for environment in one.environments] == ["sim"]


def test_how_the_command_ends(command, tmp_path, monkeypatch):
    tree = Tree(tmp_path)
    names = [name for name in clusters.PROGRAMS if name not in clusters.RANK_PROGRAMS]
    for name in names:
        tree.tool(name, f"echo '{__version__} (abc, runtime host)'", tmp_path / "programs")
    tree.tool("mpiexec")
    monkeypatch.setenv("PATH", str(tree.bin))
    monkeypatch.setenv("FABRICHECK_MPI", "OFF")
    monkeypatch.setenv("FABRICHECK_HOST_PROGRAMS", str(tmp_path / "programs"))
    good = command("site", "check", "local:host")
    assert f"local:host: {len(names) + 3} ok, 0 missing, 0 not seen" in good.output
    stray = command("site", "check", "local:host", env={"SLURM_JOB_ID": "1"})
    head = stray.output.splitlines()[0]
    assert head.endswith("a compute node (because SLURM_JOB_ID is set; --login overrides this)")
    (tmp_path / "programs" / "stream").unlink()
    bad = command("site", "check", "local:host", "--login", json=True, code=3)
    answer = bad.json
    assert (answer["kind"], answer["because"]) == ("login", "as --login states")
    statuses = [one["status"] for one in answer["partitions"]["local:host"]]
    assert statuses == ["ok", "ok", "missing", *["ok"] * (len(names) - 1)]


def test_programs_of_another_folder_need_no_spack(command, tmp_path, monkeypatch):
    tree = Tree(tmp_path)
    folder = tmp_path / "programs"
    for name in clusters.PROGRAMS:
        tree.tool(name, f"echo '{__version__} (abc, runtime rocm)'", folder)
    tree.tool("all_reduce_perf", folder=folder)
    tree.tool("osu_bw", "echo --accelerator", folder / "osu/mpi/pt2pt")
    tree.tool("mpirun")
    tree.tool("ldd", "echo '  libmpi.so.40 => /opt/openmpi/libmpi.so.40 (0x1)'")
    monkeypatch.setenv("PATH", str(tree.bin))
    monkeypatch.setenv("FABRICHECK_NODE", "mi300x")
    monkeypatch.setenv("FABRICHECK_ROCM_PROGRAMS", str(folder))
    monkeypatch.setenv("FABRICHECK_RCCL_TESTS", str(folder))
    monkeypatch.setenv("FABRICHECK_ROCM_OSU", str(folder / "osu"))
    ended = command("site", "check", "local:gpu", "--login")
    assert "Spack" not in ended.output
    # Those of the view need it.
    view = clusters.view("local-rocm") / "bin"
    monkeypatch.setenv("FABRICHECK_ROCM_PROGRAMS", str(view))
    ended = command("site", "check", "local:gpu", "--login", code=3)
    assert "Spack is not on the PATH" in ended.output


@pytest.mark.parametrize(
    ("system", "patterns", "machine", "status", "says"),
    [
        ("lumi", (), "nid005001", "ok", "'nid005001', matches ((ln|uan)"),
        (
            "north",
            [r"n\d+$"],
            "N1.hpc.example.edu",
            "ok",
            r"matches n\d+$ of north as 'N1': a sess",
        ),
        ("north", [r"n\d+$"], "x1.hpc", "missing", r"'x1.hpc' or 'x1', matches none of north's"),
        ("north", [r"n\d+$"], "nid005001", "missing", r"'nid005001', matches none of north's"),
        ("north", ["^$"], "n1", "ok", "--system=north chooses north."),
        ("local", (), "n1", "ok", "matches .* of local: a session needs no --system."),
        ("local", (), "nid005001", "ok", "of lumi: --system=local chooses local."),
    ],
)
def test_which_pattern_matches_this_machine(
    tmp_path, monkeypatch, system, patterns, machine, status, says
):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(host.socket, "getfqdn", lambda name: name)
    monkeypatch.setattr(host.socket, "gethostname", lambda: machine)
    if system == "north":
        site_files.write(tmp_path, system, *patterns)
        monkeypatch.setenv(sites.VARIABLE, str(tmp_path))
    target, *_ = choose(system)
    found = site_check.chosen_by_name(target, site_check.Machine())
    assert found.status == status
    assert says in found.says
