"""Every number of reference_values is followed to what it rests on, and computed again."""

from __future__ import annotations

import functools
import math
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

import site_checks
from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.models import validated
from fabricheck.judge import coverage
from fabricheck.judge.calibration import changes, record, rule
from fabricheck.judge.calibration.gathering import gather
from fabricheck.judge.calibration.rule import FLOOR_AT_ONCE, FLOORS
from fabricheck.node.loading import available
from fabricheck.references.calibrated import read as read_record
from fabricheck.references.entries import Origin, follow, load, record_names, requires
from fabricheck.references.listing import (
    ANOTHER_VERSION,
    DEMANDED,
    MAXIMUM,
    ONE_SESSION,
    marks_of,
    version_at_hand,
)
from fabricheck.references.published import ACCEPTANCE, FILE, MACHINES, THRESHOLD, Record
from fabricheck.references.published import OWN_FOLDER as FOLDER
from fabricheck.references.stated import REDUCED, References
from fabricheck.site import clusters, partitions, sites, this_machine
from session_builder import several

#: A machine of each node model, with the programs of Spack, whose versions a lock states.
SINGLE_MACHINES = [
    {
        this_machine.NODE: name,
        "FABRICHECK_ROCM_PROGRAMS": str(clusters.view("local-rocm") / "bin"),
        "FABRICHECK_CUDA_PROGRAMS": str(clusters.view("local-cuda") / "bin"),
    }
    for name in available()
]


@functools.cache
def targets() -> tuple[partitions.Target, ...]:
    """Return every partition of the sites, that of a single machine once for each node model."""
    found = []
    for file in sites.files(sites.SHIPPED):
        for variables in SINGLE_MACHINES if file.stem == "local" else [{}]:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                site = sites.read(file)
            for system in site["systems"]:
                for one in system["partitions"]:
                    has = [each for each in site["environments"] if each["name"] in one["environs"]]
                    found.append(partitions.Target(system, one, has))
    return tuple(found)


@functools.cache
def own_systems() -> dict[str, str | None]:
    """Whose own measurements the data set has, by set; other machines' values say whose."""
    found: dict[str, str | None] = {}
    for target in targets():
        if name := target.partition["extras"].get("references"):
            # Of the sites that use a set, one at most is the measured machine.
            found[name] = found.get(name) or MACHINES.get(target.name)
    return found


@functools.cache
def versions_at_hand() -> dict[str, dict[str, str]]:
    """Return by set the versions of ROCm or CUDA of the locks that are committed."""
    return {
        target.partition["extras"]["references"]: {
            one["extras"]["runtime"]: version
            for one in target.environments
            if (version := version_at_hand(one, (ROOT / "spack-env",)))
        }
        for target in targets()
        if "references" in target.partition["extras"]
    }


#: Checks by tool, size and buffers of which a site accepts its own nodes: its own tolerance holds,
#: but none below this part.
OF_THE_SITES_OWN_TOOL = ("osu_nodes",)
LEAST_OF_A_SITE = 0.05

#: Checks by the very tool and size of which a vendor demands a least value.
OF_THE_TOOL_OF_A_DEMAND = ("nic_loopback",)

#: Where a tolerance is wider than by the rule of docs/limits.md; the head of a file says why.
WIDER = {("memcpy.yaml", "jureca-a100"): 0.2, ("memcpy.yaml", "leonardo"): 0.2}


@functools.cache
def stated() -> References:
    return References(FOLDER)


@functools.cache
def published_tolerances() -> dict[str, tuple[float | None, float | None]]:
    """Return by record the tolerance that a site publishes with its acceptance limit."""
    raw = yaml_files.read(FOLDER / FILE)["records"]
    return {one["id"]: tuple(one["tolerance"]) for one in raw if "tolerance" in one}


@functools.cache
def independent(partition: str) -> dict[str, frozenset[str]]:
    with site_checks.set_up(partition, coverage.checks_folders(), FOLDER) as checks:
        return {
            type(check).__name__: frozenset(
                one.name for one in check.expected_metrics() if one.independent
            )
            for check in checks
        }


def limited() -> Iterator[tuple[str, str, str, list]]:
    """Yield check, partition or set, metric and entry of every reference that can be missed."""
    return (one for one in stated().all_entries() if requires(one[3]))


