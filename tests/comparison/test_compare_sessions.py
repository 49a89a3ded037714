"""Two sessions against each other, as the command line does it."""

import re

import pytest
import two_sessions
from two_sessions import (
    HEALTHY,
    document,
    flat,
    judged,
    latency,
    numbers,
    pair,
    results,
    simulated,
    spread,
)

import factories
from fabricheck.results.reading import read
from fabricheck.results.table import metrics
from session_builder import SessionBuilder


def test_identical_sessions_are_unchanged(command, before):
    code, only = judged(command, before, before)
    assert code == 0
    assert numbers(only) == {"unchanged": 3}
    assert only["differs"] == []


def test_one_slowed_link_is_worse_and_named(command, before, tmp_path):
    slowed = [pair(0, 1, spread(37)), *HEALTHY[1:]]
    after = results(tmp_path / "b", document(slowed))
    code, only = judged(command, before, after)
    assert code == 10
    assert numbers(only) == {"worse": 1, "unchanged": 2}
    [one] = only["worse"]
    assert (one["device_set"], one["operation"]) == ([0, 1], "engine")
    assert one["ratio"] == pytest.approx(0.74)
    low, high = one["low"], one["high"]
    assert (low, high) == pytest.approx((0.74 * 0.995 / 1.005, 0.74 * 1.005 / 0.995))
    assert 0 < only["by_chance_at_most"] < 0.01
    shown = command("compare", before, after, code=10)
    row = next(line for line in shown.stdout.splitlines() if " 0 to 1, 256 MiB " in line)
    assert re.search(r"p2p_engine E7 engine peer, GB/s +1/2 .* 50.000 37.000 0.740 \(0.733-", row)
    assert shown.stdout.startswith("1 worse, 0 better, 2 unchanged")
    assert re.search(r"at most 0\.000\d+ of these series would differ by chance", shown.stdout)


def test_of_a_latency_less_is_better(command, before, tmp_path):
    faster = document([*HEALTHY[:2], latency(0, 1, spread(5))])
    code, only = judged(command, before, results(tmp_path / "b", faster))
    assert code == 0
    assert numbers(only) == {"better": 1, "unchanged": 2}
    assert only["better"][0]["unit"] == "us"


@pytest.mark.parametrize(
    ("changes", "term"),
    [
        ({"bytes": 1 << 29}, "size 268435456 and 536870912"),
        ({"bytes_counted": "read+write", "bytes_moved": 2 << 28, "operation": "copy",
          "experiment": "E8", "source": factories.place("peer", 1), "engine": "kernel",
          "destination": factories.place("peer", 1), "direction": "both-ways",
          "block_size": 512}, "block size 256 and 512"),
    ],
)  # fmt: skip
def test_other_terms_are_not_comparable_and_named(command, tmp_path, changes, term):
    ours = changes | {"block_size": 256} if "block_size" in changes else {}
    a = results(tmp_path / "a", document([pair(0, 1, spread(50), **ours), HEALTHY[1]]))
    b = results(tmp_path / "b", document([pair(0, 1, spread(50), **changes), HEALTHY[1]]))
    code, only = judged(command, a, b)
    assert code == 11
    assert numbers(only) == {"unchanged": 1, "not_comparable": 1}
    assert term in only["not_comparable"][0]["why"]


@pytest.mark.parametrize(("experiment", "comparable"), [("E2", True), ("E4", False)])
def test_numa_domains_are_terms_only_where_they_are_measured(
    command, tmp_path, experiment, comparable
):
    domains = [{"index": index, "cores": [index], "memory_bytes": 16 << 30} for index in (0, 1)]
    host = factories.document()["host"] | {"numa_domains": domains}
    folders = []
    for domain in (0, 1):
        copy = pair(
            0, 0, spread(28), experiment=experiment, operation="h2d", device_set=[0],
            source=factories.place("host-pinned", None, domain), destination=factories.place(),
        )  # fmt: skip
        content = document([copy], host=host)
        folders.append(results(tmp_path / str(domain), content, tags=[experiment]))
    _, only = judged(command, *folders)
    assert numbers(only) == ({"unchanged": 1} if comparable else {"not_comparable": 1})


