"""Site files that lack what the checks rely on, or define a thing twice, are refused by name."""

from __future__ import annotations

import math
import platform
import re
import runpy

import pytest

from fabricheck.core import checkout, yaml_files
from fabricheck.core.errors import InvalidInputError
from fabricheck.site import sites, software

#: The Spack environments of a site that is of another date with another one.
OTHER_SOFTWARE = {
    "lumi": ["lumi", "lumi-25.09"],
    "frontier": ["frontier", "frontier-26.03"],
    "dardel": ["dardel", "dardel-26.03"],
}

BOUND = {"value": 1600.0, "origin": "published", "how": "the data sheet"}
EXTRAS = {"physical_bounds": {"GB/s": BOUND}}
DEVICES = [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}]
PARTITION = {
    "name": "gpu", "scheduler": "slurm", "environs": ["rocm"], "devices": DEVICES, "extras": EXTRAS
}  # fmt: skip
SYSTEM = {"name": "lumi", "hostnames": ["nid.*"], "partitions": [PARTITION]}
ENVIRONMENT = {
    "name": "rocm",
    "target_systems": ["lumi"],
    "extras": {"runtime": "rocm", "programs": "/opt/bin", "build_command": "make build"},
}
SITE = {"systems": [SYSTEM], "environments": [ENVIRONMENT]}


def write(folder, name, site):
    # Python has no literals for these two.
    text = re.sub(r"\b(inf|nan)\b", r"float('\1')", repr(site))
    (folder / name).write_text(f"site_configuration = {text}")


def changed(content, path, value):
    """Return a copy of nested lists and dicts with one place changed, or removed by `...`."""
    first, *rest = path
    content = content.copy()
    if rest:
        content[first] = changed(content[first], rest, value)
    elif value is ...:
        del content[first]
    else:
        content[first] = value
    return content


@pytest.mark.parametrize(
    ("site", "environment"),
    [(site, one) for site, names in OTHER_SOFTWARE.items() for one in names],
)
def test_modules_have_the_versions_of_the_spack_environment(site, environment, monkeypatch):
    """A site's software may be chosen by a variable."""
    monkeypatch.setenv(f"FABRICHECK_{site.upper()}", environment)
    found = sites.gather(checkout.ROOT / "config" / "sites")["environments"]
    (here,) = [one for one in found if one["target_systems"] == [site]]
    assert here["extras"]["spack_environment"] == environment
    assert f"/build/spack/{environment}/view/" in here["extras"]["programs"]
    modules = dict(one.split("/") for one in here["modules"] if "/" in one)
    described = software.versions(checkout.ROOT / "spack-env" / environment)
    assert list(described["hip"]) == list(described["rccl"]) == [modules["rocm"]]
    (compiler,) = described["gcc"]
    assert compiler.startswith(modules["gcc-native"])


def test_modules_that_are_assumed_to_go_together_are_loaded_together():
    """What the page of assumptions says of modules is of those that the site files load."""
    page = (checkout.ROOT / "docs" / "evidence" / "not-run.md").read_text()
    assumed = re.findall(r"`([\w-]+/[\d.]+)` exists beside `([\w-]+/[\d.]+)`", page)
    files = (checkout.ROOT / "config" / "sites").glob("*.py")
    lists = [line for file in files for line in re.findall(r"\[[^\]]*\]", file.read_text())]
    assert assumed
    for pair in assumed:
        assert any(all(f'"{module}"' in modules for module in pair) for modules in lists), pair


def test_no_shipped_partition_without_jobs_measures_twice_at_once(monkeypatch):
    """Where no scheduler gives a job its node alone, `max_jobs` does, but for what is simulated."""
    monkeypatch.setenv("FABRICHECK_NODE", "mi300x")
    without_jobs = {}
    for file in sorted((checkout.ROOT / "config" / "sites").glob("*.py")):
        for system in runpy.run_path(str(file))["site_configuration"]["systems"]:
            for partition in system["partitions"]:
                if partition["scheduler"] == "local" and "simulated" not in partition["features"]:
                    name = f"{system['name']}:{partition['name']}"
                    without_jobs[name] = partition.get("max_jobs")
    assert {"local:host", "h200:x8"} <= without_jobs.keys()
    assert {*without_jobs.values()} == {1}


def test_software_that_a_site_has_not_is_refused(monkeypatch):
    monkeypatch.setenv("FABRICHECK_DARDEL", "frontier")
    with pytest.raises(
        InvalidInputError, match="FABRICHECK_DARDEL=frontier must be one of dardel,"
    ):
        sites.gather(checkout.ROOT / "config" / "sites")