def nodes_of_sets() -> dict[str, set[str]]:
    """Return the node models of the partitions that use each key of the reference files."""
    found: dict[str, set[str]] = {}
    for target in targets():
        extras = target.partition["extras"]
        if "node" in extras:
            found.setdefault(extras.get("references", target.name), set()).add(extras["node"])
    return found


def test_every_number_is_what_its_source_gives_and_every_entry_is_judged_as_meant():
    assert len(list(limited())) > 500
    assert list(stated().faults()) == []


CHANGES = {
    "a value": ("p2p.yaml", "limit: [148, -0.05", "limit: [158, -0.05", "158"),
    "a record": ("p2p.yaml", "[lumirfm-commscope-quad]", "[lumirfm-commscope-dual]",
                 "gives 76 GB/s"),
    "no record": ("p2p.yaml", "[lumirfm-commscope-quad]", "[lumirfm-quad]", "no record lumirfm"),
    "a limit": ("p2p.yaml", "&lumirfm_commscope_dual {kind: derived",
                "&lumirfm_commscope_dual {kind: published",
                "acceptance limit of lumi-g"),
    "secondary": ("p2p.yaml", "[lumirfm-commscope-quad]", "[lumi-train-p2p-150]", "is secondary"),
    "unit": ("stream.yaml", "[paper-stream-local]", "[paper-numa-nonlocal]", "is in ratio"),
    "unit of a metric": ("stream.yaml", "copy_{worst,median}: {limit: [1400, -0.05, null, GB/s]",
                         "copy_{worst,median}: {limit: [1400, -0.05, null, us]",
                         "[1400, -0.05, null, us]"),
    "machine": ("pingpong.yaml", "system: leonardo-booster", "system: lumi-g", "not of lumi-g"),
    "class": ("p2p.yaml", "class: links4, map: mi250,", "class: switch18, map: mi250,", "switch18"),
    "map": ("p2p.yaml", "class: links2, map: mi250,", "class: links2, map: mi250x,", "gives 39."),
    "efficiency": ("p2p.yaml", "efficiency: 0.8,", "efficiency: 0.9,", "gives 90 GB/s"),
    "no reason": ("p2p.yaml", ', why: "engines both ways reached', ', system: "x', "its reason"),
    "assumed peak": ("p2p.yaml", "peak: pair, map: h200, class: switch18, times: 1",
                     "peak: host_link, map: a100-jureca, times: 1", "is assumed"),
    "no origin": ("stream.yaml", "{limit: [1400, -0.15, null, GB/s], source: *paper_stream_local}",
                  "[1400, -0.15, null, GB/s]", "has no source"),
    "no limit": ("stream.yaml", "[1400, -0.15, null, GB/s], source: *paper_stream_local}",
                 "[1400, -0.15, null, GB/s], source: {kind: report only, why: x}}",
                 "says that nothing is required"),
    "wide": ("stream.yaml", "[1400, -0.15, null, GB/s]", "[1400, -0.6, null, GB/s]",
             "a link at half its width would pass"),
    "a threshold": ("network.yaml", "null, GB/s], source: {kind: derived, records: [hpe-loopback",
                    "null, GB/s], source: {kind: published, records: [hpe-loopback",
                    "acceptance limit of slingshot-11"),
    "a factor": ("network.yaml", "factor: 4,", "factor: 3,", "133.7"),
    "kind": ("p2p.yaml", "&peak_of_h200_switch18 {kind: derived",
             "&peak_of_h200_switch18 {kind: published",
             "published value requires records"),
    "word": ("managed.yaml", "statistic: value", "statistics: value", "statistics"),
}  # fmt: skip


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("references")
    for path in FOLDER.glob("*.yaml"):
        if path.name != "published_values.yaml":
            shutil.copy(path, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_by_hand_is_found(copied, name):
    file, old, new, expected = CHANGES[name]
    text = (copied / file).read_text()
    assert old in text
    (copied / file).write_text(text.replace(old, new, 1))
    try:
        said = [one for one in References(copied).faults() if one.startswith(f"{file}")]
    finally:
        (copied / file).write_text(text)
    assert any(expected in one for one in said), said


def test_link_classes_are_of_the_map_of_the_machine_that_was_measured():
    for check, key, metric, _ in limited():
        origin = stated().origin(check, key, metric)
        if origin.link_class is None:
            continue
        stem = REDUCED.sub("", metric)
        assert stem.endswith(f"_{origin.link_class}"), f"{check} {metric} of {key}"
        if any("{" in name for name in origin.records):
            assert origin.system in load(origin.map).systems, f"{check} {metric} of {key}"


def test_classes_in_the_names_of_metrics_exist_on_the_nodes_of_the_set():
    classes = {key: {one.name for name in names for one in load(name).link_classes}
               for key, names in nodes_of_sets().items()}  # fmt: skip
    every = set().union(*classes.values())
    for check, key, metric, _ in stated().all_entries():
        named = max((one for one in every if f"_{one}_" in f"{metric}_"), key=len, default=None)
        here = classes.get(key, every)
        assert named is None or named in here, f"{check} {metric} of {key}"


def test_every_set_is_one_that_a_partition_names():
    keys = {key for _, key, _, _ in stated().all_entries()}
    assert keys - {"local:host", "local:gpu", "any"} == nodes_of_sets().keys()
    assert own_systems().keys() <= keys


def test_a_link_class_of_one_name_has_other_limits_on_another_device():
    """The devices of a single machine choose the set; of MI210 there is no value."""
    found = nodes_of_sets()
    assert found["amd-mi250"] == {"mi250", "mi250-two-sockets", "mi250x"}
    # AMD demands the same of a link of MI325X.
    assert (found["amd-mi300a"], found["amd-mi300x"]) == ({"mi300a"}, {"mi300x", "mi325x"})
    assert (found["amd-mi355x"], found["nvidia-b200"]) == ({"mi355x"}, {"b200"})
    assert found["amd"] == {"mi210"}
    assert found["nvidia"] == {"h200", "a100-booster", "a100-jureca"}
    single = {key: stated().entries("p2p_engine", key).get("engine_links1_worst")
              for key in found if key.startswith("amd")}  # fmt: skip
    assert single["amd-mi250"][0] < 50 * 0.8 < single["amd-mi300x"][0] < single["amd-mi355x"][0]
    # A B200 whose links had half of their bandwidth would pass what an H200 reaches.
    engine = {key: stated().entries("p2p_engine", key)["engine_switch18_worst"]
              for key in ("nvidia", "nvidia-b200")}  # fmt: skip
    assert engine["nvidia"][0] < 900 / 2 < engine["nvidia-b200"][0] * 0.85
    assert (single["amd"][1], single["amd-mi300a"]) == (None, None)
    # By default a copy of MI300A has as many engines as links; of the one engine nothing is known.
    dual = {check: stated().entries(check, "amd-mi300a")["engine_links2_worst"]
            for check in ("p2p_engine", "p2p_defaults")}  # fmt: skip
    assert not requires(dual["p2p_engine"]) and requires(dual["p2p_defaults"])


def test_what_was_published_of_another_machine_says_so():
    """The values of EPICURE are LUMI's own; on Frontier they are of lumi-g, and that is said."""
    of = {(key, stated().origin(check, key, metric).system)
          for check, key, metric, _ in limited() if check == "pingpong_right"}  # fmt: skip
    assert {("lumi", "lumi-g"), ("frontier", "lumi-g"), ("leonardo", "leonardo-booster")} <= of
    origins = [stated().origin(*one[:3]) for one in limited() if one[1] == "frontier"]
    names = {name for one in origins for name in record_names(one)}
    assert names
    assert own_systems()["frontier"] not in {stated().data.record(name).system for name in names}


def test_every_partition_requires_that_its_node_is_as_its_model_states():
    """What a model assumes is no difference, so no partition needs to be exempt."""
    for key in nodes_of_sets():
        if own_systems().get(key) is not None:
            (entry,) = stated().entries("node_topology", key).values()
            assert requires(entry), key


@pytest.mark.parametrize("check", ["affinity", "affinity_site", "node_topology"])
def test_a_count_of_faults_has_its_limit_on_any_site(check):
    """It rests on no machine; a site that binds ranks may take the values of any."""
    (entry,) = stated().entries(check, "own:gpu", "amd-mi300a").values()
    assert entry == [0, 0, 0, "count"]


def test_a_peak_is_followed_to_the_node_model():
    origin = Origin.model_validate(
        {"kind": "derived", "peak": "memory", "map": "h200", "efficiency": 0.5, "why": "a half"}
    )
    assert follow(origin, stated().data) == (2400.0, "GB/s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"kind": "published"}, "a published value requires records"),
        ({"kind": "published", "records": ["a"]}, "a statistic and their system"),
        ({"kind": "derived"}, "or the reason"),
        ({"kind": "derived", "peak": "pair", "map": "h200"}, "requires either an efficiency"),
        ({"kind": "derived", "peak": "memory", "efficiency": 0.5, "why": "x"}, "node model"),
        ({"kind": "calibration"}, "requires its record"),
        ({"kind": "site"}, "a limit of the site requires why"),
        ({"kind": "site", "why": "x", "peak": "pair"}, "neither records nor a peak"),
        ({"kind": "guessed"}, "kind: "),
    ],
)
def test_an_origin_that_lacks_something_is_a_sentence(text, expected):
    with pytest.raises(InvalidInputError, match=f"p2p.yaml: .*{expected}"):
        validated(Origin, text, "p2p.yaml")