def test_engines_switched_off_are_not_compared_with_engines(command, before, tmp_path, wording):
    off = document(HEALTHY, environment={"HSA_ENABLE_SDMA": "0"})
    code, only = judged(command, before, results(tmp_path / "b", off))
    assert code == 3
    assert numbers(only) == {"not_comparable": 3}
    wording(only["not_comparable"][0]["why"])


def test_a_copy_shared_by_engines_is_not_compared_with_one_by_one_engine(
    command, tmp_path, wording
):
    one, three, untold = ({"engines": 1}, {"engines": 3}, {})
    a = results(tmp_path / "a", document([pair(0, 1, spread(50), **one)]))
    shared = results(tmp_path / "b", document([pair(0, 1, spread(150), **three)]))
    code, only = judged(command, a, shared)
    assert code == 3
    wording(only["not_comparable"][0]["why"])
    older = results(tmp_path / "c", document([pair(0, 1, spread(50), **untold)]))
    assert numbers(judged(command, a, older)[1]) == {"unchanged": 1}


def test_series_with_wrong_data_are_not_compared(command, before, tmp_path, wording):
    wrong = pair(0, 1, spread(80), verification=factories.mismatched())
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "p2p: wrong"}
    bad = document([wrong, *HEALTHY[1:]], outcome=outcome)
    failed = {"result": "fail", "fail_reason": "sanity error: p2p: wrong"}
    code, only = judged(command, before, results(tmp_path / "b", bad, **failed))
    assert code == 10
    wording(only["not_comparable"][0]["why"])
    assert numbers(only) == {"unchanged": 2, "not_comparable": 1}
    [outcome] = only["outcomes"]
    assert (outcome["before"], outcome["after"], outcome["worse"]) == ("pass", "fail", True)
    assert outcome["reason"] == "sanity error: p2p: wrong"


def test_a_check_that_is_too_noisy_to_judge_is_not_worse(command, tmp_path):
    said = "p2p: too noisy"
    outcome = {"exit_code": 7, "status": "too-noisy", "message": said}
    wide = pair(0, 1, [50.0 + 5 * n for n in range(-4, 5)], noisy=True)
    noisy = document([wide, *HEALTHY[1:]], outcome=outcome)
    metric = {"perfvalues": {"local:host:worst": [50.0, 0, 0, 0, "GB/s", "pass"]}}
    a = results(tmp_path / "a", document(HEALTHY), **metric)
    b = results(tmp_path / "b", noisy, result="fail", fail_reason=f"sanity error: {said}")
    for sides, code in (((a, b), 11), ((b, a), 0)):
        ended, only = judged(command, *sides)
        assert ended == code
        [one] = only["outcomes"]
        assert one["undetermined"] and not one["worse"]
    shown = command("compare", a, b, code=11).stdout
    assert "p2p_engine pass fail undetermined" in " ".join(shown.split())
    assert "0 worse, 0 better, 3 unchanged, 1 undetermined" in " ".join(shown.split())
    assert (
        "| p2p\\_engine | pass | fail | undetermined |"
        in command("compare", a, b, "--markdown", code=11).stdout
    )


def test_few_samples_are_undetermined_and_said_so(command, tmp_path, wording):
    a = results(tmp_path / "a", document([pair(0, 1, spread(50)[:6]), HEALTHY[1]]))
    b = results(tmp_path / "b", document([pair(0, 1, spread(25)[:6]), HEALTHY[1]]))
    code, only = judged(command, a, b)
    assert code == 0
    wording(only["undetermined"][0]["why"])
    alone = [results(tmp_path / name, document([pair(0, 1, [value])]))
             for name, value in (("c", 50.0), ("d", 25.0))]  # fmt: skip
    ended = command("compare", *alone, code=3)
    assert "nothing comparable" in ended.stderr and "A has 1 sample" in " ".join(
        ended.stdout.split()
    )


