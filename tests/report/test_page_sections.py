"""The sections of the page show what was found: claims, slow devices, references, environment."""

import json
import re

import pytest
from html_page import Page, faults

import factories
from fabricheck.papers import section as judged_claims
from fabricheck.papers.claims.model import REFUTED, REPRODUCED, Claim, Finding, NotTestable, Number
from fabricheck.report import contents, environment, page
from fabricheck.results import reading
from factories import judged
from session_builder import HOST, SessionBuilder


def claim(name, outcome, built_in=None):
    def judge(observed):
        if outcome is None:
            raise NotTestable("it has no <links>")
        number = Number("copy", 12.5, "GB/s", observed.clock, (12.0, 13.0))
        return Finding(outcome, f"{name} is 12.5.", (number,))

    return Claim(name, f"Claim {name}.", "paper", "V.B", "as large", judge, built_in=built_in)


@pytest.fixture
def claims(monkeypatch):
    found = (
        claim("holds", REPRODUCED),
        claim("assumed", REPRODUCED, built_in="engines are limited"),
        claim("fails", REFUTED),
        claim("unknown", None),
    )
    monkeypatch.setattr(judged_claims, "CLAIMS", found)


def shown(what="latest"):
    found = Page(page.files(contents.page_contents(reading.read([what])))["index.html"])
    assert list(faults(found)) == []
    return found


def test_what_agrees_by_construction_is_counted_apart_on_a_simulated_node(two_partitions, claims):
    host, simulated = reading.read().observed
    assert judged_claims.judged_claims(host).says == (
        "2 reproduced, 1 not reproduced, 1 not testable here, of 4 claims"
    )
    assert judged_claims.judged_claims(simulated).says == (
        "1 reproduced, 1 agree by construction, 1 not reproduced, 1 not testable here, of 4 claims"
    )


def test_claims_are_told_with_outcome_place_and_numbers(two_partitions, claims):
    found = shown()
    rows = {one["id"]: " ".join(one["text"].split()) for one in found.all("tr") if "id" in one}
    assert re.match(
        r"Claim holds\. the paper, V\.B✓ reproduced simulated holds is 12\.5\. .* Rule: as "
        r"large\. copy: 12\.500 GB/s \(12\.000 to 13\.000\) simulated",
        rows["claim-local-sim-mi250x-holds"],
    )
    assert "✓ reproduced measured" in rows["claim-local-host-assumed"]
    assert "engines are limited" not in rows["claim-local-host-assumed"]
    made = rows["claim-local-sim-mi250x-assumed"]
    assert "= agrees by construction built in" in made and "engines are limited." in made
    assert "✗ not reproduced measured" in rows["claim-local-host-fails"]
    assert [one["text"] for one in found.all("summary")].count("1: it has no <links>") == 2


def test_slow_devices_and_what_references_rest_on_are_in_the_page(results_folder, one_figure):
    where = "local:sim-mi250x"
    values = {f"{where}:h2d_pinned_near_worst": judged(28.0, 28.3, -0.05)}
    devices = [factories.device(index) for index in range(3)]
    series = [
        factories.series(
            [value], host_clock=None, device=index, device_set=[index],
            source=factories.place(device=index), destination=factories.place(device=index),
        )
        for index, value in enumerate((10.0, 10.0, 7.0))
    ]  # fmt: skip
    document = factories.simulated_document(series=series, devices=devices)
    SessionBuilder(results_folder, where=where, command=None).passed(
        "memcpy_near", document=document, environ="sim", perfvalues=values, tags=["E1"]
    ).write()
    text = shown().text("main")
    # Cells of a table follow each other without a space.
    assert "device 230.0 %7.0000 GB/s10.000 GB/s" in text
    assert "paper-h2d-pinnedSchieffer et al." in text and "inferred" in text
    assert "published elsewhere" in text and "at least 26.885 (-5 %)" in text


def test_on_paper_the_findings_are_always_there_and_the_page_says_so(two_partitions, claims):
    found = shown()
    folded = [one for one in found.all("details") if one.get("class", "").startswith("section")]
    printed = [one["text"] for one in folded if "printed" in one["class"]]
    assert len(folded) == 8 and len(printed) == 1 and "All findings" in printed[0]
    sentence = next(one for one in found.all("p") if one.get("class") == "onpaper")["text"]
    assert "open in the browser is printed too" in sentence