def records_of(origin: Origin) -> list[Record]:
    return [stated().data.record(name) for name in record_names(origin)]


def words(origin: Origin, key: str) -> set[str]:
    """Return the words with which a limit of a set is marked, by the lock that is committed."""
    versions = [one for name in record_names(origin)
                for one in stated().data.versions(name).items()]  # fmt: skip
    return {one.word for one in marks_of(records_of(origin), versions, versions_at_hand()[key])}


def by_rule(origin: Origin, check: str, key: str, unit: str) -> float:
    """Return the tolerance that docs/limits.md has for a limit of a site."""
    records, marked = records_of(origin), words(origin, key)
    roles = {one.role for one in records}
    if roles == {THRESHOLD}:
        return 0 if check in OF_THE_TOOL_OF_A_DEMAND else 0.1
    if (
        check in OF_THE_SITES_OWN_TOOL
        and roles == {ACCEPTANCE}
        and origin.system == own_systems()[key]
    ):
        lower, upper = published_tolerances()[records[0].id]
        return max(upper if unit == "us" else -lower, LEAST_OF_A_SITE)
    if ONE_SESSION in marked and any("pageable" in one.experiment for one in records):
        return 0.4
    if any(one.kind == "theoretical" for one in records):
        return 0.25
    of_mpi = any("mpi" in one.conditions for one in records)
    if of_mpi and origin.system != own_systems()[key] and check.startswith(("mpi_", "osu_")):
        return 0.2
    if unit == "us":
        return 0.5 if ANOTHER_VERSION in marked else 0.2
    approx = any(one.qualifier == "approx" for one in records)
    return 0.15 if approx or {ANOTHER_VERSION, MAXIMUM} & marked else 0.1


