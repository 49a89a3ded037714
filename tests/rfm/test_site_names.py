"""Which machine is which site: by its name, and by what the site itself calls the system."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabricheck.core.errors import InvalidInputError
from fabricheck.site import sites

SITES = Path(__file__).resolve().parents[2] / "config" / "sites"

MACHINES = {
    "lumi": [
        "uan01",
        "ln5",
        "uan04.lumi.csc.fi",
        "uan01 lumi",
        "uan01 x LUMI",
        "nid005000",
        "nid007977",
        "nid005001 lumi",
    ],
    "frontier": [
        "login12.frontier.olcf.ornl.gov",
        "login12.frontier",
        "login12 frontier",
        "login12 x frontier y",
        "frontier00144",
        "frontier00144 frontier",
        "frontier00144.frontier.olcf.ornl.gov",
    ],
    "dardel": [
        "uan01 dardel",
        "uan01 x dardel",
        "uan01 dardel x",
        "nid002792",
        "nid002860 dardel",
        "login1.dardel.pdc.kth.se",
    ],
    "jureca": ["jrlogin03.jureca", "jrlogin03", "jrc0001 jurecadc", "jrc0001", "x01 jureca"],
    "leonardo": [
        "login07.leonardo.local",
        "login01-ext.leonardo.cineca.it",
        "lrdn0271.leonardo.local",
        "lrdn0271",
    ],
    # Other people's machines.
    "local": [
        # LUMI-C has none of these devices.
        "nid001000",
        "nid001000 lumi",
        "login01",
        "my-laptop",
        "ln5-laptop",
        "ln5.example.org",
        "uan1-macbook",
        "uan01 perlmutter",
        "uan01 illumina",
        "nid005001 perlmutter",
        "nid0050011",
        "nid002792 perlmutter",
        "nid0027921",
        "uan01 dardel2",
        "host.pdc.kth.se.example.org",
        "frontier1-laptop",
        "frontier00144-laptop",
        "login1.my.frontier-college.edu",
        "login1.frontier-college.edu",
        "login12 frontier-test",
        "jsfl01 jurecabooster",
        "jrc1-laptop",
        "jrlogin03x",
        "login1.my.leonardo-museum.it",
        "login1.leonardo-museum.it",
        "lrdn0271-laptop",
    ],
}


@pytest.mark.parametrize(
    ("system", "machine"), [(system, name) for system, names in MACHINES.items() for name in names]
)
def test_a_machine_is_known_by_its_name(system, machine):
    assert sites.system_of(machine, SITES) == system
    # As ReFrame chooses: the first system of which a pattern matches from the start.
    gathered = sites.gather(SITES)["systems"]
    patterns = ((one["name"], pattern) for one in gathered for pattern in one["hostnames"])
    assert next(name for name, pattern in patterns if re.match(pattern, machine)) == system


def write(folder, name, *hostnames):
    """Write a site file of one system, whose partition is a plain machine."""
    extras = {"physical_bounds": {"GB/s": {"value": 1.0, "origin": "derived", "how": "a test"}}}
    partition = {"name": "cpu", "scheduler": "local", "launcher": "local", "environs": [name],
                 "devices": [{"type": "cpu", "arch": "x86", "num_devices": 1}],
                 "extras": extras}  # fmt: skip
    system = {"name": name, "hostnames": list(hostnames), "partitions": [partition]}
    programs = {"runtime": "host", "programs": "/opt/bin", "build_command": "make build"}
    environment = {"name": name, "target_systems": [name], "extras": programs}
    site = {"systems": [system], "environments": [environment]}
    (folder / f"{name}.py").write_text(f"site_configuration = {site}")


def test_a_site_of_the_user_comes_before_those_of_the_suite(tmp_path, monkeypatch):
    monkeypatch.setenv(sites.VARIABLE, str(tmp_path))
    write(tmp_path, "of_the_user", r"nid002\d{3}$")
    where = sites.folders()
    # The first is a node of Dardel by its name alone.
    for machine in ("nid002756", "nid002056"):
        assert sites.system_of(machine, *where) == "of_the_user"
    systems = sites.gather(*where)["systems"]
    assert systems[0]["name"] == "of_the_user"
    assert systems[-1]["name"] == "local"
    assert sites.system_of("nid002756 dardel", *where) == "dardel"
    # One for every machine is chosen only where no other site is.
    write(tmp_path, "of_the_user", ".*")
    assert sites.system_of("nid002756", *where) == "dardel"
    assert sites.system_of("laptop", *where) == "of_the_user"


@pytest.mark.parametrize("of_the_user", [True, False])
def test_a_machine_of_two_sites_is_refused_with_both_names(tmp_path, of_the_user):
    (tmp_path / "sites").mkdir()
    write(tmp_path / "sites", "north", r"nid002\d{3}$")
    write(tmp_path / "sites", "south", r"nid00[2-4]\d{3}$")
    where = [tmp_path / "sites", SITES] if of_the_user else [tmp_path, tmp_path / "sites"]
    with pytest.raises(InvalidInputError, match="'nid002056' is both north and south by the host"):
        sites.system_of("nid002056", *where)
    assert sites.system_of("nid003056", *where) == "south"


@pytest.mark.slow
def test_a_session_on_a_machine_of_two_sites_names_both(suite):
    folder = suite.folder / "sites"
    folder.mkdir()
    write(folder, "north", r"\S+ twin$")
    suite.variables |= {sites.VARIABLE: str(folder), "LMOD_SYSTEM_NAME": "twin", "RFM_SYSTEM": ""}
    assert '"north"' in suite("--show-config=systems/0/name")
    write(folder, "south", r"\S+ twin$")
    ended = suite("--show-config=systems/0/name")
    assert ended.status == 1
    assert " twin' is both north and south by the hostnames of their site files" in ended
    assert "Traceback" not in ended
    assert '"south"' in suite("--system=south", "--show-config=systems/0/name")
