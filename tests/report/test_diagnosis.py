"""The diagnosis is told in the verdict, and its components are marked in the node's drawing."""

import re
from html import unescape

import pytest
from html_page import Page, faults

from fabricheck.judge.diagnosis.components import candidates
from fabricheck.judge.diagnosis.model import Component, Degraded, Diagnosis
from fabricheck.judge.verdict import diagnosing
from fabricheck.node import load
from fabricheck.report import contents, figures, page
from fabricheck.report.figures import drawing, node
from fabricheck.results import reading
from fabricheck.results.observed import Observed

MI250X, H200 = load("mi250x"), load("h200")

#: Components of no part of the node: software, which is of all devices.
LIBRARIES = ("mpi", "rccl")


def part(kind, *ids, **more):
    return Component(kind=kind, ids=ids, **more)


def one(component, *equals, loss=50.0, **more):
    return Degraded(
        component=component, equals=list(equals), loss_percent=loss, devices=[],
        explains=2, odds=6.3, **more,
    )  # fmt: skip


def of(*found, **more):
    return Diagnosis(**{"misses": 4, "explained": 2, "unexplained": [], **more}, degraded=[*found])


def drawn(*found, model=MI250X):
    (figure,) = node.figures(Observed("local:sim", (), model), of(*found))
    return figure


def texts(svg):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def titles(svg):
    return [title for title in re.findall(r"<title>([^<]*)</title>", svg) if ":" in title]


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (part("link", 0, 6), [("link", (0, 6))]),
        (part("link", 6, 0, direction="one-way"), [("link", (0, 6))]),
        (part("link_gone", 0, 6), [("link", (0, 6))]),
        (part("link_turns", 0, 6), [("link", (0, 6))]),
        (part("link", 3), [("link", pair) for pair in MI250X.links if 3 in pair]),
        (part("link"), [("link", pair) for pair in MI250X.links]),
        (part("pageable_copies", 5, direction="to"), [("host", 5)]),
        (part("numa_connection", 0, 3, direction="one-way"), [("domain", 0), ("domain", 3)]),
        (part("numa_rotated", 1, 2, 3, 0), [("domain", index) for index in range(4)]),
        (part("cables_exchanged", 0, 1, 4, 5), [("device", i) for i in (0, 1, 4, 5)]),
        (part("copies", 0, 5, direction="one-way"), [("device", 0), ("device", 5)]),
        (part("hbm"), [("device", index) for index in range(8)]),
        (part("mpi", operation="all_reduce"), []),
    ],
)
def test_a_component_has_its_place(component, expected):
    assert list(node.places(component, MI250X)) == expected


@pytest.mark.parametrize("model", [MI250X, H200])
def test_every_component_of_a_node_is_at_its_devices(model):
    for candidate in candidates(model, ()):
        component = candidate.component
        found = [*node.places(component, model)]
        assert bool(found) != (component.kind in LIBRARIES), component.label
        devices = {part for kind, part in found if kind in ("device", "host")}
        if devices and candidate.devices:
            assert devices == set(candidate.devices), component.label


def test_a_degraded_link_is_outlined_in_words_and_colour(wording):
    found = drawn(one(part("link", 6, 0, direction="one-way")))
    shown = texts(found.svg)
    assert shown.count("degraded") == 1 and "6 to 0" in shown and "outlined: degraded" in shown
    assert titles(found.svg) == ["degraded: link 6-0, one direction"]
    assert found.svg.count(drawing.FAILURE) == 2  # the link and the legend
    wording(found.says)


def test_equals_are_all_marked_with_a_dash_and_a_question(wording):
    found = drawn(
        one(part("host_link", 5, direction="to"), part("copies", 5, direction="to"),
            part("copies", 4, direction="from"))
    )  # fmt: skip
    outlines = re.findall(f'stroke="{drawing.FAILURE}"( stroke-dasharray="6 4")?', found.svg)
    assert len(outlines) == 4 and all(outlines)
    assert texts(found.svg).count("degraded?") == 3 and "degraded" not in texts(found.svg)
    wording(titles(found.svg)[0])


