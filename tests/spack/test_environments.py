"""Each environment of spack-env is whole, and its lock is of its spack.yaml and of no machine."""

import json
import re
from pathlib import Path

import pytest
import yaml

import fabricheck

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "spack-env"
ENVIRONMENTS = sorted(path.parent.name for path in FOLDER.glob("*/spack.yaml"))

pytestmark = pytest.mark.parametrize("name", ENVIRONMENTS)


def manifest(name):
    """(the `spack:` part, all `packages` of it and of what it includes)."""
    content = yaml.safe_load((FOLDER / name / "spack.yaml").read_text())["spack"]
    packages = {}
    for path in content["include"]:
        part = yaml.safe_load((FOLDER / name / path).resolve(strict=True).read_text())
        packages.update(part.get("packages", {}))
    packages.update(content.get("packages", {}))
    return content, packages


def lock(name):
    return json.loads((FOLDER / name / "spack.lock").read_text())


def identity(spec):
    """name@version of a spec as it is written."""
    return re.match(r"[\w-]+(@=?[\w.:=-]+)?", spec)[0].replace("@=", "@")


def test_the_roots_of_the_lock_are_the_specs(name):
    content, _ = manifest(name)
    asked = sorted(identity(spec) for spec in content["specs"])
    assert sorted(identity(root["spec"]) for root in lock(name)["roots"]) == asked


def test_the_commit_of_the_spack_that_made_the_lock_is_named(name):
    commit = (FOLDER / name / "spack-commit").read_text().split()[0]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    assert lock(name)["spack"]["commit"] == commit


def test_the_lock_has_no_sources_in_a_folder_and_not_our_package(name):
    for spec in lock(name)["concrete_specs"].values():
        assert spec["name"] != "fabricheck"
        assert "dev_path" not in spec["parameters"]


def test_every_path_of_the_lock_is_an_external_of_the_environment(name):
    _, packages = manifest(name)
    prefixes = {
        external.get("prefix")
        for package in packages.values()
        for external in package.get("externals", [])
    }
    text = (FOLDER / name / "spack.lock").read_text()
    for spec in json.loads(text)["concrete_specs"].values():
        if spec["name"] == "glibc":  # found by Spack itself
            prefixes.add(spec["external"]["path"])
    assert set(re.findall(r'"(/[^"]*)"', text)) <= prefixes


def test_our_package_has_exact_specs_of_this_version(name):
    lines = (FOLDER / name / "fabricheck.specs").read_text().splitlines()
    specs = [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    assert specs
    assert {identity(spec) for spec in specs} == {f"fabricheck@{fabricheck.__version__}"}
    assert "../common/fabricheck.yaml" in manifest(name)[0]["include"]
    # Two specs of which one also fits the other would become one.
    if len(specs) > 1:
        assert sum("+sim" in spec for spec in specs) == sum("~sim" in spec for spec in specs) == 1


def test_tools_are_those_of_our_recipes_for_the_devices_of_osu(name):
    file = FOLDER / name / "tools.specs"
    rocm = "../common/rocm.yaml" in manifest(name)[0]["include"]
    assert file.exists() == rocm
    osu = next(one for one in manifest(name)[0]["specs"] if one.startswith("osu-"))
    for spec in file.read_text().splitlines() if rocm else ():
        package, version = identity(spec).split("@")
        recipe = (FOLDER / "repo" / "packages" / package / "package.py").read_text()
        assert f'version("{version}"' in recipe
        for word in spec.split()[1:]:
            assert word in osu.split()
