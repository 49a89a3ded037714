"""The page says what a session has, to everyone, and shows all text as text."""

import re

import altair as alt
import pytest
from html_page import Page, faults

import factories
from fabricheck.report import contents, page
from fabricheck.report.figure import drawn, inline
from fabricheck.results import reading
from factories import judged
from page_fixtures import DRAWING
from session_builder import HOST, SessionBuilder

HTML = "</td></table><script>alert(1)</script><b onclick=x>"


def written(what="latest"):
    files = page.files(contents.page_contents(reading.read([what])))
    return Page(files["index.html"]), files


def test_everyone_can_read_the_page(two_partitions):
    found, _ = written()
    assert list(faults(found)) == []
    assert found.all("main")[0]["id"] == "content"
    assert found.all("a")[0]["href"] == "#content"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("<h3", "<h5").replace("</h3", "</h5"),
        lambda text: text.replace('id="claims"', 'id="verdict"'),
        lambda text: text.replace("<caption>", "<!--").replace("</caption>", "-->"),
        lambda text: text.replace("figcaption", "div"),
        lambda text: text.replace(' scope="row"', ""),
        lambda text: text.replace(' data-label="Reference"', ""),
        lambda text: text.replace('tabindex="0"', ""),
        lambda text: text.replace("</body>", "<img src='https://example.org/x.png'></body>"),
        lambda text: text.replace("</body>", "<script></script></body>"),
        lambda text: text.replace('lang="en"', ""),
        lambda text: text.replace('href="#figures"', 'href="#pictures"'),
    ],
)
def test_what_the_page_is_held_against_can_fail(two_partitions, spoil):
    text = page.files(contents.page_contents(reading.read()))["index.html"]
    assert spoil(text) != text
    assert list(faults(Page(spoil(text))))


def test_measured_and_simulated_are_in_each_heading_by_word_and_mark(two_partitions):
    text = page.files(contents.page_contents(reading.read()))["index.html"]
    for heading, kind in (("local:host", "measured"), ("local:sim-mi250x", "simulated")):
        marks = re.findall(rf"<h3[^>]*>{heading} (.*?)</h3>", text)
        assert len(marks) == 6
        assert all(f"#mark-{kind}" in one and f"{kind}</span>" in one for one in marks)


def test_every_kind_is_explained_and_has_a_shape(two_partitions):
    found, _ = written()
    shapes = {one["id"] for one in found.all("symbol")}
    assert shapes == {f"mark-{kind}" for kind in page.KINDS}
    terms = [one["text"] for one in found.all("dt")]
    assert set(page.KINDS) <= set(terms)
    assert {"measured", "simulated", "published", "derived", "fitted", "calibrated"} <= set(terms)


def test_a_figure_is_in_the_page_and_beside_it_with_its_data(two_partitions):
    found, files = written()
    names = [one["id"] for one in found.all("figure")]
    assert names == ["local-host-stream-curves", "local-sim-mi250x-stream-curves"]
    assert files[f"figures/{names[1]}.csv"] == (
        "device,kind,value,note\n0,simulated,1.23456789,a<b\n"
    )
    assert files[f"figures/{names[1]}.svg"] == DRAWING
    shown = found.all("figure")[1]["text"]
    assert "Copies & <b>kernels</b>" in shown and "One device: 1.2 GB/s." in shown
    assert "local-sim-mi250x-stream-curves.csv (1 rows)" in shown
    links = [one["href"] for one in found.all("a") if "figure" in one["in"]]
    assert set(links) == {name for name in files if name.startswith("figures/")}


def test_text_of_others_is_shown_and_does_nothing(results_folder, one_figure):
    bad = factories.case(HTML, result="fail", fail_reason=f"{HTML}\x1b[31m\u202egnp", tags=["E1"])
    SessionBuilder(results_folder).add(bad | {"unique_name": "bad"}).write()
    found, files = written()
    assert list(faults(found)) == []
    assert f"{HTML}\\x1b[31m\\u202egnp" in found.text("main")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "".join(files.values()))


def test_a_session_of_nothing_is_said_to_be_nothing(results_folder, one_figure):
    SessionBuilder(results_folder).write()
    found, _ = written()
    assert list(faults(found)) == []
    assert "The session has no result." in found.text() and "INCOMPLETE" in found.text("h1")