def test_a_site_with_all_that_is_needed(tmp_path):
    write(tmp_path, "lumi.py", SITE)
    assert sites.gather(tmp_path) == SITE


def test_a_system_for_any_host_comes_last(tmp_path):
    other = ENVIRONMENT | {"target_systems": ["any"]}
    system = SYSTEM | {"name": "any", "hostnames": [".*"]}
    write(tmp_path, "any.py", {"systems": [system], "environments": [other]})
    write(tmp_path, "lumi.py", SITE)
    gathered = sites.gather(tmp_path)
    assert [system["name"] for system in gathered["systems"]] == ["lumi", "any"]
    assert gathered["environments"] == [other, ENVIRONMENT]


P = ("systems", 0, "partitions", 0)
PLACE = "systems[lumi].partitions[gpu]"
GBS = (*P, "extras", "physical_bounds", "GB/s")
FAULTS = [
    (("systems", 0, "name"), ..., "systems[0].name: this key is missing."),
    (("systems", 0, "hostnames"), "nid.*", "systems[lumi].hostnames: input should be a valid list"),
    (("systems", 0, "hostnames"), [], "systems[lumi].hostnames: list should have at least 1 item"),
    (("systems", 0, "partitions"), [], "systems[lumi].partitions: list should have at least 1"),
    (("systems", 0), "lumi", "systems[0]: it must contain a mapping"),
    ((*P, "scheduler"), "pbs", f"{PLACE}: shares its nodes with other jobs: access needs -l pl"),
    ((*P, "scheduler"), "flux", f"{PLACE}: gets one core and no GPU of each job, as ReFrame asks"),
    ((*P, "devices"), ..., f"{PLACE}.devices: this key is missing."),
    ((*P, "name"), "", "systems[lumi].partitions[0].name: string should have at least 1 character"),
    ((*P, "scheduler"), ..., f"{PLACE}.scheduler: this key is missing."),
    ((*P, "devices"), [], f"{PLACE}.devices: list should have at least 1 item"),
    ((*P, "devices", 0, "num_devices"), 0, f"{PLACE}.devices[0].num_devices: input should be gr"),
    ((*P, "devices", 0, "arch"), ..., f"{PLACE}.devices[0].arch: this key is missing."),
    ((*P, "extras"), ..., f"{PLACE}.extras: this key is missing."),
    (
        (*P, "extras", "physical_bounds"),
        ...,
        f"{PLACE}.extras: has neither a node model (node) nor physical_bounds.",
    ),
    ((*GBS, "value"), math.inf, f"{PLACE}.extras.physical_bounds.GB/s.value: input should be a fi"),
    ((*GBS, "value"), math.nan, f"{PLACE}.extras.physical_bounds.GB/s.value: input should be "),
    ((*GBS, "value"), 0.0, f"{PLACE}.extras.physical_bounds.GB/s.value: input should be greater"),
    ((*GBS, "value"), ..., f"{PLACE}.extras.physical_bounds.GB/s.value: this key is missing."),
    ((*GBS, "origin"), "guessed", f"{PLACE}.extras.physical_bounds.GB/s.origin: input should be"),
    ((*GBS, "how"), ..., f"{PLACE}.extras.physical_bounds.GB/s.how: this key is missing."),
    ((*GBS, "hwo"), "", f"{PLACE}.extras.physical_bounds.GB/s.hwo: this key is unknown."),
    ((*P, "extras", "scan_kernels"), ["x"], f"{PLACE}.extras.scan_kernels[0]: input should be 'c"),
    ((*P, "extras", "noise_limit"), 5.0, f"{PLACE}.extras.noise_limit: must be less than 1, or 10"),
    (
        (*P, "environs"),
        ["rocm", "rocn"],
        "lumi:gpu names environments that it does not have (rocn); it has rocm.",
    ),
    (
        ("environments", 0, "target_systems"),
        ["dardel", "lumi:cpu"],
        "lumi:gpu names environments that it does not have (rocm); it has none.",
    ),
    (
        (*P, "extras", "refs"),
        "lumi",
        f"{PLACE}.extras: has unknown keys (refs); the known ones are accepts, array_bytes, arrays",
    ),
    ((*P, "extras", "accepts"), ["all"], f"{PLACE}.extras.accepts[0]: input should be 'o"),
    ((*P, "extras", "fabric"), "infinband", f"{PLACE}.extras.fabric: There is no fabric 'infinban"),
    (
        (*P, "extras", "references"),
        "luni",
        f"{PLACE}.extras.references: no reference file has the set 'luni'; the sets are amd, amd-m",
    ),
    (
        ("environments", 0, "extras", "rccl_nodes"),
        {"module": ["rccl-net-plugin"]},
        "environments[rocm].extras.rccl_nodes.module: this key is unknown.",
    ),
    *(
        (
            ("environments", 0, "extras", key),
            ...,
            f"environments[rocm].extras.{key}: this key is missing.",
        )
        for key in ("runtime", "programs", "build_command")
    ),
]


