"""Fixtures of all tests: a results folder that looks as ReFrame leaves one, and what is shared."""

import dataclasses
import fcntl
import gc
import os
import re
import shlex
import shutil
from json import loads
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import factories
from fabricheck.site import partitions, this_machine
from session_builder import SessionBuilder
from wording import Wording

ROOT = Path(__file__).resolve().parents[1]

# What CI systems and terminals set to change colours and widths; typer reads some when imported.
for _name in [
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
]:
    os.environ.pop(_name, None)

# The same examples everywhere, however slow the machine is.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector from the tests: of thousands it would look at each again.

    Little of what a test makes is garbage: looking for it after 700 objects takes a 25th of it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


#: What a command may write to its error output: sentences, and what it does meanwhile.
REMARK = re.compile(r"fabricheck: |note: |wrote |Runs |\[round \d+/\d+, |[\w-]+ is left out: ")


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str
    #: Both, as a terminal shows them.
    output: str

    @property
    def json(self):
        """Return the object of --json."""
        return loads(self.stdout)

    @property
    def words(self):
        """Return what it wrote, wherever lines and columns of a table are broken."""
        return " ".join(self.output.split())


@pytest.fixture(scope="session")
def command():
    """Return a function that runs a command of fabricheck in this process.

    Its exit code is 0, or the one given (None: any). An error is a sentence, never a traceback.
    """
    # The tests of programs and of ReFrame need none of this.
    from typer.testing import CliRunner

    from fabricheck.cli import app

    def command(*words, code=0, json=False, env=None):
        typed = [str(word) for word in words]
        if json:
            typed.append("--json")
        result = CliRunner().invoke(app, typed, env=env)
        if not isinstance(result.exception, SystemExit | None):
            raise result.exception
        if code is not None:
            assert result.exit_code == code, f"fabricheck {shlex.join(typed)}\n{result.output}"
        for line in result.stderr.splitlines():
            assert REMARK.match(line), line
            # What somebody else wrote may end a line otherwise: such a test takes any exit code.
            if code is not None and line.startswith("fabricheck: "):
                assert line.endswith((".", "?")), line
        return Ended(result.exit_code, result.stdout, result.stderr, result.output)

    return command


@pytest.fixture
def wording(request, tmp_path):
    """A function that compares a sentence, or several, with those of a snapshot."""
    varies = {str(tmp_path): "FOLDER", str(ROOT): "ROOT"}
    return Wording(request.path, request.node.name, varies)


@pytest.fixture
def results_folder(tmp_path, monkeypatch):
    """An empty results folder that the environment names."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("FABRICHECK_RESULTS", str(folder))
    return folder


@pytest.fixture
def one_session(results_folder):
    """A session with a check that passed, and its document."""
    SessionBuilder(results_folder).add(factories.case(), factories.document()).write()
    return results_folder


@pytest.fixture
def single_machine(monkeypatch):
    """A function that gives the site local the GPUs of a node model."""

    def of(model):
        monkeypatch.setenv(this_machine.NODE, model)
        forget()

    def forget():
        partitions.read_site.cache_clear()
        partitions.known_sites.cache_clear()

    yield of
    forget()


@pytest.fixture(scope="session")
def made_once(request, tmp_path_factory):
    """Return a function that makes a folder once in a run of the tests, whichever worker asks."""
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if hasattr(request.config, "workerinput") else own) / "made-once"

    def made_once(name, make):
        folder = shared / name
        shared.mkdir(exist_ok=True)
        with (shared / f"{name}.made").open("a+") as made:
            fcntl.flock(made, fcntl.LOCK_EX)
            made.seek(0)
            if not made.read():
                # What another worker failed to make.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                made.write("whole")
        return folder

    return made_once


@pytest.fixture(scope="session")
def site_dry_run(made_once):
    """Return a function that gives the dry run of a site."""
    # It imports ReFrame.
    from site_dry_runs import DryRuns

    return DryRuns(made_once)


@pytest.fixture(scope="session")
def sites_of_models(made_once):
    """A folder of sites, for FABRICHECK_SITES: the site models has a partition of each model."""
    import site_files

    return made_once("sites-of-models", site_files.write_models)


@pytest.fixture(scope="session")
def dry_run_of_models(site_dry_run, sites_of_models):
    """Return a function that gives the dry run of the set node on each node model."""
    return lambda: site_dry_run("models", "--mode=node", FABRICHECK_SITES=str(sites_of_models))