def test_as_many_partitions_as_there_are_each_once(results_folder, one_figure):
    names = [f"part-{number}" for number in range(5)] + ["part_0"]
    session = SessionBuilder(results_folder, command=None)
    for name in names:
        session.passed(f"stream_{name}", where=f"local:{name}")
    session.write()
    found, files = written()
    assert list(faults(found)) == []
    assert len(found.all("figure")) == 6 == sum(name.endswith(".csv") for name in files)


def test_a_failed_metric_is_the_first_thing_said(results_folder, one_figure, wording):
    sentence = "copy_worst: device 0 of node node1 measured 8 GB/s; at least 9 GB/s is required"
    SessionBuilder(results_folder, where=HOST, command=None).missed(
        "copy_worst", 8.0, least=9.0
    ).write()
    found, _ = written()
    text = found.text("main")
    assert "PERF-FAIL" in found.text("h1") and "PERF-FAIL" in found.text("title")
    assert text.index("FAIL") < text.index(sentence) < text.index("Figures")
    row = "✗ stream_local copy_worstdevice 0 of node node18 GB/sat least 9"
    assert text.index("FAIL") < text.index(row) < text.index("All findings")
    assert "-11.1 %" in text and "at least 9" in text
    lines = [one["text"] for one in found.all("p") if "header" in one["in"]]
    first = lines[1]
    wording(lines[0])
    assert first.startswith("Measure node1 again: ") and sentence in first


def test_all_but_the_verdict_is_folded(two_partitions):
    found, _ = written()
    headings = {one["id"]: "details" in one["in"] for one in found.all("h2")}
    assert headings.pop("verdict") is False and len(headings) == 8 and all(headings.values())
    assert all("open" not in one for one in found.all("details"))


def test_what_failed_stands_before_what_passed(results_folder, one_figure):
    session = SessionBuilder(results_folder, command=None)
    session.passed("good", where="local:good")
    session.failed("run", check="bad", where="local:bad")
    session.passed("fine", where="local:fine").write()
    names = [part.name for part in contents.page_contents(reading.read()).parts]
    assert names == ["local:bad", "local:good", "local:fine"]


def test_of_each_check_that_failed_the_worst_is_at_a_glance(results_folder, one_figure):
    cases = [
        factories.case(
            f"stream_{number}", result="fail", tags=["E1"],
            perfvalues={
                f"local:host:copy_{name}": judged(value - number / 10, result="fail")
                for name, value in (("worst", 8.0), ("median", 8.05))
            },
        )
        for number in range(7)
    ]  # fmt: skip
    SessionBuilder(results_folder).bare(cases).write()
    found, _ = written()
    (table,) = [one for one in found.all("table") if "Beyond their limit:" in one["text"]]
    shown = re.findall(r"stream_(\d) copy_(worst|median)", table["text"])
    assert shown == [(str(number), "worst") for number in (6, 5, 4, 3, 2)]
    assert "of 14 that missed theirs" in table["text"]


def test_a_drawing_is_one_image_with_ids_of_its_own():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g role="graphics-symbol" aria-hidden="true" '
        'id="a" clip-path="url(#a)"><text>\x1b&lt;b&gt;</text></g></svg>'
    )
    found = Page(f"<p>{inline(svg, 'one', 'A drawing')}</p>")
    assert found.all("g")[0] | {"in": 0, "text": 0} == {
        "tag": "g", "text": 0, "in": 0, "id": "one-a", "clip-path": "url(#one-a)"
    }  # fmt: skip
    assert found.all("svg")[0]["aria-label"] == "A drawing" and "\\x1b<b>" in found.text("text")


def test_a_chart_shows_text_that_no_svg_can_hold():
    data = [{"name": "\x07</svg><script>\u202e", "value": 1.0}]
    chart = alt.Chart(alt.Data(values=data)).mark_bar().encode(x="value:Q", y="name:N")
    found = Page(inline(drawn(chart).result(), "one", "A chart"))
    assert "\\x07</svg><script>\\u202e" in [one["text"] for one in found.all("text")]
