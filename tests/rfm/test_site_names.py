"""Which machine is which site: by its name, and by what the site itself calls the system."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.rfm import host
from fabricheck.site import sites
from site_files import write

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
        "UAN01.LUMI.csc.fi",
        "uan01-nmn.local",
        "uan04-nmn",
        "ln01-nmn",
        "ln01-nmn lumi",
        "UAN01-NMN.local LUMI",
        "NID005001",
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
        "uan01-nmn.local dardel",
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
    "tuolumne": [
        "tuolumne.llnl.gov",
        "tuolumne1848",
        "tuolumne1848.llnl.gov",
        "elcap17",
        "tuolumne1848 x",
    ],
    "hunter": [
        "hunter-login03",
        "hunter-login04.hww.hlrs.de",
        "x1001c1s1b0n0 hunter",
        "x1001c1s1b0n0.hww.hlrs.de Hunter",
    ],
    # Other people's machines.
    "local": [
        "tuolumne-laptop",
        "elcapitan",
        "hunter",
        "hunter-laptop",
        "x1001c1s1b0n0",
        "x1001c1s1b0n0 hunter2",
        # LUMI-C has none of these devices.
        "nid001000",
        "nid001000 lumi",
        "login01",
        "my-laptop",
        "ln5-laptop",
        "ln5.example.org",
        "uan1-macbook",
        "uan01-nmnx",
        "uan01-nmn.local.example.org",
        "uan01-nmn.local perlmutter",
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "machine"), [(system, name) for system, names in MACHINES.items() for name in names]
)
def test_a_machine_is_known_by_its_name(system, machine):
    assert sites.system_of(machine, SITES) == system


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


@pytest.mark.parametrize(
    ("machine", "system"),
    [
        ("n0001", "north"),
        ("n0001.hpc.example.edu", "north"),
        ("n0001.hpc.example.edu north", "north"),
        ("N0001", "north"),
        ("north-login2.hpc.example.edu", "north"),
        # A pattern with a domain is of that domain alone, and one without any of every domain.
        ("s0001.hpc.example.edu", "south"),
        ("S0001.HPC.example.edu", "south"),
        ("s0001.example.org", "local"),
        ("s0001", "local"),
        # A match of the whole name counts before one of the short name.
        ("n0001.south.example.edu", "south"),
        ("n00010.hpc.example.edu", "local"),
    ],
)
def test_a_name_is_compared_short_and_full_in_any_case(tmp_path, machine, system):
    write(tmp_path, "north", r"north-login\d+(\s|$)", r"n\d{4}(\s|$)")
    write(tmp_path, "south", r"s\d{4}\.hpc\.example\.edu", r"n\d{4}\.south\.example\.edu(\s|$)")
    assert sites.system_of(machine, tmp_path, SITES) == system


def named(machine, full_name=None):
    return sites.of_this_machine(machine, lambda: full_name or machine, *sites.folders()).system


@pytest.fixture
def no_allocation(monkeypatch):
    for variable in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "SGE_TASK_ID", "FLUX_URI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv(sites.VARIABLE, raising=False)


@pytest.mark.usefixtures("no_allocation")
def test_site_files_that_were_named_and_do_not_match_are_refused(tmp_path, monkeypatch, wording):
    write(tmp_path, "north", r"n\d{4}(\s|$)")
    assert named("x0001.hpc.example.edu") == "local"
    monkeypatch.setenv(sites.VARIABLE, str(tmp_path))
    with pytest.raises(UsageError) as error:
        named("x0001.hpc.example.edu")
    wording(str(error.value))
    # A pattern of the suite's own sites may be that of many machines.
    with pytest.raises(UsageError, match="--system=lumi for what this suite has under that name"):
        named("nid005001")
    # One of the user's for every machine is meant.
    write(tmp_path, "any", ".*")
    assert named("x0001") == "any"


@pytest.mark.usefixtures("no_allocation")
def test_a_full_name_is_asked_of_the_resolver_where_the_session_would_be_refused(
    tmp_path, monkeypatch
):
    write(tmp_path, "south", r"s\d{4}\.hpc\.example\.edu")
    monkeypatch.setenv(sites.VARIABLE, str(tmp_path))
    assert named("s0001", "s0001.hpc.example.edu") == "south"
    with pytest.raises(UsageError, match=r"'s0001' or 's0001\.example\.org'"):
        named("s0001", "s0001.example.org")
    monkeypatch.setattr(socket, "gethostname", lambda: "s0001")
    for known, full in (("S0001.hpc.example.edu", "S0001.hpc.example.edu"), ("localhost", "s0001")):
        monkeypatch.setattr(socket, "getfqdn", lambda name, known=known: known)
        monkeypatch.setenv("LMOD_SYSTEM_NAME", "south")
        assert host.full_system_name() == f"{full} south"


@pytest.mark.usefixtures("no_allocation")
def test_a_machine_of_a_centre_that_is_no_site_here_is_refused():
    assert named("login01") == "local"
    with pytest.raises(UsageError) as error:
        named("login01 perlmutter")
    assert str(error.value).startswith(
        "This machine is of 'perlmutter', and no pattern in hostnames of a site matches "
        "'login01 perlmutter': choose --system=local:gpu for its GPUs or --system=local for "
    )
    assert named("login12 frontier") == "frontier"


@pytest.mark.usefixtures("no_allocation")
@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_URI"])
def test_in_an_allocation_a_machine_without_a_site_is_refused(monkeypatch, variable):
    monkeypatch.setenv(variable, "7")
    assert named("nid005001") == "lumi"
    with pytest.raises(UsageError) as error:
        named("n0001")
    assert str(error.value).startswith(f"In this allocation ({variable}=7) no pattern in hostnames")
    assert "lumi has ((ln|uan)" in str(error.value)


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
    assert ended.status == InvalidInputError.exit_code
    assert " twin' is both north and south by the hostnames of their site files" in ended
    assert "Traceback" not in ended
    assert '"south"' in suite("--system=south", "--show-config=systems/0/name")


@pytest.mark.slow
def test_a_session_is_of_the_site_that_was_meant_or_measures_nothing(suite, monkeypatch):
    folder = suite.folder / "sites"
    folder.mkdir()
    write(folder, "north", r"n\d{4}(\s|$)")
    suite.variables |= {sites.VARIABLE: str(folder), "LMOD_SYSTEM_NAME": "", "RFM_SYSTEM": ""}
    monkeypatch.setattr(socket, "getfqdn", lambda name: name)
    monkeypatch.setattr(socket, "gethostname", lambda: "N0001.hpc.example.edu")
    assert '"north"' in suite("--show-config=systems/0/name")
    monkeypatch.setattr(socket, "gethostname", lambda: "x0001.hpc.example.edu")
    ended = suite("-r", "-n", "stream_local")
    assert ended.status == UsageError.exit_code
    assert r"north has n\d{4}(\s|$)." in ended and "Traceback" not in ended
    assert not list(suite.results.glob("output/*"))
    # In an allocation too, unless the system is chosen, by the option or by RFM_SYSTEM.
    suite.variables |= {sites.VARIABLE: "", "SLURM_JOB_ID": "7"}
    assert suite("-r", "-n", "stream_local").status == UsageError.exit_code
    assert suite("--system=local:host", "-r", "-n", "stream_local").status == 0
    suite.variables["RFM_SYSTEM"] = "local:host"
    assert suite("--dry-run", "-n", "stream_local").status == 0
