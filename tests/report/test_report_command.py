"""`fabricheck report` writes a whole page or none, names it last, and says what is missing."""

import json
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from html_page import Page, faults

import factories
from fabricheck.papers.claims import CLAIMS
from fabricheck.report import figures
from full_disk import files_of_at_most
from page_fixtures import drawer
from session_builder import SessionBuilder

pytestmark = pytest.mark.usefixtures("one_figure")

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"


def shown(result):
    """Return the page that the last line names."""
    page = Path(result.stdout.splitlines()[-1].removeprefix("Report: "))
    found = Page(page.read_text())
    assert list(faults(found)) == []
    return page, found


def test_the_last_line_names_the_page_of_the_latest_session(command, two_partitions):
    result = command("report")
    page, _ = shown(result)
    assert (result.exit_code, result.stderr) == (0, "")
    assert page == two_partitions / "reports-html" / "run-0" / "index.html"
    beside = {one.relative_to(page.parent).as_posix() for one in page.parent.rglob("*.*")}
    assert {"index.html", "figures/local-host-stream-curves.svg"} < beside
    assert not [one for one in beside if one.endswith(".partial")]


def test_another_folder_can_be_named(command, two_partitions, tmp_path):
    command("report", "run-0", "--output", tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "index.html").is_file()


def test_a_results_folder_a_folder_and_a_document_have_pages_too(command, two_partitions, tmp_path):
    loose = tmp_path / "loose"
    factories.write(loose / "one" / "result.json")
    for what, code in ((two_partitions, 0), (loose, 0), (loose / "one/result.json", 0)):
        result = command("report", what, "--output", tmp_path / "out", code=code)
        shown(result)


@pytest.mark.parametrize("what", ["run-7", "latest", "no-such.json"])
def test_nothing_there_is_told_and_nothing_is_written(command, results_folder, what):
    result = command("report", what, code=3)
    assert result.stdout == ""
    assert list(results_folder.iterdir()) == []


def _newer(document):
    return json.dumps(document | {"schema_version": 99})


def _older(document):
    return json.dumps({key: value for key, value in document.items() if key != "notes"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_newer, "newer fabricheck"),
        (_older, '"notes" is a required property'),
        (lambda document: json.dumps(document)[:500], "cut off"),
        (lambda document: "<b>\x1b no JSON", "is not JSON"),
        (lambda document: "", "is empty"),
    ],
)
def test_a_document_that_can_not_be_read_is_told_on_a_page(command, two_partitions, text, said):
    path = factories.case_folder(two_partitions, "stream_local") / "result.json"
    path.write_text(text(factories.document()))
    result = command("report", code=4)
    _, found = shown(result)
    assert result.exit_code == 4 and said in result.stderr
    assert said in found.text("main") and "INCOMPLETE" in found.text("h1")


def test_what_a_killed_session_left_has_a_page(command, results_folder):
    stage = results_folder / "stage" / "20260102T030405-7" / "local" / "host" / "host"
    factories.write(stage / "stream_local" / "result.json.partial", factories.killed_document())
    result = command("report", "latest", code=4)
    _, found = shown(result)
    assert result.exit_code == 4 and "did not finish" in found.text("main")


def test_a_broken_run_report_leaves_the_documents(command, results_folder):
    folder = results_folder / "output" / "20260102T030405-7" / "local" / "host" / "host"
    factories.write(folder / "stream_local" / "result.json")
    SessionBuilder(results_folder).add(factories.case()).write_report().write_text("{")
    result = command("report", code=4)
    _, found = shown(result)
    assert result.exit_code == 4
    assert "this is not a complete run report" in found.text("main") and "INCOMPLETE" in found.text(
        "h1"
    )


def test_a_full_disk_leaves_the_page_of_before(command, two_partitions):
    page, _ = shown(command("report"))
    before = page.read_text()
    page.write_text(before.replace("fabricheck", "before"))
    with files_of_at_most(2000):
        assert "cannot be written" in command("report", code=3).stderr
    assert page.read_text() == before.replace("fabricheck", "before")
    assert not list(page.parent.rglob("*.partial"))