def outside_of_the_rule(found: References) -> dict[tuple[str, str, str], str]:
    wrong = {}
    for check, key, metric, (_, lower, upper, unit) in found.all_entries():
        if key not in own_systems() or (lower, upper) == (None, None):
            continue
        origin = found.origin(check, key, metric)
        if origin.by_definition or origin.kind == "calibration":
            continue
        part = upper if unit == "us" else -lower
        rule_of = WIDER.get((found.file_of[check], key), by_rule(origin, check, key, unit))
        if part != rule_of or (lower if unit == "us" else upper) is not None:
            wrong[check, key, metric] = f"{lower} .. {upper} instead of {rule_of}"
    return wrong


@pytest.mark.slow
def test_every_limit_of_a_site_has_the_tolerance_of_the_rule(copied):
    assert {
        "lumi",
        "dardel",
        "jureca-mi250",
        "nvidia",
        "amd-mi250",
        "amd-mi300x",
    } <= own_systems().keys()
    assert outside_of_the_rule(stated()) == {}
    found = References(copied)
    own = found.tables["managed_zero_copy"]
    own["lumi"] = own["lumi"] | {"read_worst": [25.5, -0.1, None, "GB/s"]}
    own["dardel"] = own["dardel"] | {"read_worst": [25.5, -0.2, None, "GB/s"]}
    assert outside_of_the_rule(found).keys() == {
        ("managed_zero_copy", key, "read_worst") for key in ("lumi", "dardel")
    }