def test_measured_against_simulated_informs_and_never_says_worse(command, before, tmp_path):
    slow = [pair(0, 1, [20.0]), pair(1, 0, [50.0]), latency(0, 1, [9.0])]
    node = results(tmp_path / "b", simulated(slow), partition="sim-mi250x", environ="sim")
    code, only = judged(command, before, node)
    assert code == 0
    assert only["informs_only"]
    assert numbers(only) == {"worse": 1, "unchanged": 2}
    shown = command("compare", before, node).stdout
    assert "local:host, measured, against local:sim-mi250x, simulated" in shown
    assert "overlay" not in shown, "of none and none nothing differs"
    assert "Slower in B" in shown and "1 slower, 0 faster" in shown and "orse" not in shown


def test_documents_of_both_clocks_are_judged_where_the_clock_is_the_same(
    command, before, tmp_path, wording
):
    node = simulated([pair(0, 1, [20.0]), *HEALTHY[1:]])
    for name, content in (("p2p_engine", node), ("p2p_kernel", document(HEALTHY))):
        factories.write(tmp_path / "b" / name / "result.json", content)
    a = tmp_path / "a2"
    session = SessionBuilder(a).add(factories.case("p2p_engine"), document(HEALTHY))
    session.add(factories.case("p2p_kernel"), document(HEALTHY)).write()
    code, only = judged(command, a, tmp_path / "b")
    assert code == 11
    assert not only["informs_only"]
    assert numbers(only) == {"unchanged": 3, "not_comparable": 3}
    wording(only["not_comparable"][0]["why"])


def test_one_simulated_sample_is_exact(command, tmp_path):
    a = results(tmp_path / "a", simulated([pair(0, 1, [50.0]), pair(1, 0, [50.0])]))
    b = results(tmp_path / "b", simulated([pair(0, 1, [49.9]), pair(1, 0, [50.0])]))
    code, only = judged(command, a, b)
    assert code == 10
    assert numbers(only) == {"worse": 1, "unchanged": 1}
    assert judged(command, a, b, "--floor", 1)[0] == 0


def test_a_simulated_change_is_shown_however_small_it_is(command, tmp_path):
    a = results(tmp_path / "a", simulated([pair(0, 1, [50.0]), pair(1, 0, [50.0])]))
    b = results(tmp_path / "b", simulated([pair(0, 1, [49.999]), pair(1, 0, [50.00001])]))
    said = command("compare", a, b, code=10).stdout
    assert said.startswith("1 worse, 0 better, 1 unchanged")
    assert " 0.9999800 (exact)" in said


def test_what_an_update_changed_stands_above(command, before, tmp_path):
    versions = {"runtime": "7.16", "rocm": "10.1.0", "driver": "6.14"}
    after = document(HEALTHY, versions=versions, environment={"OMP_NUM_THREADS": "4"})
    after["devices"][0]["unique_id"] = "GPU-9"
    code, only = judged(command, before, results(tmp_path / "b", after))
    assert code == 0
    found = {one["what"]: (one["a"], one["b"]) for one in only["differs"]}
    assert found == {
        "unique ids": (["GPU-0", "GPU-1", "GPU-2", "GPU-3"], ["GPU-1", "GPU-2", "GPU-3", "GPU-9"]),
        "version of runtime": (["0.1.0"], ["7.16"]),
        "version of rocm": ([], ["10.1.0"]),
        "version of driver": (["none"], ["6.14"]),
        "environment OMP_NUM_THREADS": (["2"], ["4"]),
    }


def test_options_of_a_check_that_one_side_lacks_are_no_difference(command, tmp_path):
    a = results(tmp_path / "a", document(HEALTHY, options={"sizes": "256MiB"}))
    b = tmp_path / "b"
    session = SessionBuilder(b)
    for name, sizes in (("p2p_engine", "256MiB"), ("p2p_scan", "256:1GiB")):
        session.add(factories.case(name), document(HEALTHY, options={"sizes": sizes}))
    session.write()
    _, only = judged(command, a, b)
    assert only["checks_missing_in_a"] == ["p2p_scan"]
    assert only["differs"] == []
    _, only = judged(
        command, a, results(tmp_path / "c", document(HEALTHY, options={"sizes": "1GiB"}))
    )
    assert [one["what"] for one in only["differs"]] == ["option sizes of p2p"]


