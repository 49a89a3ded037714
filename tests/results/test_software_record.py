"""What is recorded of the software of a session's environments, and said of it later."""

from __future__ import annotations

import hashlib
import json

import pytest

import factories
import locks
from fabricheck.core import checkout
from fabricheck.site import clusters, software
from session_builder import SessionBuilder


@pytest.fixture
def view(tmp_path, monkeypatch):
    """The view of the Spack environment `lumi`, beside its lock."""
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr(checkout, "ORIGIN", tmp_path)
    folder = clusters.view("lumi")
    (folder / "bin").mkdir(parents=True)
    (folder.parent / "spack.lock").write_text(locks.text())
    return folder


def used(view, **extras):
    osu = view / "libexec" / "osu-micro-benchmarks"
    own = {"spack_environment": "lumi", "programs": str(view / "bin"), "osu_folder": str(osu)}
    return software.Used("lumi", "rocm", {**own, **extras})


def test_the_lock_and_its_specs_are_kept_once_for_each_environment(view, tmp_path, wording):
    wording(software.write(tmp_path / "out", [used(view), used(view)]))
    kept = tmp_path / "out" / "software"
    assert (kept / "lumi.rocm.spack.lock").read_text() == locks.text()
    (entry,) = json.loads((kept / "software.json").read_text())["environments"]
    assert entry["spack_environment"] == "lumi"
    assert entry["programs"] == str(view / "bin")
    assert sorted(file.name for file in kept.iterdir()) == [*entry["files"], "software.json"]


def test_a_view_that_is_named_by_a_link_is_of_the_environment(view, tmp_path):
    (tmp_path / "link").symlink_to(view)
    (sentence,), _ = software.describe(used(view, programs=str(tmp_path / "link" / "bin")))
    assert sentence.startswith(
        "lumi rocm: the programs and the OSU Micro-Benchmarks are from the Spack environment"
    )


def test_what_is_not_of_the_environment_is_said(view, wording):
    said, _ = software.describe(used(view, programs="/my/bin", rccl_folder="/my/rccl"))
    wording(said)
    assert software.describe(used(view, programs="/my/bin", osu_folder="")) == ([said[1]], None)


def test_programs_without_a_spack_environment():
    extras = {"programs": "/my/bin", "osu_folder": "/my/osu"}
    sentence = (
        "local host: the programs of /my/bin and the OSU Micro-Benchmarks of /my/osu are not "
        "from a Spack environment."
    )
    assert software.describe(software.Used("local", "host", extras)) == ([sentence], None)


def test_a_lock_that_can_not_be_read_is_a_sentence_and_kept(view, wording):
    (view.parent / "spack.lock").write_text(locks.text(9))
    (sentence,), locked = software.describe(used(view))
    wording(sentence)
    assert locked == locks.text(9)
    (view.parent / "spack.lock").unlink()
    (sentence,), locked = software.describe(used(view))
    wording(sentence)
    assert locked is None


def test_a_lock_without_our_package_does_not_tell_what_the_programs_are_of(view, wording):
    other = locks.composed()
    del other["concrete_specs"][locks.OURS]
    other["roots"] = other["roots"][1:]
    (view.parent / "spack.lock").write_text(json.dumps(other))
    wording(software.describe(used(view))[0][0])


def test_the_programs_have_their_digests_and_the_checkout_its_commit(view, tmp_path):
    (view / "bin" / "stream").write_bytes(b"a program")
    (view / "bin" / "also").symlink_to(view / "bin" / "stream")
    (view / "bin" / "gone").symlink_to(view / "bin" / "nothing")
    software.write(tmp_path / "out", [used(view), software.Used("lumi", "none", {})])
    outputs = [tmp_path / "elsewhere", tmp_path / "out"]
    now = json.loads((tmp_path / "out" / "software" / "software.json").read_text())["written"]
    record = software.recorded(outputs, now - 1, now + 1)
    without, with_programs = record.environments
    of_program = hashlib.sha256(b"a program").hexdigest()
    assert with_programs.sha256 == {"stream": of_program, "also": of_program}
    assert with_programs.files == ["lumi.rocm.spack.lock"]
    assert without.sha256 == {}
    assert record.checkout == checkout.commit()
    assert software.recorded(outputs, now + 10, now + 20) is None


def test_results_show_says_it_of_its_own_session_only(command, view, results_folder):
    SessionBuilder(results_folder).add(factories.case(), factories.document()).write()
    software.write(results_folder / "output", [used(view)])
    file = results_folder / "output" / "software" / "software.json"
    kept = json.loads(file.read_text())
    report = json.loads(next(results_folder.glob("reports/run-*.json")).read_text())
    start = report["session_info"]["time_start_unix"]

    def shown(written):
        file.write_text(json.dumps({**kept, "written": written}))
        return command("results", "show", code=3).output

    assert "Micro-Benchmarks are from the Spack environment" in shown(start + 0.5)
    assert "Spack environment" not in shown(start - 60)
    file.write_text("{")
    output = command("results", "show", code=3).output
    assert "this is not a record of a session's software" in " ".join(output.split())
