"""What loads as a result document and, above all, what does not."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.results import document, state

GOOD = json.dumps(factories.document(), indent=1)
STATES = Path(__file__).parents[1] / "outputs" / "state"
#: A number as a JSON value, thus after a colon, comma or bracket.
NUMBERS = [match.span(1) for match in re.finditer(r"[:\[,]\s*(-?\d[\d.eE+-]*)(?=\s*[,\]}])", GOOD)]


def refused(content, path="x.json"):
    with pytest.raises(InvalidFile) as caught:
        document.parse(content if isinstance(content, str) else json.dumps(content), path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


def with_series(**changes):
    return factories.document(series=[factories.series(), factories.series(**changes)])


def with_outcome(status, code, message="a reason", **changes):
    outcome = {"exit_code": code, "status": status, "message": message}
    return factories.document(outcome=outcome, **changes)


def test_a_good_document_loads(tmp_path):
    path = factories.write(tmp_path / "result.json")
    assert document.load(path) == factories.document()


def test_what_a_killed_run_leaves_loads_as_incomplete():
    loaded = document.parse(json.dumps(factories.killed_document()))
    assert loaded["complete"] is False


def test_every_outcome_of_the_programs_loads():
    noisy = [
        factories.series(
            samples=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            noisy=True,
            host_clock={"median": 3.5, "ratio": 1.0, "agrees": True},
        )
    ]
    wrong = [factories.series(verification=factories.mismatched())]
    for content in (
        with_outcome("usage", 2, complete=False, series=[]),
        with_outcome("unsupported", 3, complete=False, series=[]),
        with_outcome("software", 4, complete=False),
        with_outcome("device-error", 9, complete=False),
        with_outcome("tool", 10, complete=False),
        with_outcome("wrong-data", 5, series=wrong),
        with_outcome("time-limit", 6, complete=False),
        with_outcome("too-noisy", 7, series=noisy),
        with_outcome("interrupted", 143, complete=False),
    ):
        document.parse(json.dumps(content))


def test_an_older_document_with_an_error_has_the_present_word():
    content = with_outcome("software", 4, complete=False)
    older = json.dumps(content).replace('"software"', '"runtime-error"')
    assert document.parse(older)["outcome"] == content["outcome"]


def test_an_older_document_has_the_number_of_devices_in_the_name_of_its_node():
    options = {"node": "h200 (2 of 8 devices)", "time_limit_s": 60}
    found = document.parse(json.dumps(factories.document(options=options)))["options"]
    assert found == {"node": "h200", "devices": 2, "time_limit_s": 60}


def test_an_older_document_has_the_present_name_of_copies_there_and_back():
    ranks = factories.host_copy(experiment="E6", operation="both")
    content = factories.document(series=[ranks, *factories.both_ways()])
    found = [series["operation"] for series in document.parse(json.dumps(content))["series"]]
    assert found == ["there-and-back", "both", "both", "both"]


def test_a_simulated_document_loads():
    overlay = {"name": "link 0-6 gone", "content": {"links": [{"pair": [0, 6], "gone": True}]}}
    for changed in (None, overlay):
        content = factories.simulated_document()
        content["node"]["overlay"] = changed
        document.parse(json.dumps(content))


def test_a_comparison_with_a_node_model_loads():
    devices = [factories.device(0, memory_bytes=None, compute_units=None)]
    for differences in ([], ["Pair 0-6: 2 links in mi250x, no direct link on node1."]):
        content = factories.document(devices=devices, series=[], differences=differences)
        document.parse(json.dumps(content))


def test_an_older_document_without_a_node_loads():
    content = factories.document()
    del content["node"]
    assert "differences" not in content and "stores" not in content["series"][0]
    document.parse(json.dumps(content))


@pytest.mark.parametrize("stores", [{}, {"stores": None}, {"stores": "streaming"}])
def test_how_a_kernel_writes_may_be_missing(stores):
    content = factories.document(series=[factories.series(**stores)])
    assert document.parse(json.dumps(content))["series"][0].get("stores") == stores.get("stores")


def test_several_devices_at_once_load():
    share = {"role": "share", "device_set": [0, 1]}
    both = factories.series(
        role="sum",
        device=None,
        device_set=[0, 1],
        bytes_moved=4 << 28,
        source=factories.place(device=None),
        destination=factories.place("host-pinned", None, 0),
    )
    shares = [factories.series(device=index, **share) for index in (0, 1)]
    document.parse(json.dumps(factories.document(series=[*shares, both])))


def test_pairs_of_devices_load():
    document.parse(json.dumps(factories.document(series=factories.pair_series())))


def test_files_that_can_not_be_read(tmp_path):
    with pytest.raises(NotFoundError, match=r"no result document .*absent\.json"):
        document.load(tmp_path / "absent.json")
    with pytest.raises(InvalidFile, match="cannot be read"):
        document.load(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"{\xff\xfe}")
    with pytest.raises(InvalidFile, match="byte 1 is not UTF-8"):
        document.load(binary)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("{}", "is not a fabricheck result document"),
        ("[1, 2]", "is not a fabricheck result document"),
        ('{"a": 1, "a": 2}', "contains the key 'a' twice"),
        ('{"a": NaN}', "contains NaN, which is not a finite number"),
        ('{"a": -Infinity}', "contains -Infinity"),
        ('{"a": 1e999}', "contains 1e999"),
        ('{"a": 1' + "0" * 400 + "}", "0..., which is not a finite number"),
        ('{"a": ["\\ud800"]}', "contains \\ud800, which is half of a character"),
        ("[" * 100_000, "brackets nested too deep"),
        ("1" * 5000, "brackets nested too deep"),
        ("{", "is not JSON, or cut off"),
    ],
)
def test_texts_that_are_no_document(text, said):
    assert said in refused(text)


@pytest.mark.parametrize("version", [None, "1", True, 1.5])
def test_no_version(version):
    sentence = refused(factories.document(schema_version=version))
    assert "$.schema_version: has no schema version" in sentence


def test_a_newer_version_says_what_to_do():
    sentence = refused(factories.document(schema_version=2))
    assert "has schema version 2" in sentence and "newer fabricheck" in sentence


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"notes": 3}, "$.notes: 3 is not of type array"),
        ({"finished": 3}, "$.finished: 3 is not of type null or string"),
        ({"clock": "guessed"}, '$.clock: "guessed" is not one of'),
        ({"extra": 1}, "'extra' was unexpected"),
        (
            {"outcome": {"exit_code": 3, "status": "good", "message": None}},
            "$.outcome.exit_code: is 3, but the outcome is good",
        ),
        ({"duration_s": -1}, "$.duration_s: -1 is less than the minimum of 0"),
    ],
)
def test_what_breaks_the_schema(changes, said):
    assert said in refused(factories.document(**changes))


def test_the_first_error_in_order_of_series_is_named():
    many = [factories.series() for _ in range(12)]
    many[10]["median"] = many[2]["median"] = "a word"
    assert "$.series[2].median" in refused(factories.document(series=many))


def test_a_long_value_is_shortened():
    assert len(refused(factories.document(notes="x" * 5000))) < 300


RUNNING = {"exit_code": None, "status": "running", "message": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"complete": False}, "$.complete: is false, but the outcome's status is good"),
        ({"clock": "simulated"}, "$.clock: is simulated, but the runtime is host"),
        ({"series": []}, "$.series: is empty, but the outcome is good: no data was compared"),
        ({"started": "yesterday"}, "$.started: 'yesterday' is not a date"),
        ({"started": "2026-01-02T03:04:05"}, "with a time zone"),
        ({"finished": "later"}, "$.finished: 'later' is not a date"),
        ({"devices": [factories.device(0), factories.device(0)]}, "same index"),
    ],
)
def test_contradictions_of_the_run(changes, said):
    assert said in refused(factories.document(**changes))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (with_outcome("time-limit", 6), "$.complete: is true"),
    ],
)
def test_outcomes_without_their_cause(content, said):
    assert said in refused(content)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"median": 10.06}, "median: is 10.06, but the samples give 10.05"),
        ({"noisy": True}, "noisy: is true beyond the caches, but the outcome is good"),
        ({"stores": "cached"}, 'stores: "cached" is not one of'),
        ({"operation": "quad"}, 'operation: "quad" is not one of'),
        ({"experiment": "E99"}, 'experiment: "E99" is not one of'),
        ({"device_set": [0, 7], "role": "share"}, "device_set[1]: device 7 is not among"),
        ({"device_set": [0, 0], "role": "share"}, "device_set: names a member twice"),
        ({"ranks": [1]}, "ranks: rank 1 is not among the document's ranks"),
        ({"source": factories.place(device=5)}, "source.device: device 5 is not among"),
        ({"source": factories.place("host-pinned", None, 4)}, "NUMA domain 4 is not among"),
        ({"verification": factories.mismatched()}, "verification.errors: is 1"),
        (
            {"verification": {"bytes_checked": 0, "errors": 0, "first_mismatch": None}},
            "no data was verified",
        ),
    ],
)
def test_contradictions_of_a_series(changes, said):
    sentence = refused(with_series(**changes))
    assert "$.series[1]." in sentence and said in sentence


def test_samples_are_above_zero(wording):
    series = factories.series() | {"samples": [1.0, 0.0]}
    sentence = refused(factories.document(series=[series]))
    wording(sentence)


def test_a_simulated_clock_has_no_host_clock(wording):
    sentence = refused(factories.simulated_document(series=[factories.series()]))
    wording(sentence)


def test_a_simulated_run_names_its_node_and_a_measured_one_has_none(wording):
    sentence = refused(factories.simulated_document(node=None))
    wording(sentence)
    node = factories.simulated_document()["node"]
    wording(refused(factories.document(node=node)))


def test_noise_beyond_the_caches_is_the_outcome():
    noisy = {"samples": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "noisy": True, "host_clock": None}
    said = "$.series[1].noisy: is true beyond the caches, but the outcome is good"
    assert said in refused(with_series(**noisy))
    in_cache = with_series(**noisy, regime="cache")
    document.parse(json.dumps(in_cache))


def test_between_devices_the_noise_of_the_sum_is_the_outcome():
    single, share, other, total, latency = factories.pair_series()
    varied = [single, factories.noisy(share), other, total, latency]
    document.parse(json.dumps(factories.document(series=varied)))
    # Older programs judged the shares, too.
    document.parse(json.dumps(with_outcome("too-noisy", 7, series=varied)))
    said = "$.series[3].noisy: is true beyond the caches, but the outcome is good"
    series = [single, share, other, factories.noisy(total), latency]
    assert said in refused(factories.document(series=series))


def test_noise_of_a_share_that_is_a_result_of_its_own_is_the_outcome():
    share = factories.noisy(factories.series(role="share", device_set=[0, 1]))
    said = "$.series[0].noisy: is true beyond the caches, but the outcome is good"
    assert said in refused(factories.document(series=[share]))


def test_a_value_in_a_list_is_named_by_its_index(wording):
    content = factories.document()
    content["series"][0]["ci95"] = [1.0, "2.0"]
    wording(refused(content))


@given(st.integers(min_value=0, max_value=len(GOOD) - 1))
def test_a_document_cut_anywhere_never_loads(end):
    refused(GOOD[:end])


@settings(max_examples=300)
@given(
    st.sampled_from(NUMBERS),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "nan", "word", "-", "0x1"]),
)
def test_a_number_replaced_by_a_word_never_loads(span, word):
    refused(GOOD[: span[0]] + word + GOOD[span[1] :])


def places_of_numbers(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            # The options are the program's own: any JSON is allowed in them.
            if path or key != "options":
                yield from places_of_numbers(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from places_of_numbers(part, (*path, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


@given(
    st.sampled_from(list(places_of_numbers(factories.document()))),
    st.one_of(st.text(), st.booleans(), st.lists(st.integers(), max_size=2), st.just({})),
)
def test_a_number_replaced_by_another_kind_never_loads(place, other):
    content = copy.deepcopy(factories.document())
    target = content
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = other
    refused(content)


def of_the_state(**changes):
    """Build a document with a state of which members of the snapshots are replaced."""
    built = factories.on_h200(series=[factories.series()])
    for place, value in changes.items():
        side, name = place.split("_")
        built["state"][side][name] = value
    return built


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        (
            {"before_devices": [factories.device_state(2)]},
            "$.state.before.devices[0].index",
            "device 2 is not among the document's devices",
        ),
        (
            {"after_devices": [factories.device_state(1)] * 2},
            "$.state.after.devices[1].index",
            "device 1 is there twice",
        ),
        (
            {"before_devices": [factories.device_state(1)]},
            "$.state.after.devices[0].index",
            "device 0 is not in the snapshot before the run",
        ),
        ({"after_at": "yesterday"}, "$.state.after.at", "'yesterday' is not a date and time"),
    ],
)
def test_state_that_contradicts_the_run(changes, place, reason):
    built = of_the_state(**changes)
    assert f"{place}: {reason}" in refused(built)
    assert document.parse(json.dumps(of_the_state()))


def test_state_after_a_run_has_what_changed_and_is_read_complete():
    one, other = factories.device_state(0), factories.device_state(1)
    changed = [{"index": 0}, {"index": 1, "clock_mhz": 1310, "memory_errors": None}]
    built = of_the_state(before_devices=[one, other], after_devices=changed)
    built["state"]["after"]["host"] = {"load_1min": 7.5}
    after = document.parse(json.dumps(built))["state"]["after"]
    assert after["devices"] == [one, other | {"clock_mhz": 1310, "memory_errors": None}]
    assert after["host"] == factories.snapshot(load_1min=7.5)["host"]


def test_errors_of_links_of_an_earlier_version_are_replays():
    old = factories.device_state(0)
    del old["link_errors"]
    links = factories.links(errors={"4": 2})
    changed = [{"index": 0, "links": factories.links(errors={"4": 9})}]
    built = of_the_state(before_devices=[old | {"links": links}], after_devices=changed)
    read = document.parse(json.dumps(built))["state"]
    (before,), (after,) = read["before"]["devices"], read["after"]["devices"]
    assert (before["links"], after["links"]) == (factories.links(), factories.links())
    assert before["link_errors"] == {"nvlink-replay": {"4": 2}}
    assert after["link_errors"] == {"nvlink-replay": {"4": 9}}
    unknown = [{"index": 0, "links": factories.links(errors=None)}]
    built = of_the_state(before_devices=[old | {"links": links}], after_devices=unknown)
    (after,) = document.parse(json.dumps(built))["state"]["after"]["devices"]
    assert after["link_errors"] is None


@pytest.mark.parametrize("path", sorted(STATES.glob("*.json")), ids=lambda one: one.stem)
def test_recorded_states_are_the_same_with_what_changed_alone(path):
    read = document.load(path)
    both = json.loads(path.read_text())["state"]
    for device_state in (*both["before"]["devices"], *both["after"]["devices"]):
        # Their version had replays as the only errors of links.
        device_state["link_errors"] = {"nvlink-replay": device_state["links"].pop("errors")}
    assert read["state"] == both
    short = read | {"state": both | {"after": state.changes(both["before"], both["after"])}}
    assert len(json.dumps(short)) < len(json.dumps(read))
    assert document.parse(json.dumps(short)) == read


@pytest.mark.parametrize(
    ("side", "item", "value", "said"),
    [
        ("before", "ecc", None, '$.state.before.devices[1]: "ecc" is a required property'),
        ("after", "index", None, '$.state.after.devices[1]: "index" is a required property'),
        ("after", "ecc", "on", '$.state.after.devices[1].ecc: "on" is not of type null or boolean'),
    ],
)
def test_state_of_another_form_is_refused_by_its_place(side, item, value, said):
    built = of_the_state()
    odd = built["state"][side]["devices"][1] = factories.device_state(1) | {item: value}
    if value is None:
        del odd[item]
    assert said in refused(built)


def test_counters_that_go_down_are_no_contradiction():
    before, after = factories.device_state(energy_j=9), factories.device_state(energy_j=1)
    before["pcie"]["replays"] = 5
    assert document.parse(json.dumps(of_the_state(before_devices=[before], after_devices=[after])))
