"""The lists of checks beside the site files: made by asking ReFrame, and read by every session."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.rfm import listing
from fabricheck.site import expected_checks, partitions, sites

SITES = ROOT / "config" / "sites"
CHECKS = [ROOT / "reframe_checks"]
REFERENCES = ROOT / "reference_values"

#: A machine with one device, whose MPI is not installed.
SITE = """\
site_configuration = {
    "systems": [
        {
            "name": "one",
            "hostnames": ["^$"],
            "partitions": [
                {
                    "name": "gpu",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["cuda"],
                    "features": ["devices", "several_devices", "ranks"],
                    "devices": [{"type": "gpu", "arch": "sm_90", "num_devices": 2}],
                    "extras": {"node": "h200", "noise_limit": 0.1, "array_bytes": 1 << 30},
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["one"],
            "features": ["stream"],
            "extras": {
                "runtime": "cuda",
                "programs": "/bin",
                "build_command": "make",
                "not_installed": ["mpi"],
            },
        }
    ],
}
"""
ASKED = ["mpi_collectives", "mpi_data", "mpi_pairs", "stream_concurrent", "stream_local"]


def test_the_lists_are_those_that_the_command_writes(monkeypatch):
    # What is set where the tests run is not of the site.
    monkeypatch.setenv("FABRICHECK_MPI", "OFF")
    monkeypatch.setenv("FABRICHECK_NVIDIA_NODE", "a100-booster")
    monkeypatch.setenv("FABRICHECK_AMD_NODE", "mi300a")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_PARTITION", "dc-gpu")
    found = listing.listed(sites.files(SITES), CHECKS, REFERENCES)
    assert set(found) == set(SITES.glob("*.checks.yaml"))
    for file, text in found.items():
        assert file.read_text() == text, "make it anew: fabricheck sets --write"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of sites outside of the repository."""
    folder = tmp_path / "sites"
    folder.mkdir()
    (folder / "one.py").write_text(SITE)
    monkeypatch.setenv("FABRICHECK_SITES", str(folder))
    return folder


def checks(folder):
    return expected(sites.gather(folder)["systems"])


def expected(systems):
    (found,) = [one for one in systems if one["name"] == "one"]
    return found["partitions"][0]["extras"].get("expected_checks")


def test_a_site_outside_of_the_repository_has_its_list_beside_it(folder, monkeypatch):
    # The repository's own would be written too.
    own = folder.parent / "own"
    own.mkdir()
    monkeypatch.setattr(sites.folders, "__defaults__", (own,))
    assert checks(folder) is None
    result = CliRunner().invoke(app, ["sets", "--write"])
    assert result.exit_code == 0, result.output
    (listed,) = expected_checks.read(folder / "one.py")
    assert (listed.partition, listed.node) == ("one:gpu", "h200")
    assert set(ASKED) <= set(listed.checks)
    # What the site says is not installed is not expected; what it lost is.
    assert list(checks(folder)) == [one for one in listed.checks if not one.startswith("mpi")]
    assert checks(folder)["stream_local"] == ["E1", "full", "node", "smoke"]
    (folder / "one.py").write_text(SITE.replace('["mpi"]', "[]"))
    assert set(ASKED) <= set(checks(folder))
    assert expected(partitions.require_sites()["systems"]) == checks(folder)


@pytest.mark.parametrize("text", ["import reframe, nothing_of_that_name", "class A("])
def test_a_check_that_cannot_be_loaded_is_not_left_out(tmp_path, folder, text):
    """ReFrame would only warn."""
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(InvalidInputError, match=r"The checks cannot be loaded: .*broken\.py"):
        listing.listed([folder / "one.py"], [tmp_path / "broken.py"], REFERENCES)


def lists(folder, environs, node="h200"):
    """Write a list with one check beside the site."""
    checks_of_it = f"{{stream_local: {{environs: {environs}, tags: [full]}}}}"
    expected_checks.beside(folder / "one.py").write_text(
        f"- {{partition: 'one:gpu', node: {node}, checks: {checks_of_it}}}\n"
    )


@pytest.mark.parametrize(
    ("environs", "is_expected"),
    [
        (["*"], True),
        (["cuda"], True),
        (["+stream"], True),
        (["+stream -simulated"], True),
        # Of an alternative all must hold: without MPI it is not expected.
        (["+stream +mpi"], False),
        (["+mpi -stream", "+mpi"], False),
        (["+stream +mpi", "+stream"], True),
        # What no environment has, installed or not, is expected, so that it fails visibly.
        (["+stream +managed"], True),
    ],
)
def test_a_check_without_what_it_needs_is_expected_unless_that_is_not_installed(
    folder, environs, is_expected
):
    lists(folder, environs)
    assert bool(checks(folder)) is is_expected


def test_a_list_of_another_node_says_nothing(folder):
    lists(folder, ["*"], "a100-booster")
    assert checks(folder) is None
    (folder / "one.py").write_text(SITE.replace('"h200"', '"a100-booster"'))
    assert checks(folder) == {"stream_local": ["full"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "line 2: it is not valid YAML (did not find expected node content)"),
        ("one:gpu: []", "input should be a valid list"),
        (
            "- {partition: 'one:gpu', node: h200, checks: {a: {environs: [], tags: []}}}",
            "at least 1 item",
        ),
        ("- {partition: 'one:gpu', checks: {}}", "[0].node: this key is missing"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(folder, text, why):
    file = expected_checks.beside(folder / "one.py")
    file.write_text(text)
    with pytest.raises(InvalidInputError) as error:
        sites.gather(folder)
    said = str(error.value)
    assert said.startswith(f"The list of checks {file}: ") and "\n" not in said
    assert why.lower() in said.lower() and said.endswith("'fabricheck sets --write'.")
