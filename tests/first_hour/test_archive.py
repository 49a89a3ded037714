"""Archives of the first hour are read as results folders, and nothing else is taken for one."""

import gzip
import io
import json
import os
import tarfile

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.calibration.gathering import gather
from fabricheck.report import figures
from fabricheck.results import archive
from fabricheck.results.folder import ResultsFolder
from session_builder import HOST, measured

GOOD, NOTHING, INVALID = 0, 3, 4


def packed(results, path):
    """Pack a results folder as the first hour does."""
    with tarfile.open(path, "w:gz") as out:
        out.add(results, f"{path.name.removesuffix('.tar.gz')}/results")
    return path


def made(path, *members):
    """Write an archive of members: a name and a text, or what else a member is."""
    with tarfile.open(path, "w:gz") as out:
        for name, content in members:
            one = tarfile.TarInfo(name)
            if isinstance(content, str):
                one.size = len(content)
                out.addfile(one, io.BytesIO(content.encode()))
            else:
                one.type, one.linkname = content
                out.addfile(one)
    return path


@pytest.fixture
def sent(tmp_path):
    """An archive of one session, whose folder is gone."""
    results = measured(tmp_path / "there", 0, {"copy_worst": 10.0}, 0)
    for document in results.rglob("result.json"):
        os.utime(document, (1.7e9, 1.7e9))
    path = packed(results, tmp_path / "first-hour-node1.tar.gz")
    results.rename(tmp_path / "elsewhere")
    return path


def test_show_tells_all_sessions_and_documents(command, sent):
    said = command("results", "show", sent).words
    assert f"Archive {sent.name}" in said.replace(f"{sent.parent}/", "")
    assert "session run-0 (1/1 passed), 0 documents outside any session" in said
    assert "stream_local @local:host (pass)" in said
    done = command("results", "show", sent, json=True)
    (entry,) = done.json["checks"]
    assert entry["document"]["series"] and entry["case"] == "stream_local"


def test_a_file_keeps_its_time(sent):
    there, here = sent.parent / "elsewhere", archive.unpacked(sent) / "results"
    document = next(path.relative_to(there) for path in there.rglob("result.json"))
    assert (here / document).stat().st_mtime == pytest.approx((there / document).stat().st_mtime)


def test_the_page_lies_beside_the_archive(command, sent, monkeypatch):
    monkeypatch.setattr(figures, "SECTIONS", {})
    said = command("report", sent).words
    page = sent.parent / "reports-html" / "first-hour-node1" / "index.html"
    assert f"Report: {page}" in said and "session run-0" in page.read_text()


def test_the_verdict_lies_beside_the_archive(command, sent):
    said = command("verdict", sent).words
    written = sent.parent / "verdicts" / "first-hour-node1" / "verdict.json"
    assert "Verdict on run-0" in said and written.is_file()
    other = packed(measured(sent.parent, 1, {"copy_worst": 10.0}, 60), sent.parent / "b.tar.gz")
    assert "Verdict on run-1" in command("verdict", sent, other).words


def test_calibrate_and_compare_read_what_is_in_it(command, sent, tmp_path):
    (inside,) = gather([sent], HOST).runs
    (outside,) = gather([tmp_path / "elsewhere"], HOST).runs
    assert inside.values == outside.values and inside.values
    same = command("compare", sent, tmp_path / "elsewhere").words
    assert "0 worse, 0 better" in same and "0 missing in B" in same
    # Both are one session, whose time and node the heading has.
    assert same.count(", session run-0 of 20") == 2


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (
            b"no archive",
            INVALID,
            "is not a complete archive of fabricheck (Not a gzipped file (b'no'))",
        ),
        (b"", INVALID, "is not a complete archive of fabricheck (empty file)"),
        (None, NOTHING, "There is no archive"),
    ],
)
def test_what_is_no_archive(command, tmp_path, content, code, said):
    path = tmp_path / "sent.tar.gz"
    if content is not None:
        path.write_bytes(content)
    for line in (
        ["results", "show"],
        ["verdict"],
        ["limits", "calibrate", "--system", HOST],
    ):
        found = command(*line, path, code=code).words
        assert said in found and "sent.tar.gz" in found