def test_of_the_runtime_host_nothing_is_worse_but_with_a_floor(command, tmp_path, wording):
    program = factories.document()["program"] | {"name": "p2p", "runtime": "host"}
    few = latency(0, 1, [9.0])
    sides = [
        results(tmp_path / name, document([few, pair(0, 1, spread(value))], program=program))
        for name, value in (("a", 50), ("b", 20))
    ]
    ended = command("compare", *sides, json=True, code=3)
    [only] = ended.json["partitions"]
    only = flat(only)
    first, last = only["undetermined"]
    assert (first["floor"], first["ratio"]) == (None, pytest.approx(0.4))
    marked = command("compare", *sides, "--markdown", code=3).stdout
    assert "| p2p\\_engine | E7 engine peer, GB/s | 1/1 | pair 0 to 1, 256 MiB |" in marked
    # What changed beyond noise comes first.
    wording(last["why"])
    command("compare", *sides, "--floor", 50, code=10)
    slow = simulated([pair(0, 1, [20.0])])
    node = results(tmp_path / "c", slow, partition="sim-mi250x", environ="sim")
    assert numbers(judged(command, sides[0], node)[1]) == {"worse": 1, "missing_in_b": 1}


def test_a_new_difference_from_the_node_model_is_worse(command, tmp_path):
    good, broken = (
        factories.document(
            program=factories.document()["program"] | {"name": "topology", "runtime": "rocm"},
            series=[], differences=found, environment={},
        )
        for found in ([], ["Link 0-6 is missing."])
    )  # fmt: skip
    where = {"perfvalues": {"local:host:differences": [0, 0, 0, 0, "count", "pass"]}}
    a = results(tmp_path / "a", good, **where)
    broken["outcome"] = {"exit_code": 8, "status": "good", "message": None}
    where = {"perfvalues": {"local:host:differences": [1, 0, 0, 0, "count", "fail"]}}
    b = results(tmp_path / "b", broken | {"outcome": good["outcome"]}, **where)
    code, only = judged(command, a, b)
    assert code == 10
    assert [one["reason"] for one in only["outcomes"]] == ["Link 0-6 is missing."]
    assert [one["metric"] for one in only["worse"]] == ["differences"]
    assert judged(command, b, a)[0] == 0


def test_another_difference_than_before_is_worse(command, tmp_path):
    program = factories.document()["program"] | {"name": "topology", "runtime": "rocm"}
    failed = {"perfvalues": {"local:host:differences": [1, 0, 0, 0, "count", "fail"]}}
    a, b = (
        results(
            tmp_path / link,
            factories.document(program=program, series=[], differences=[f"Link {link} is missing."],
                               environment={}),
            **failed,
        )
        for link in ("0-6", "0-2")
    )  # fmt: skip
    code, only = judged(command, a, b)
    assert code == 10 and not only["worse"]
    assert [(one["reason"], one["worse"]) for one in only["outcomes"]] == [
        ("Link 0-2 is missing.", True),
        ("Link 0-6 is missing.", False),
    ]


def repetition(number, **changes):
    """Build the case of a repetition of p2p_engine."""
    shown = f"p2p_engine %.repeat_no={number}"
    own = f"p2p_{number}"
    return factories.case("p2p_engine", display_name=shown, unique_name=own, tags=["E7"], **changes)


def test_of_repetitions_the_one_that_did_not_pass_is_the_check_that_counts(command, tmp_path):
    for name, ends in (("a", ("pass", "pass")), ("b", ("pass", "fail"))):
        session = SessionBuilder(tmp_path / name)
        for number, end in enumerate(ends):
            session.add(repetition(number, result=end), document([pair(0, 1, spread(50))]))
        session.write()
    code, only = judged(command, tmp_path / "a", tmp_path / "b")
    assert code == 10
    assert [(one["check"], one["worse"]) for one in only["outcomes"]] == [("p2p_engine", True)]