@pytest.mark.parametrize(("path", "value", "sentence"), FAULTS, ids=range(len(FAULTS)))
def test_a_site_that_would_switch_a_protection_off(tmp_path, path, value, sentence):
    write(tmp_path, "lumi.py", changed(SITE, path, value))
    with pytest.raises(InvalidInputError) as error:
        sites.gather(tmp_path)
    assert str(error.value).startswith(f"Site file {tmp_path}/lumi.py: {sentence}")
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_pbs_may_give_a_job_its_nodes_alone(tmp_path):
    of_pbs = changed(changed(SITE, (*P, "scheduler"), "pbs"), (*P, "access"), ["-l place=excl"])
    write(tmp_path, "lumi.py", of_pbs)
    assert sites.gather(tmp_path)


def test_the_words_of_a_site_file_are_those_of_its_schema_and_of_the_checks():
    words = yaml_files.read(checkout.ROOT / "src" / "fabricheck" / "site" / "words.yaml")
    assert words["a physical bound"].keys() == sites._Bound.model_fields.keys()
    of_partition = words["extras of a partition"].keys()
    assert of_partition == sites._PartitionExtras.model_fields.keys()
    of_environment = words["extras of an environment"].keys()
    assert of_environment - {"loopback"} == sites._EnvironmentExtras.model_fields.keys()
    required = {
        word.lstrip("+-")
        for file in (checkout.ROOT / "reframe_checks").glob("*/*.py")
        for line in re.findall(r"valid_(?:systems|prog_environs) = \[(.*)\]", file.read_text())
        for word in re.findall(r"[+-]([\w-]+)", line)
    }
    known = {*words["features of a partition"], *words["features of an environment"]}
    assert {"several_domains", "rccl-tests"} <= required <= known | of_partition


def test_a_node_model_bounds_instead_of_the_site(tmp_path):
    extras = {"node": "mi250x"}
    write(tmp_path, "lumi.py", changed(SITE, (*P, "extras"), extras))
    assert sites.gather(tmp_path)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (SITE | {"systems": [SYSTEM | {"hostnames": ["uan.*"]}]}, "system lumi"),
        ({"environments": [ENVIRONMENT]}, "environment rocm of lumi"),
    ],
)
def test_two_site_files_that_define_the_same(tmp_path, other, what, wording):
    write(tmp_path, "lumi.py", SITE)
    write(tmp_path, "other.py", other)
    with pytest.raises(InvalidInputError) as error:
        sites.gather(tmp_path)
    wording(str(error.value))


def test_a_partition_that_is_there_twice(tmp_path):
    write(tmp_path, "lumi.py", changed(SITE, ("systems", 0, "partitions"), [PARTITION] * 2))
    with pytest.raises(InvalidInputError, match="define the same partition lumi:gpu"):
        sites.gather(tmp_path)


@pytest.mark.slow
def test_a_session_ends_with_the_sentence(suite, wording):
    suite.own_settings("local.py", '"hostnames": [".*"]', '"hostnames": ".*"')
    outcome = suite("-L")
    assert outcome.status == InvalidInputError.exit_code
    wording(outcome.text)


@pytest.mark.slow
def test_more_devices_than_the_partition_states(suite, wording):
    suite.own_settings("local.py", '"num_devices": DEVICES', '"num_devices": DEVICES + 1')
    outcome = suite("-r", "-n", "stream_scan")
    assert outcome.status == 1
    (reason,) = outcome.reasons
    wording(reason.replace(f"Node {platform.node()}", "NODE"))


def test_what_python_says_of_a_site_file_is_cut(tmp_path):
    (tmp_path / "site.py").write_text("raise ValueError('a\\n' + 9999 * 'b')")
    with pytest.raises(InvalidInputError) as refused:
        sites.read(tmp_path / "site.py")
    said = str(refused.value)
    assert said.startswith(f"Site file {tmp_path}/site.py cannot be read: ValueError: a bbb")
    assert len(said) < 600 and "\n" not in said


def test_a_site_file_that_ends_the_process_is_named(tmp_path):
    # Every command would end with its code: with 0 as if nothing were wrong.
    (tmp_path / "site.py").write_text("raise SystemExit(0)")
    with pytest.raises(InvalidInputError, match=r"site\.py cannot be read: SystemExit: 0\.$"):
        sites.read(tmp_path / "site.py")
