"""The results folder, and how a session ends when something outside it goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from fabricheck.core.errors import InvalidInputError
from fabricheck.rfm import host


@pytest.fixture
def variable(monkeypatch):
    return lambda value: monkeypatch.setenv("FABRICHECK_RESULTS", str(value))


def test_the_default_and_the_variable(tmp_path, variable):
    variable("")
    assert host.results_folder(tmp_path / "default") == tmp_path / "default"
    variable(tmp_path / "named" / "deep")
    assert host.results_folder(tmp_path / "default").is_dir()
    assert (tmp_path / "named" / "deep").is_dir()


def test_a_user_whom_no_list_has_is_a_number(monkeypatch):
    """As in a container, where --user gives a number; ReFrame ends without a name."""

    def unknown():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(host.getpass, "getuser", unknown)
    assert host.user_name() == str(os.getuid())


def test_a_relative_path_is_refused(tmp_path, variable, monkeypatch, wording):
    monkeypatch.chdir(tmp_path)
    variable("out/x")
    with pytest.raises(InvalidInputError) as error:
        host.results_folder(tmp_path)
    wording(str(error.value))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["my results", "a$b", "it's"])
def test_a_path_that_a_shell_would_not_take_is_refused(tmp_path, variable, name, wording):
    variable(tmp_path / name)
    with pytest.raises(InvalidInputError) as error:
        host.results_folder(tmp_path)
    wording(str(error.value))


def test_a_checkout_with_a_space_is_refused_too(tmp_path, variable, wording):
    variable("")
    with pytest.raises(InvalidInputError) as error:
        host.results_folder(tmp_path / "my checkout" / "results")
    wording(str(error.value))


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, variable, monkeypatch, wording):
    variable("")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=3_000_000))
    with pytest.raises(InvalidInputError) as error:
        host.results_folder(tmp_path)
    wording(str(error.value))


def test_a_folder_that_is_not_writable(tmp_path, variable, monkeypatch, wording):
    variable("")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidInputError) as error:
        host.results_folder(tmp_path)
    wording(str(error.value))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relative", "/tmp/with space"])
def test_a_session_ends_with_the_sentence(suite, name):
    suite.variables["FABRICHECK_RESULTS"] = name
    outcome = suite("-L")
    assert outcome.status == InvalidInputError.exit_code
    assert "ERROR: " in outcome
    assert "Traceback" not in outcome


@pytest.mark.slow
def test_a_warning_about_the_settings_is_an_error(suite):
    suite.variables["RFM_PURGE_ENVIRONMENT"] = "perhaps"
    outcome = suite("-L")
    assert outcome.status == 1
    assert "RFM_PURGE_ENVIRONMENT" in outcome
    assert "Traceback" not in outcome


@pytest.mark.slow
def test_an_interrupted_session(suite):
    (suite.programs / "stream").write_text(f"#!/bin/sh\necho start > {suite.log}\nexec sleep 600\n")
    session = subprocess.Popen(
        suite._command(None, ("-r", "-n", "stream_local")),
        env=suite.environment(),
        cwd=suite.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # As a shell does for a command in the foreground; inherited it may be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not suite.log.exists() and session.poll() is None:
        time.sleep(0.05)
    session.send_signal(signal.SIGINT)
    text, _ = session.communicate(timeout=300)
    assert session.returncode == 1
    assert "[ RUN" in text
    assert "ERROR: run session stopped: cancelled by user" in text
    assert "Traceback" not in text