def test_of_several_components_at_a_device_each_is_named():
    found = node.marks_of(of(
        one(part("hbm", 3)), one(part("rank", 3), part("copies", 3, 4, direction="one-way")),
    ), MI250X)  # fmt: skip
    assert found["device", 3].label == ("degraded", "HBM", "rank", "copy engine")
    assert not found["device", 3].outline.dashed and found["device", 4].outline.dashed


def test_a_domain_and_a_line_to_the_switch_are_marked():
    assert "DDR degraded" in texts(drawn(one(part("ddr", 1))).svg)
    found = drawn(one(part("link", 3, direction="to")), model=H200)
    assert titles(found.svg) == ["degraded: links from the switch to device 3"]
    assert texts(found.svg).count("degraded") == 1


def test_without_a_place_or_a_diagnosis_nothing_is_marked():
    unmeasured = Observed("local:sim", (), MI250X)
    for diagnosis in (None, of(), of(one(part("mpi", operation="collectives")))):
        assert list(node.figures(unmeasured, diagnosis)) == []


def test_how_many_missed_limits_are_explained_is_in_words(wording):
    found = one(part("hbm", 3))
    wording([
        of(found, misses=misses, explained=explained).sentence
        for misses, explained in ((1, 1), (2, 1), (2, 2), (3, 3))
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (one(part("link_gone", 0, 6), loss=None), ""),
        (one(part("latency_of_link", 0, 6), loss=250.0), "250 % higher"),
        (one(part("hbm", 3), loss=30.4), "30 %"),
    ],
)
def test_the_loss_is_told_as_in_the_sentence(found, told):
    assert found.loss == told
    assert told in of(found).sentence


def test_the_verdict_tells_the_diagnosis_before_the_failures(two_partitions, monkeypatch):
    supporting = [f"memcpy_near h2d {number}" for number in range(8)]
    found = of(
        one(
            part("host_link", 5, direction="to"), part("copies", 5, direction="to"),
            supporting=supporting,
            contradicting=["p2p_engine engine 4-5"], causes=["throttled <hot>"],
            next=["p2p_engine"],
        ),
        unexplained=["p2p_kernel write_links4_worst"], lacking=["2 measurements of 9 are noisy."],
    )  # fmt: skip
    monkeypatch.setattr(diagnosing, "node_diagnosis", lambda *outcomes: found)
    monkeypatch.setattr(figures, "SECTIONS", {"The node": (node.figures,)})
    shown = Page(page.files(contents.page_contents(reading.read()))["index.html"])
    assert list(faults(shown)) == []
    (sentence, _) = [one for one in shown.all("p") if one.get("class") == "diagnosis"]
    assert sentence["text"] == found.sentence
    cells = [one["text"].strip() for one in shown.all("th", "td")]
    table = cells[cells.index("Component") :][:18]
    assert list(zip(table[::2], table[1::2], strict=True)) == [
        ("Component", "host link to device 5"),
        ("Loss", "50 %"),
        ("Missed limits explained", "2 of 4"),
        ("Odds", "1e6"),
        ("Or one of these, which explain as much", "copies to device 5"),
        ("Measurements for it", "; ".join(supporting[:6]) + " and 2 more"),
        ("Measurements against it", "p2p_engine engine 4-5"),
        ("Causes", "throttled <hot>"),
        (
            "To tell it from these",
            "reframe --system=local:host -c reframe_checks -r -n '^p2p_engine$'",
        ),
    ]
    marks = [one["text"] for one in shown.all("title") if one["text"].startswith("degraded?: ")]
    assert len(marks) == 2
    said = [one["text"] for one in shown.all("p")]
    assert "Unexplained: p2p_kernel write_links4_worst." in said
    assert found.lacking[0] in said


def test_a_session_without_misses_has_none_of_it(two_partitions):
    shown = Page(page.files(contents.page_contents(reading.read()))["index.html"])
    assert not [one for one in shown.all("p") if one.get("class") == "diagnosis"]
    assert "Odds" not in shown.text("section")
