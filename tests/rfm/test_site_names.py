"""Which machine is which site: by its name, and by what the site itself calls the system."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    # As ReFrame chooses: the first system of which a pattern matches from the start.
    gathered = sites.gather(SITES)["systems"]
    patterns = ((one["name"], pattern) for one in gathered for pattern in one["hostnames"])
    assert next(name for name, pattern in patterns if re.match(pattern, machine)) == system
