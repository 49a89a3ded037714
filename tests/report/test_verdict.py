"""A partition passes when everything in it did, and nothing is missing."""

import pytest
from html_page import Page

import factories
from fabricheck.report import contents
from fabricheck.report.page import render
from fabricheck.results import reading
from fabricheck.site import sets
from factories import judged
from session_builder import HOST, SessionBuilder

WRONG = {"exit_code": 5, "status": "wrong-data", "message": "device 0: 1 element differs"}

TOPOLOGY = factories.document()["program"] | {"name": "topology"}


#: The checks of the partition: one of them runs here.
CHECKS = {"stream_local": "smoke full", "memcpy_near": "smoke full", "stream_scan": "full"}


def of(results, cases, documents):
    session = SessionBuilder(results, where=HOST, command=None)
    session.each((case, documents.get(case["unique_name"])) for case in cases).write()
    return of_page(reading.read())


def of_page(results):
    """Return what the page of the only partition says of its verdict."""
    [part] = contents.page_contents(results).parts
    return part


def sentences(part):
    """Return the sentences of the reasons by check."""
    return [[one.sentence for one in each] for each in part.failures]


def test_what_passed_is_told_in_numbers(results_folder, wording):
    values = {
        "local:host:a": judged(10.0),
        "local:host:b": judged(11.0, 0, None, None),
        "local:host:c": judged(8.0, result="xfail"),
    }
    noisy = factories.series([9.0, 10.0, 20.0, 5.0, 9.0, 10.0], noisy=True, regime="cache")
    found = of(
        results_folder,
        [factories.case(perfvalues=values), factories.case("other", result="skip")],
        {"stream_local": factories.document(series=[factories.series(), noisy])},
    )
    assert (found.verdict.status, found.failures, found.problems) == ("PASS", [], [])
    assert [one.check for one in found.verdict.checks.skipped] == ["other"]
    wording(found.says)


def test_what_a_pass_does_not_rest_on_is_told(results_folder, wording):
    free = {"local:host:b": judged(11.0, 0, None, None)}
    cases = [
        factories.case(perfvalues={"local:host:a": judged(10.0)} | free),
        factories.case("other", result="skip"),
    ]
    factories.recorded_checks(results_folder / "output", "local:host", **CHECKS)
    found = of(results_folder, cases, {"stream_local": factories.document()})
    wording(found.verdict.caveats)


@pytest.mark.parametrize("lower", [None, -0.1])
def test_nothing_judged_is_told_beside_pass(results_folder, lower):
    values = {"local:host:a": judged(10.0, 10.0, lower)}
    found = of(
        results_folder, [factories.case(perfvalues=values)], {"stream_local": factories.document()}
    )
    said = "None of 1 metric has a limit, so its speed is not judged."
    assert found.verdict.status == "PASS" and (said in found.verdict.caveats) == (lower is None)


@pytest.mark.parametrize(
    "document",
    [
        factories.simulated_document(),
        factories.document(series=[], program=TOPOLOGY, differences=[]),
        factories.document(),
    ],
    ids=["simulated", "without series", "without a GPU"],
)
def test_what_passed_without_hardware_or_series_is_told(results_folder, document, wording):
    case = factories.case(perfvalues={"local:host:a": judged(10.0)})
    wording(of(results_folder, [case], {"stream_local": document}).verdict.caveats)


def test_a_check_that_failed_fails_with_its_sentence(results_folder, wording):
    bad = factories.case("bad", result="fail", fail_reason="pair 1-7\nis odd", fail_phase="setup")
    found = of(results_folder, [factories.case(), bad], {"stream_local": factories.document()})
    assert found.verdict.status == "INCOMPLETE"
    assert sentences(found) == [["bad: (setup) pair 1-7 is odd"]]
    wording(found.says)


def test_missed_metrics_are_a_sentence_each_without_what_reframe_says_of_all(results_folder):
    told = [
        f"bad: Metric {name}: the check measured 75.2 GB/s; at least 140.6 GB/s is required "
        "(reference 148 GB/s)."
        for name in ("write_links4", "copy_links4")
    ]
    reason = (
        "failed to meet reference(s):\n    write_links4=75.21883591259943 GB/s (l=140.6, u=inf)"
    )
    missed = {f"local:host:{name}": judged(75.2, 148.0, -0.05, result="fail")
              for name in ("write_links4", "copy_links4")}  # fmt: skip
    slow = {"result": "fail", "fail_phase": "performance", "perfvalues": missed}
    bad = factories.case("bad", fail_reason=reason, **slow)
    found = of(results_folder, [bad], {})
    assert found.verdict.status == "PERF-FAIL"
    assert sentences(found) == [told]


def test_wrong_data_fails_where_no_check_says_it(results_folder, wording):
    series = factories.series(verification=factories.mismatched())
    bad = factories.document(outcome=WRONG, series=[series])
    found = of(results_folder, [factories.case()], {"stream_local": bad})
    assert found.verdict.status == "DATA-FAIL" and found.failures[0][0].status == "DATA-FAIL"
    wording([found.failures[0][0].sentence, found.says])


@pytest.mark.parametrize("document", [None, factories.killed_document()])
def test_what_is_missing_or_not_whole_is_no_pass(results_folder, document, wording):
    cases = [factories.case(), factories.case("other")]
    documents = {"stream_local": factories.document()} | ({"other": document} if document else {})
    found = of(results_folder, cases, documents)
    assert found.verdict.status == "INCOMPLETE" and len(found.problems) == 1
    wording(found.says)


def test_skipped_alone_is_no_pass(results_folder):
    found = of(results_folder, [factories.case(result="skip")], {})
    assert found.verdict.status == "INCOMPLETE"


def test_documents_of_a_session_without_a_report_are_no_pass(results_folder):
    folder = results_folder / "output" / "20260102T030405-7" / "local" / "host" / "host"
    factories.write(folder / "stream_local" / "result.json")
    results = reading.read()
    found = of_page(results)
    assert found.verdict.status == "INCOMPLETE" and "20260102T030405-7" in results.title
    assert reading.NO_REPORT in contents.page_contents(results).problems


def test_a_check_of_the_chosen_set_that_is_not_there_is_no_pass(results_folder):
    factories.recorded_checks(results_folder / "output", "local:host", **CHECKS)
    for command, missed, rule in (
        ("reframe -t smoke", ["memcpy_near"], "missing"),
        # Of a chosen set only its own checks are missed.
        ("reframe -n stream_local", [], "left-out-checks"),
    ):
        SessionBuilder(results_folder, where=HOST, command=command).passed().write()
        found = of_page(reading.read())
        assert found.verdict.status == "INCOMPLETE"
        assert found.verdict.checks.missing == missed
        assert [one[0].rule for one in found.failures] == [rule]


def test_the_page_names_what_its_set_does_not_see(results_folder, wording):
    SessionBuilder(results_folder, where=HOST, command=None).passed().write()
    assert of_page(reading.read()).unseen == ""  # of some checks nothing is known
    command = "reframe --system=local:host --mode=node -r"
    SessionBuilder(results_folder, where=HOST, command=command).passed().write()
    part = of_page(reading.read())
    assert part.verdict.set == "node"
    assert part.unseen == sets.known()["node"].not_
    page = Page(render(contents.page_contents(reading.read())))
    (line,) = [one["text"] for one in page.all("li") if part.unseen in one["text"]]
    wording(line.replace(part.unseen, "UNSEEN"))