def test_metrics_have_the_samples_of_their_series(command, tmp_path, wording):
    sides = []
    for name, value in (("a", 50.0), ("b", 40.0)):
        values = {"worst": [value, 0, 0, 0, "GB/s", "pass"], "odd": [7.0, 0, 0, 0, "GB/s", "pass"]}
        recorded = {f"local:host:{metric}": entry for metric, entry in values.items()}
        content = document([pair(0, 1, spread(value))])
        sides.append(results(tmp_path / name, content, perfvalues=recorded))
    code, only = judged(command, *sides)
    assert code == 10
    assert [one.get("metric") for one in only["worse"]] == [None, "worst"]
    assert numbers(only) == {"worse": 2}, "what is no series' median is left to the series"
    other = document([pair(0, 1, spread(40.0), bytes=1 << 29)])
    _, only = judged(command, sides[0], results(tmp_path / "c", other, perfvalues=recorded))
    wording({one.get("metric"): one["why"] for one in only["not_comparable"]}["worst"])


def test_repetitions_are_one_value_with_an_interval_that_holds_all(command, tmp_path):
    for name, values in (("a", (50.0, 40.0)), ("b", (41.0, 49.0))):
        session = SessionBuilder(tmp_path / name)
        for number, value in enumerate(values):
            session.add(repetition(number), document([pair(0, 1, spread(value))]))
        session.write()
    code, only = judged(command, tmp_path / "a", tmp_path / "b")
    assert code == 0
    [one] = only["unchanged"]
    assert one["a"]["median"] == 45 and one["a"]["n"] == 18
    assert one["a"]["interval"] == pytest.approx([40 * 0.995, 50 * 1.005])


def test_markdown_names_the_worst_and_shows_text_as_text(command, before, tmp_path):
    versions = {"runtime": "<b>|7", "driver": "none"}
    slowed = document([pair(0, 1, spread(37)), *HEALTHY[1:]], versions=versions)
    ended = command("compare", before, results(tmp_path / "b", slowed), "--markdown", code=10)
    assert "1 worse, 0 better, 2 unchanged" in ended.stdout
    assert "| Check | Worse in B |" in ended.stdout
    assert "| p2p\\_engine | E7 engine peer, GB/s | 1/2 | pair 0 to 1, 256 MiB |" in ended.stdout
    assert "&lt;b&gt;" in ended.stdout and "<b" not in ended.stdout
    command("compare", before, before, "--markdown", json=True, code=2)


def test_long_lists_are_summarised_and_all_shows_them(command, tmp_path):
    sides = [
        results(tmp_path / name, document([pair(a, b, spread(value - a)) for a in range(4)
                                           for b in range(4) if a != b]))
        for name, value in (("a", 50.0), ("b", 40.0))
    ]  # fmt: skip
    short, full = (
        command("compare", *sides, code=10).stdout,
        command("compare", *sides, "--all", code=10).stdout,
    )
    assert len(re.findall(r"\d to \d, 256 MiB", short)) == 1 and "12/12" in short
    assert "3 to 0, 256 MiB" in short, "the worst of them"
    assert len(re.findall(r"\d to \d, 256 MiB", full)) == 12


def test_a_series_that_a_floor_hides_is_counted(command, before, tmp_path):
    after = results(tmp_path / "b", document([pair(0, 1, spread(49.2)), *HEALTHY[1:]]))
    shown = command("compare", before, after)
    assert "3 unchanged (1 differ by less than their floor)" in " ".join(shown.stdout.split())
    command("compare", before, after, "--floor", 1, code=10)


def test_noisy_series_are_named(command, before, tmp_path):
    wide = two_sessions.pair(0, 1, [20.0 + n for n in range(-4, 5)], noisy=True, regime="cache")
    noisy = document([wide, *HEALTHY[1:]])
    shown = command("compare", before, results(tmp_path / "b", noisy), code=10).stdout
    assert ", noisy" in " ".join(shown.split())