@pytest.mark.parametrize(
    ("check", "key", "metric", "expected"),
    [
        ("memcpy_near", "lumi", "h2d_pinned_near_worst",
         {ANOTHER_VERSION, MAXIMUM, ONE_SESSION}),
        ("memcpy_near", "dardel", "h2d_pinned_near_worst", {MAXIMUM, ONE_SESSION}),
        ("p2p_engine", "lumi", "latency_links4_worst", {ANOTHER_VERSION, ONE_SESSION}),
        ("p2p_engine", "dardel", "latency_links4_worst", {ONE_SESSION}),
        ("p2p_engine_off", "jureca-mi250", "engine_links4_worst",
         {MAXIMUM, ONE_SESSION}),
        ("p2p_engine", "amd-mi300x", "engine_links1_worst", {MAXIMUM, ONE_SESSION}),
        ("p2p_engine", "amd-mi250", "engine_links4_worst",
         {ANOTHER_VERSION, ONE_SESSION}),
        ("memcpy_near", "amd-mi300a", "h2d_pinned_near_worst", {ONE_SESSION}),
        ("stream_local", "jureca-a100", "copy_worst", {ANOTHER_VERSION, ONE_SESSION}),
        ("pingpong_right", "leonardo", "there_and_back_pageable_worst", {ONE_SESSION}),
        ("rccl_scan", "dardel", "allreduce_8_devices_busbw", {ANOTHER_VERSION}),
        ("rccl_scan", "lumi", "allreduce_8_devices_busbw", set()),  # by it LUMI accepts its nodes
        ("osu_nodes", "lumi", "bw", set()),
        ("mpi_nodes", "lumi", "bandwidth_other_group_worst", {ONE_SESSION}),
        ("nic_loopback", "lumi", "loopback_worst", {DEMANDED}),
        ("stream_local", "amd-mi300x", "triad_worst", {DEMANDED}),
        ("rccl_scan", "amd-mi355x", "allreduce_8_devices_busbw", {DEMANDED}),
        ("p2p_engine", "nvidia-b200", "engine_switch18_worst", {ONE_SESSION}),
        ("rccl_scan", "nvidia-b200", "allreduce_8_devices_busbw", {DEMANDED}),
        ("rccl_scan", "nvidia-b200", "allreduce_4_devices_busbw", {ONE_SESSION}),
        ("memcpy_near", "lumi", "both_pinned_near_worst", set()),  # a peak, and no measurement
    ],
)  # fmt: skip
def test_what_weakens_a_limit_is_marked(check, key, metric, expected):
    assert words(stated().origin(check, key, metric), key) == expected


def test_values_of_two_documents_are_of_no_single_session():
    records = [one for one in stated().data.records.values()
               if one.kind == "measured" and one.role is None and not one.is_maximum]  # fmt: skip
    one, other = records[0], next(each for each in records if each.title != records[0].title)
    assert [mark.word for mark in marks_of([one], [], {})] == [ONE_SESSION]
    assert list(marks_of([one, other], [], {})) == []


def test_the_wider_parts_are_those_of_the_reasons():
    """Of pageable memory what it varied by; else the widest tolerance that a calibration gives."""
    varied = [one.between_campaigns or 0
              for path in FOLDER.glob("calibrations/h200-*.yaml")
              for metrics in read_record(path).checks.values()
              for name, one in metrics.items() if "pageable" in name]  # fmt: skip
    assert math.ceil(max(varied) * 20) / 20 == 0.4
    assert (rule.CEILINGS["GB/s"], rule.CEILINGS["us"]) == (0.15, 0.5)


def beyond_its_limit(found: References) -> dict[tuple[str, str, str], str]:
    """Name the limits of sites that a member of the published set that they are of would miss."""
    missed = {}
    for check, key, metric, (value, lower, upper, _) in found.all_entries():
        if key not in own_systems() or (lower, upper) == (None, None):
            continue
        origin = found.origin(check, key, metric)
        if origin.by_definition or not origin.records or origin.kind == "calibration":
            continue
        names = record_names(origin)
        one = value / follow(origin, found.data)[0]
        for name in names:
            whole, _ = follow(origin.model_copy(update={"records": (name,)}), found.data)
            part = whole * one / value - 1
            if (lower is not None and part < lower) or (upper is not None and part > upper):
                missed[check, key, metric] = f"{name}: {part:+.1%}"
    return missed


def test_no_published_set_misses_the_limits_that_are_made_of_it(copied):
    assert beyond_its_limit(stated()) == {}
    found = References(copied)
    own = found.tables["pingpong_right"]
    own["lumi"] = own["lumi"] | {"there_and_back_pageable_median": [18.21, -0.03, None, "GB/s"]}
    metric = ("pingpong_right", "lumi", "there_and_back_pageable_median")
    assert beyond_its_limit(found).keys() == {metric}


WHY_SO_WIDE = (
    "its head says why limits are as wide as they are, in a comment that starts with `# Why the "
    "limits are as wide as they are:`, a line `# - published: -10 %, as ...` for each origin, and "
    "a blank line after it (docs/extending.md has one)."
)