def test_figures_of_an_earlier_report_go_and_other_files_stay(command, two_partitions, monkeypatch):
    page, _ = shown(command("report"))
    folder = page.parent / "figures"
    kept = folder / "kept-by-hand.csv"
    kept.write_text("mine")
    assert (folder / "local-host-stream-curves.svg").is_file()
    monkeypatch.setattr(figures, "SECTIONS", {})
    shown(command("report"))
    assert list(folder.iterdir()) == [kept]


def ends_behind_one(observed):
    yield from drawer(observed)
    raise KeyError("no <such> device")


def test_two_figures_with_one_id_are_a_sentence_and_the_first_stays(
    command, two_partitions, monkeypatch
):
    sections = {"Between host and device": (drawer,), "Collectives": (drawer,)}
    monkeypatch.setattr(figures, "SECTIONS", sections)
    result = command("report", code=4)
    _, found = shown(result)
    said = (
        "Collectives of local:host: a figure could not be drawn, a defect of fabricheck "
        "(ValueError: another figure has the id 'stream-curves')."
    )
    assert result.exit_code == 4
    assert said in result.stderr and said in found.text("main")
    names = [one["id"] for one in found.all("figure")]
    assert names == ["local-host-stream-curves", "local-sim-mi250x-stream-curves"]


def without_drawing(observed):
    drawing = Future()
    drawing.set_exception(ValueError("bad chart"))
    for figure in drawer(observed):
        yield replace(figure, id="other", drawing=drawing)


def test_a_figure_that_can_not_be_drawn_is_a_sentence_and_the_rest_stays(
    command, two_partitions, monkeypatch
):
    drawers = (ends_behind_one, without_drawing)
    monkeypatch.setattr(figures, "SECTIONS", {"Between host and device": drawers})
    result = command("report", code=4)
    _, found = shown(result)
    said = (
        "Between host and device of local:host: a figure could not be drawn, a defect of "
        "fabricheck (KeyError: 'no <such> device').",
        "Figure local-host-other could not be drawn, a defect of fabricheck (ValueError: bad "
        "chart).",
    )
    assert result.exit_code == 4
    for sentence in said:
        assert sentence in result.stderr and sentence in found.text("main")
    names = [one["id"] for one in found.all("figure")]
    assert names == ["local-host-stream-curves", "local-sim-mi250x-stream-curves"]


def test_a_place_that_can_not_be_written_is_told(command, two_partitions, tmp_path):
    (tmp_path / "file").write_text("")
    result = command("report", "--output", tmp_path / "file", code=3)
    assert "cannot be written" in result.stderr


def test_the_recorded_session_of_two_gpus_has_a_page(command, tmp_path):
    result = command("report", RECORDED, "--output", tmp_path)
    _, found = shown(result)
    assert result.exit_code == 0, result.output
    text = found.text("main")
    assert "h200:x2" in text and "21 of 27 checks passed, 6 skipped" in text
    assert "NVIDIA H200" in text and "580.159.04" in text


def test_a_killed_session_alone_has_a_page_by_its_folder(command, results_folder):
    names = ("20260102T030405-7", "20260102T040405-8")
    for name in names:
        stage = results_folder / "stage" / name / "local" / "host" / "host"
        factories.write(stage / "stream_local" / "result.json")
        (stage / "memcpy_near").mkdir()
    for what, title in ((names[0], names[0]), ("latest", names[1])):
        result = command("report", what, code=4)
        _, found = shown(result)
        text = found.text("main")
        assert result.exit_code == 4 and title in found.text("h1")
        assert "memcpy_near @local:host (unknown) left no result document" in text
        assert "without a run report that states whether they passed" in text and "FAIL" not in text
    command("report", "20260102T030405-9", code=3)


def test_a_claim_whose_rule_has_a_defect_is_a_sentence_and_the_rest_stays(
    command, two_partitions, monkeypatch
):
    def judge(observed):
        raise ZeroDivisionError("of <nothing>")

    first, *rest = CLAIMS
    broken = (replace(first, requires=None, judge=judge), *rest)
    monkeypatch.setattr("fabricheck.papers.section.CLAIMS", broken)
    result = command("report", code=4)
    _, found = shown(result)
    said = (
        f"Claim {first.id} of local:host could not be judged, a defect of fabricheck "
        "(ZeroDivisionError: of <nothing>)."
    )
    assert result.exit_code == 4
    assert said in result.stderr and said in found.text()
    assert f"of {len(rest)} claims" in found.text()