def facts(results, *versions):
    session = SessionBuilder(results, where=HOST, command=None)
    for number, version in enumerate(versions):
        told = {"runtime": version, "driver": "5"}
        document = factories.document(versions=told, environment={"HSA_XNACK": "1"})
        session.passed(f"stream_{number}", document=document)
    session.write()
    found = environment.environment_facts(reading.read().observed[0])
    return [(one.value, one.where) for one in found if one.name == "version of runtime"], found


def test_what_all_documents_tell_is_told_once(results_folder):
    versions, every = facts(results_folder, "6", "6", "6")
    assert versions == [("6", "")]
    assert ("environment HSA_XNACK", "1", "") in [(one.name, one.value, one.where) for one in every]


def test_what_they_tell_differently_is_told_with_who_tells_it(results_folder):
    versions, _ = facts(results_folder, "6", "6", "7", "6", "6")
    assert versions == [("6", "all but stream_2"), ("7", "stream_2")]


def test_the_state_around_the_checks_is_in_the_page(results_folder, one_figure, wording):
    quiet = [factories.device_state(index) for index in range(2)]
    hot = {"clock_mhz": 1310, "temperature_c": 81, "power_w": 699, "throttle": ["power"]}
    slow = [quiet[0], quiet[1] | hot | {"memory_errors": {"corrected": 3, "uncorrected": 0}}]
    busy = factories.host_use(15.8, loops=5)
    states = (factories.state(quiet), factories.state(quiet, slow, busy))
    session = SessionBuilder(results_folder, where=HOST, command=None)
    for name, state in zip(("stream_local", "stream_scan"), states, strict=True):
        session.passed(name, document=factories.on_h200(state=state))
    session.write()
    found = shown()
    said = [one["text"] for one in found.all("li")]
    wording(one for one in said if one.startswith(("Device 1 (0000:42:00.0) ", "Others ")))
    assert "host.governor: there is no cpufreq" in said
    text = found.text("main")
    assert "cores kept busy by others than this run: 0.1 to 15.8;" in text
    assert "cores of the host that are online: 16;" in text
    assert "free memory of the host: 120 GiB" in text and "governor of the" not in text
    for row in (
        "the clock of its compute units, in MHz" "1,980" "1,310 to 1,980",
        "the highest clock of its compute units, in MHz" "1,980" "1,980",
        "its highest temperature, in deg C" "42" "42 to 81",
        "its power, in W" "141" "141 to 699",
        "its power cap, in W" "700" "700",
        "lanes of its link to the host" "16" "16",
        "transfers per second of a lane, in 1e9" "32" "32",
        "a counter of the PCIe packets sent again" "0" "0",
        "its links to other devices" "18" "18",
        "how many of these links are up" "18" "18",
        "a counter of its corrected memory errors" "0" "0 to 3",
        "a counter of its uncorrected memory errors" "0" "0",
        "whether its memory corrects errors" "yes" "yes",
        "the version of its VBIOS" "96.00.A5.00.1A" "96.00.A5.00.1A",
        "versions of its firmware: name version, ..."
        "inforom G520.0282.02.02" "inforom G520.0282.02.02",
    ):  # fmt: skip
        assert row in text


def test_the_page_of_documents_without_a_state_does_not_speak_of_it(results_folder, one_figure):
    SessionBuilder(results_folder, where=HOST, command=None).passed().write()
    assert "State around" not in shown().text("main")


def test_files_that_are_attached_to_a_session_are_linked(results_folder, one_figure, tmp_path):
    output = results_folder / "output" / "20260102T030400+0000"
    scraped = factories.write(output / "attached" / "node1" / "node_scraper.json", {"dmesg": []})
    SessionBuilder(results_folder, where=HOST, command=None).passed().write()
    report = results_folder / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    content["session_info"]["prefix_output"] = str(output)
    report.write_text(json.dumps(content))
    results = reading.read()
    for folder in (page.folder(results), tmp_path / "elsewhere"):
        written = page.files(contents.page_contents(results), folder)["index.html"]
        found = Page(written)
        assert list(faults(found)) == []
        (link,) = [one["href"] for one in found.all("a") if one["text"] == str(scraped)]
        assert not link.startswith("/") and (folder / link).resolve() == scraped.resolve()
    alone = factories.write(results_folder / "x" / "result.json")
    assert "Attached" not in shown(str(alone)).text()