def test_one_series_twice_in_a_document_counts_once(command, before, tmp_path):
    twice = document([*HEALTHY, pair(0, 1, spread(30)), pair(0, 1, spread(60))])
    code, only = judged(command, before, results(tmp_path / "b", twice))
    assert code == 0
    assert numbers(only) == {"unchanged": 3}
    assert [one["b"]["n"] for one in only["unchanged"] if one["device_set"] == [0, 1]
            and one["unit"] == "GB/s"] == [27]  # fmt: skip


def of_ranks(folder, operation, metric, value=50):
    """Write a session of ranks that copy to their device and back, and fail a limit."""
    series = factories.host_copy(
        experiment="E6",
        operation=operation,
        direction="both-ways",
        samples=spread(value),
        value=value,
    )
    name = "pingpong_right"
    recorded = {f"local:host:{metric}": [value, 60, -0.1, None, "GB/s", "fail"]}
    results(
        folder,
        document([series]),
        display_name=name,
        unique_name=name,
        tags=["E6"],
        perfvalues=recorded,
        result="fail",
        fail_phase="performance",
        fail_reason=f"performance error: below\nMetric {metric}: devices 0 measured 50 GB/s.",
    )
    return folder


def test_a_session_of_a_version_that_called_there_and_back_both_is_compared_with_todays(
    command, tmp_path, wording
):
    older = of_ranks(tmp_path / "a", "both", "both_pinned_worst")
    today = of_ranks(tmp_path / "b", "there-and-back", "there_and_back_pinned_worst")
    _, only = judged(command, older, today)
    assert numbers(only) == {"unchanged": 2}
    metric, series = sorted(only["unchanged"], key=lambda value: "operation" in value)
    assert metric["metric"] == "there_and_back_pinned_worst"
    assert series["operation"] == "there-and-back"
    (check,) = read([str(older)]).checks
    wording(check.case.why)
    assert [metric.series for metric in metrics(check)] == [(0,)]


def gone(pair):
    """Build what a document has of a simulated node without the links of a pair."""
    content = {"name": "gone", "description": "gone", "links": [{"pair": pair, "gone": True}]}
    node = {"name": "mi250x", "digest": "0" * 64}
    return node | {"overlay": {"name": "gone", "content": content}}


def of_pairs(far, near):
    devices = [factories.device(index) for index in range(8)]
    series = [latency(1, 7, [far]), latency(0, 1, [near])]
    return {"series": series, "devices": devices}


def test_what_is_better_since_a_missing_link_changed_its_route_is_counted_apart(command, tmp_path):
    a = results(tmp_path / "a", simulated(**of_pairs(17.8, 9.0)))
    b = results(tmp_path / "b", simulated(**of_pairs(12.4, 8.0), node=gone([0, 6])))
    _, only = judged(command, a, b)
    assert {tuple(one["device_set"]): one["rerouted"] for one in only["better"]} == {
        (1, 7): True,  # over 0-6 before
        (0, 1): False,
    }
    assert command("compare", a, b).stdout.startswith(
        "0 worse, 2 better (1 of them over another route), "
    )


def test_the_links_that_a_measured_node_lacks_are_those_of_its_topology(command, tmp_path):
    where = {"system": "lumi", "partition": "gpu"}
    lost = [factories.difference("The pair 0-6 has no link.", 0, 6, found=0, lost=True)]
    a = results(tmp_path / "a", document(**of_pairs(17.8, 9.0)) | {"differences": []}, **where)
    b = results(tmp_path / "b", document(**of_pairs(12.4, 9.0)) | {"differences": lost}, **where)
    _, only = judged(command, a, b)
    values = [*only["better"], *only["undetermined"], *only["unchanged"]]
    assert {tuple(one["device_set"]): one["rerouted"] for one in values} == {
        (1, 7): True,
        (0, 1): False,
    }