@pytest.mark.parametrize("part", [0.5, 0.9, 0.999])
def test_a_truncated_archive(command, sent, part):
    whole = sent.read_bytes()
    sent.write_bytes(whole[: int(len(whole) * part)])
    assert (
        f"{sent} is not a complete archive of fabricheck ("
        in command("verdict", sent, code=INVALID).words
    )


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("../escaped", "text"), "../escaped would be written outside the archive's folder"),
        (("/tmp/escaped", "text"), "/tmp/escaped would be written outside the archive's folder"),
        (("a/link", (tarfile.SYMTYPE, "/etc/passwd")), "a/link is neither a file nor a folder"),
        (("a/link", (tarfile.LNKTYPE, "/etc/passwd")), "a/link is neither a file nor a folder"),
        (("a/device", (tarfile.CHRTYPE, "")), "a/device is neither a file nor a folder"),
        (("a/pipe", (tarfile.FIFOTYPE, "")), "a/pipe is neither a file nor a folder"),
    ],
)
def test_an_archive_that_would_leave_its_folder(command, tmp_path, member, said):
    path = made(tmp_path / "evil.tar.gz", ("a/results/reports/run-0.json", "{}"), member)
    assert f"{path} is refused: {said}." in command("results", "show", path, code=INVALID).words
    assert not (tmp_path.parent / "escaped").exists()


def headers(kind, content, number=1):
    """Return headers of a kind that precede a member, and their contents."""
    about = tarfile.TarInfo("header")
    about.type, about.size = kind, len(content)
    return (about.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)) * number


def entries(first, last):
    return b"".join(b"16 k%08d=ab\n" % number for number in range(first, last))


A_FILE = tarfile.TarInfo("a/results/file").tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (A_FILE + bytes(2 << 20), "it exceeds 1 MiB unpacked"),
        (headers(b"x", b"a" * 20_000) + A_FILE, "a header exceeds 16 KiB"),
        (headers(b"L", b"a" * 20_000) + A_FILE, "a header exceeds 16 KiB"),
        (headers(b"x", b"", 3000) + A_FILE, "a header exceeds 16 KiB"),
        (headers(b"x", entries(0, 101)) + A_FILE, "a header has more than 100 entries"),
        (
            b"".join(headers(b"g", entries(9 * n, 9 * n + 9)) + A_FILE for n in range(12)),
            "its headers have more than 100 global entries",
        ),
        (A_FILE * 51, "it has more than 50 files and folders"),
        ((headers(b"x", b"11 a=aaaaa\n", 10) + A_FILE) * 50, "its headers exceed 0 MiB"),
    ],
    ids=["bytes", "header", "long name", "chain", "entries", "global", "members", "all headers"],
)
def test_an_archive_beyond_a_limit_is_refused_before_anything_is_written(
    command, tmp_path, monkeypatch, content, reason
):
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MOST_HEADER_BYTES", 500_000)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 50)
    written = []
    monkeypatch.setattr(tarfile.TarFile, "extract", lambda *_, **__: written.append(1))
    path = tmp_path / "evil.tar.gz"
    path.write_bytes(gzip.compress(content + bytes(1024)))
    said = command("results", "show", path, code=INVALID).words
    assert said == f"fabricheck: {path} is refused: {reason}."
    assert not written


def test_a_member_larger_than_the_limit_is_not_unpacked(command, tmp_path, monkeypatch, wording):
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    path = made(tmp_path / "large.tar.gz", *(("a/zeros", "0" * 600_000) for _ in range(2)))
    wording(command("results", "show", path, code=INVALID).stderr)


def test_a_path_of_many_folders_and_a_name_with_a_line_feed_are_refused(command, tmp_path, wording):
    deep = made(tmp_path / "deep.tar.gz", ("a/" * 2000 + "file", ""))
    wording(command("verdict", deep, code=INVALID).stderr)
    odd = made(tmp_path / "odd.tar.gz", ("a/results/reports/run-\nscontrol update.json", "{}"))
    wording(command("verdict", odd, code=INVALID).stderr)


def test_what_pack_writes_is_read(tmp_path):
    """Long paths have headers of their own."""
    results = measured(tmp_path / "there", 0, {"copy_worst": 10.0}, 0)
    path, inside = tmp_path / "long.tar.gz", "n" * 200
    archive.pack(results, path, archive.OF_RESULTS, f"{inside}/results")
    assert archive.unpacked(path).name == inside