def test_bounds_have_their_reason():
    files = {stated().file_of[check] for check, *_, entry in limited() if entry[3] != "count"}
    assert {"p2p.yaml", "mpi.yaml"} <= files
    for name in files:
        _, _, reasons = (FOLDER / name).read_text().partition("\n# Why the limits are as wide")
        assert len(reasons.partition("\n\n")[0]) > 80, f"{name}: {WHY_SO_WIDE}"


def test_every_partition_and_set_says_where_its_references_are_from():
    found = stated()
    told = {(found.file_of[check], key) for check, key, _ in found.sources}
    stand = {(found.file_of[check], key) for check in found.file_of for key in found.tables[check]}
    assert stand - told == set()


def follow_sessions(found: References, check: str, partition: str, metric: str) -> None:
    """Compute an entry from the sessions of its calibration record, statistics included."""
    entry, sessions = found.calibrated(check, partition)[metric]
    assert sessions.rule == rule.TEXT
    taken = sessions.partition != partition
    assert not taken or metric in independent(sessions.partition)[check]
    one = sessions.checks[check][metric]
    campaigns = {session.number: session.campaign for session in sessions.sessions}
    values = list(one.values.values())
    middle = statistics.median(values)
    assert (one.n, one.median, one.min, one.max) == (len(values), middle, min(values), max(values))
    assert one.mad == statistics.median(abs(value - middle) for value in values)
    floor = 0 if one.tolerance is None else one.tolerance.floor
    assert floor in (0, FLOORS[one.unit], FLOOR_AT_ONCE)
    verdict = rule.judge(
        values, [campaigns[number] for number in one.values], one.unit, floor=floor
    )
    assert tuple(entry) == verdict.entry


def test_every_calibrated_reference_is_what_its_sessions_say():
    cases = [
        (check, key, metric)
        for check, key, metric, entry in limited()
        if entry[3] != "count" and stated().origin(check, key, metric).kind == "calibration"
    ]
    assert len(cases) > 50
    for case in cases:
        follow_sessions(stated(), *case)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A copy of the references with a calibration of local:host."""
    base = tmp_path_factory.mktemp("calibrated")
    (base / "references").mkdir()
    shutil.copy(FOLDER / "stream.yaml", base / "references")
    runs = gather(several(base, [100.0, 100.5, 99.5, 100.0, 100.2, 99.9]), "local:host").runs
    proposal = changes.propose(record.build(runs, "local:host"), base / "references")
    changes.write(proposal, accept_looser=False)
    return base / "references"


@pytest.fixture
def calibrated(made, tmp_path):
    """A copy of it, of what is read."""
    (tmp_path / "calibrations").mkdir()
    for path in ("stream.yaml", "calibrations/local-host.yaml"):
        shutil.copy(made / path, tmp_path / path)
    return tmp_path


CALIBRATED = ("stream_local", "local:host", "copy_worst")


def test_a_calibrated_reference_is_what_its_sessions_say(calibrated):
    found = References(calibrated)
    assert found.origin(*CALIBRATED).kind == "calibration"
    follow_sessions(found, *CALIBRATED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("entry: [100.0, -0.02,", "entry: [99.0, -0.02,"),
        ("entry: [100.0, -0.02,", "entry: [100.0, -0.05,"),
        ("2: 100.5,", "2: 180.5,"),
        ("median: 100.0", "median: 101.0"),
        ("floor (2%", "floor (1%"),
    ],
)
def test_a_number_that_was_changed_by_hand_is_found(calibrated, old, new):
    file = calibrated / "calibrations" / "local-host.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(AssertionError):
        follow_sessions(References(calibrated), *CALIBRATED)


def in_both(found: References) -> Iterator[str]:
    """Name what a file states under a partition's name, and a calibration gives it as well.

    A count is never calibrated.
    """
    for check in found.file_of:
        for key in found.tables[check]:
            stated = found.stated(check, key)
            for metric in stated.keys() & found.calibrated(check, key).keys():
                yield f"{check} {metric} of {key}"


def test_no_metric_has_an_entry_in_both_places(calibrated):
    """A calibrated entry stands in the record alone."""
    assert list(in_both(stated())) == []
    assert list(in_both(References(calibrated))) == ["stream_local copy_worst of local:host"]


def test_every_check_of_a_calibration_has_a_file():
    for path in sorted(FOLDER.glob("calibrations/*.yaml")):
        assert read_record(path).checks.keys() <= stated().file_of.keys()