def test_an_archive_without_results(command, tmp_path, wording):
    path = made(tmp_path / "other.tar.gz", ("a/about.json", "{}"))
    for line in (
        ["results", "show"],
        ["verdict"],
        ["limits", "calibrate", "--system", HOST],
    ):
        wording(command(*line, path, code=NOTHING).stderr)


def test_an_archive_without_a_session_shows_its_documents(command, tmp_path, wording):
    document = json.dumps(factories.document())
    alone = ("a/steps/03-host-memory/1/result.json", document)
    path = made(tmp_path / "alone.tar.gz", ("a/results/logs/reframe.log", "none"), alone)
    said = command("results", "show", path).words
    assert "no session, 1 document outside any session" in said and " 10.1 " in said
    wording(command("verdict", path, code=NOTHING).stderr)


def test_a_session_that_left_nothing_is_no_session_of_an_archive(command, tmp_path, wording):
    path = made(tmp_path / "cut.tar.gz", ("a/results/output/20261122T1/software.json", "{}"))
    wording(command("verdict", path, code=NOTHING).stderr)


def test_a_sentence_about_a_file_in_an_archive_names_the_archive(command, tmp_path):
    path = made(tmp_path / "cut.tar.gz", ("a/results/reports/run-0.json", "{"))
    report = f"{path}/a/results/reports/run-0.json: this is not a complete run report"
    for line, code in (
        (["results", "show"], INVALID),
        (["verdict"], INVALID),
        (["limits", "calibrate", "--system", HOST], INVALID),
    ):
        assert report in command(*line, path, code=code).words


def test_damage_before_much_more_than_a_mebibyte_is_seen(tmp_path):
    """The check sum stands at the end: what is behind the last member has to be read, too."""
    packed_ = io.BytesIO()
    with tarfile.open(fileobj=packed_, mode="w:") as out:
        one = tarfile.TarInfo("first-hour-a/results/output/a.json")
        one.size = 4
        out.addfile(one, io.BytesIO(b"good"))
    whole = gzip.compress(packed_.getvalue() + bytes(8 << 20), compresslevel=0)
    path = tmp_path / "first-hour-a.tar.gz"
    path.write_bytes(whole)
    assert (archive.unpacked(path) / "results" / "output" / "a.json").read_bytes() == b"good"
    other = tmp_path / "other.tar.gz"
    other.write_bytes(whole.replace(b"good", b"evil"))
    with pytest.raises(InvalidInputError, match=r"other\.tar\.gz is not a complete archive"):
        archive.unpacked(other)


def test_nothing_outside_an_archive_is_read_for_it(command, tmp_path):
    # Its documents are at the place that the report names, on the machine that reads it.
    results = measured(tmp_path / "there", 0, {"copy_worst": 10.0}, 0)
    document = next(results.rglob("result.json"))
    report = next(results.glob("reports/*.json"))
    (tmp_path / "sent" / "reports").mkdir(parents=True)
    (tmp_path / "sent" / "reports" / report.name).write_bytes(report.read_bytes())
    assert command("results", "show", report, json=True).json["checks"][0]["document"]
    sent = packed(tmp_path / "sent", tmp_path / "first-hour-node1.tar.gz")
    (check,) = command("results", "show", sent, json=True, code=3).json["checks"]
    assert check["document"] is None and check["case"] == "stream_local"
    assert document.is_file()


def test_no_mark_of_an_archive_leads_to_reports_of_this_machine(tmp_path):
    outside = measured(tmp_path / "there", 0, {"copy_worst": 10.0}, 0)
    report = next(outside.glob("reports/*.json"))
    sent = tmp_path / "sent"
    factories.mark(sent, 0, elsewhere=[str(report)])
    session = json.loads(report.read_text())
    session["session_info"]["log_files"] = [f"/logs/reframe-{factories.stamp(0)}.log"]
    report.write_text(json.dumps(session))
    assert ResultsFolder(sent).sessions
    with pytest.raises(NotFoundError):
        ResultsFolder(archive.unpacked(packed(sent, tmp_path / "a.tar.gz")) / "results").latest()
