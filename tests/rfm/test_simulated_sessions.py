"""Sessions on the simulated MI250X node: healthy it passes, an overlay makes it fail by name."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import factories
from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.evidence import session_verdict
from fabricheck.node import load, node_directory
from fabricheck.papers.claims import CLAIMS, evaluate
from fabricheck.report.scheduler import drain_lines
from fabricheck.results import reading
from fabricheck.results.document import load as load_document
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import of_session
from fabricheck.rfm.acceptance import node_bound

PARTITION = "local:sim-mi250x"
NODE = load("mi250x")
TOPICS = ("p2p", "pingpong", "stream")

#: Where checks are.
TOPIC = {check: "p2p/p2p" for check in ("p2p_kernel", "p2p_engine", "p2p_scan")} | {
    "stream_local": "stream/stream"
}


#: What a healthy node is measured by; tests read it.
HEALTHY = (
    "p2p_engine$", "p2p_engine_off", "p2p_defaults", "p2p_kernel", "p2p_scan", "p2p_block_128",
    "p2p_local", "p2p_all_to_all", "pingpong_single", "stream_concurrent$",
)  # fmt: skip


def session(suite, *checks, overlay=None, **variables):
    suite.topics = TOPICS
    suite.variables.update(variables)
    chosen = [part for check in checks for part in ("-n", check)]
    changed = ["-S", f"overlay={node_directory() / 'overlays' / overlay}.yaml"] if overlay else []
    junit = f"--report-junit={suite.folder / 'junit.xml'}"
    return suite(f"--system={PARTITION}", "-r", *chosen, *changed, junit)


@pytest.fixture(scope="module")
def healthy(shared_suite):
    """A session on a healthy node: its values and documents, by check."""
    del shared_suite.variables["FABRICHECK_MPI"]
    outcome = session(shared_suite, *HEALTHY)
    assert outcome.status == 0, outcome.text
    assert f"Ran {len(HEALTHY)}/{len(HEALTHY)} test case(s)" in outcome
    return shared_suite, values_of(shared_suite), documents_of(shared_suite)


def values_of(suite):
    """Return the values of each check."""
    return {
        case["name"]: {key.rsplit(":", 1)[-1]: one[0] for key, one in case["perfvalues"].items()}
        for case in suite.report()["runs"][0]["testcases"]
    }


def documents_of(suite):
    return {file.parent.name: load_document(file)
            for file in (suite.results / "output").rglob("result.json")}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "metric", "least", "most"),
    [
        ("p2p_engine", "engine_links4_worst", 49, 51),
        ("p2p_engine", "engine_links1_2hops_worst", 37, 38),
        ("p2p_engine", "latency_links2_3hops_worst", 17.5, 18.3),
        ("p2p_kernel", "write_links2_worst", 74, 76),
        ("p2p_kernel", "copy_links4_worst", 172, 176),
        # Of the scan, at its largest size.
        ("p2p_scan", "engine_links2", 49, 51),
        ("p2p_scan", "copy_links1", 43, 44),
        ("stream_concurrent", "copy_two_one_package_sum", 50, 52),
        ("stream_concurrent", "copy_two_spread_sum", 101, 103),
        ("stream_concurrent", "copy_all_sum", 203, 206),
        # A block of any size is as fast in a simulation, and device 0 as any other.
        ("p2p_block_128", "read_links4", 145, 151),
        ("p2p_block_128", "write_links2", 74, 76),
        ("p2p_block_128", "copy_links1", 43, 44),
        # The memory reads and writes: half of 1400.
        ("p2p_local", "local_engine_worst", 690, 710),
        # Of 56 pairs four share the single link from 0 to 2: 37.6 GB/s alone, 9.4 each.
        ("p2p_all_to_all", "read_sum", 525, 528),
        ("p2p_all_to_all", "read_of_links", 99.9, 100.1),
        ("p2p_all_to_all", "write_sum", 525, 528),
        ("p2p_all_to_all", "write_of_links", 99.9, 100.1),
        # One rank there and back, as EPICURE counts.
        ("pingpong_single", "there_and_back", 25.3, 25.5),
    ],
)
def test_a_healthy_node_is_judged_by_its_link_classes(healthy, check, metric, least, most):
    _, values, _ = healthy
    assert least < values[check][metric] < most


@pytest.mark.slow
def test_documents_are_of_the_simulated_node(healthy):
    _, _, documents = healthy
    for document in documents.values():
        assert document["clock"] == "simulated"
        assert document["node"]["name"] == "mi250x"
        assert document["node"]["overlay"] is None


@pytest.mark.slow
def test_a_scan_is_of_one_pair_of_each_class_and_every_operation(healthy):
    _, _, documents = healthy
    points = {(tuple(one["device_set"]), one["operation"], one["bytes"])
              for one in documents["p2p_scan"]["series"]}  # fmt: skip
    assert points == {(pair, operation, 256 << step) for pair in ((0, 1), (0, 6), (0, 2))
                      for operation in ("engine", "read", "write", "copy")
                      for step in range(26)}  # fmt: skip


@pytest.mark.slow
def test_what_the_paper_measured_otherwise(healthy):
    _, _, documents = healthy
    blocks, local = documents["p2p_block_128"]["series"], documents["p2p_local"]["series"]
    assert {one["block_size"] for one in blocks} == {128}
    assert {tuple(one["device_set"]) for one in blocks if one["device"] == 0
            and one["operation"] == "read"} == {(1, 0), (6, 0), (2, 0)}  # fmt: skip
    assert [one["device_set"] for one in local] == [[device] for device in range(8)] * 2
    assert {(one["engine"], one["direction"]) for one in local} == {("kernel", "local")}


@pytest.mark.slow
def test_one_rank_sends_there_and_back(healthy):
    _, _, documents = healthy
    series = documents["pingpong_single"]["series"]
    assert [one["bytes"] for one in series] == [4 << step for step in range(29)]
    assert {(*one["ranks"], one["operation"], one["role"]) for one in series} == {
        (0, "there-and-back", "single")
    }
    assert all(one["verification"]["bytes_checked"] for one in series)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overlay", "check", "sentence"),
    [
        (
            "link-0-1-half-width",
            "p2p_kernel",
            r"Metric write_links4_worst: pairs 0-1, 1-0, devices 0 \S+ and 1 of node mi250x "
            r"\(simulated\) measured 7\d\.\d+ GB/s; at least 140\.6 GB/s is required",
        ),
        (
            "link-0-6-gone",
            "p2p_engine",
            r"Metric engine_links2_worst: pairs 0-6, 6-0, .* measured 37\.\d+ GB/s; at least 47",
        ),
        (
            "link-0-6-gone",
            "p2p_scan",
            r"Metric copy_links2: pair 0-6, .* measured \d\d\.\d+ GB/s; at least 82\.65 GB/s",
        ),
        (
            "device-3-memory-slow",
            "stream_local",
            r"Metric copy_worst: device 3 of node mi250x \(simulated\) measured 128\d\.\d+ "
            r"GB/s; at least 1330 GB/s is required",
        ),
    ],
)
def test_an_overlay_fails_and_is_named(suite, overlay, check, sentence):
    outcome = session(suite, check, overlay=overlay)
    assert outcome.status == 1
    assert re.search(sentence, " ".join(outcome.text.split())), outcome.text
    # What a CI system shows is JUnit: check, link class and pair are in it.
    junit = ElementTree.parse(suite.folder / "junit.xml").getroot()
    case = junit.find(f".//testcase[@name='{check} @{PARTITION}+sim']")
    assert case.get("classname").endswith(f"reframe_checks/{TOPIC[check]}.py")
    assert re.search(sentence, " ".join(case.findtext("failure").split()))
    # The overlay is in the result, so that nobody takes it for the healthy node's.
    (file,) = (suite.results / "stage").rglob(f"{check}/result.json")
    said = load_document(file)["node"]["overlay"]
    assert said["name"].replace(" ", "-").startswith(overlay.split("-")[0])


@pytest.fixture(params=[None, "rocm-6-3"])
def of_a_version(request, healthy, suite):
    """A session with the engines of a version of ROCm, and what its defaults are.

    That is the engines of a copy over a quad link, its GB/s, and what copies 16 B.
    """
    if request.param is None:
        return healthy[0], (1, 50, "copy-engine")
    outcome = session(suite, "p2p_engine", "p2p_defaults", overlay=request.param)
    assert outcome.status == 0, outcome.text
    assert "Ran 3/3 test case(s)" in outcome
    return suite, (3, 150, "kernel")


@pytest.mark.slow
@pytest.mark.full
def test_checks_and_claims_are_of_one_engine_whatever_the_version_of_rocm(of_a_version):
    suite, (engines, rate, small) = of_a_version
    series = {
        check: {
            (tuple(one["device_set"]), one["operation"]): one
            for one in document["series"]
            if one["role"] == "single"
        }
        for check, document in documents_of(suite).items()
    }
    quad = {name: series[name][(0, 1), "engine"] for name in ("p2p_engine", "p2p_defaults")}
    assert quad["p2p_engine"]["median"] == pytest.approx(50, rel=0.01)
    assert {one["engines"] for one in series["p2p_engine"].values()} == {1}
    assert quad["p2p_defaults"]["median"] == pytest.approx(rate, rel=0.01)
    assert quad["p2p_defaults"]["engines"] == engines
    assert series["p2p_defaults"][(0, 1), "latency"]["engine"] == small
    assert {one["engine"] for one in series["p2p_engine_off"].values()} == {"kernel"}
    folder = ResultsFolder(suite.results)
    (found,) = of_session(folder, folder.latest()).observed
    judged = {one.claim.id: one.outcome for one in evaluate(CLAIMS, found)}
    engine = ("two-levels", "parts-of-peak", "quad-as-dual", "widest-path", "off-faster")
    assert {judged[f"engine-{name}"] for name in engine} == {"reproduced"}


@pytest.mark.slow
def test_a_healthy_node_with_noise_passes(suite):
    outcome = session(suite, "p2p_engine$", "stream_local",
                      FABRICHECK_SIM_NOISE="0.01", FABRICHECK_SIM_SEED="7")  # fmt: skip
    assert outcome.status == 0, outcome.text
    for file in (suite.results / "output").rglob("result.json"):
        samples = [len(one["samples"]) for one in load_document(file)["series"]]
        assert min(samples) >= 7


@pytest.mark.slow
def test_what_a_session_measured_first_is_measured_again_at_its_end(suite):
    outcome = session(suite, "^p2p_again$", "^p2p_kernel$", "^stream_again$", "^stream_local$")
    assert outcome.status == 0, outcome.text
    ended = re.findall(r"OK \] \(\d/4\) (\w+)", outcome.text)
    assert {*ended[:2]} == {"p2p_kernel", "stream_local"}
    assert values_of(suite)["stream_again"]["copy_of_first"] == pytest.approx(100, abs=0.1)


@pytest.mark.slow
def test_what_was_not_measured_first_can_not_be_repeated(suite, wording):
    outcome = session(suite, "^stream_again$")
    assert outcome.status == 1
    wording(outcome.reasons)


@pytest.mark.slow
def test_an_overlay_is_for_simulated_nodes(suite, wording):
    suite.variables["FABRICHECK_HOST_PROGRAMS"] = str(suite.programs)
    overlay = f"overlay={node_directory() / 'overlays' / 'link-0-6-gone.yaml'}"
    outcome = suite("--system=local:host", "-r", "-n", "stream_local", "-S", overlay)
    assert outcome.status == 1
    wording(outcome.reasons)


@pytest.mark.slow
def test_an_overlay_that_is_not_there_is_named(suite):
    outcome = session(suite, "stream_local", overlay="no-such")
    assert outcome.status == 1
    assert "no-such.yaml" in outcome


def bound(**changes):
    return node_bound(NODE, factories.series([1.0] * 7, **changes))


def test_bounds_are_peaks_of_the_node_model():
    local = bound(device=3, device_set=[3])
    assert local.value == 1638.4
    assert "device memory" in local.how
    two = bound(role="sum", device=None, device_set=[0, 1])
    assert two.value == 2 * 1638.4
    assert bound(role="share", device=0, device_set=[0, 1]).value == 1638.4
    host = {"source": factories.place("host-pinned"), "destination": factories.place("host-pinned")}
    assert bound(device=0, device_set=[0], **host).value == 72.0
    assert bound(role="sum", device=None, device_set=[0, 1, 2], **host).value == 3 * 72.0


def bounds(*series):
    return [node_bound(NODE, one).value for one in series]


def test_copies_with_the_host_are_bound_by_link_and_memory(wording):
    assert bounds(factories.host_copy("h2d", 6, 2), factories.host_copy("d2h", 6, 0)) == [36, 36]
    share, other, total = factories.both_ways(6, domain=2)
    # The memory of the domain, and the quarter that caches may hold of arrays past them.
    assert bounds(share, other, total) == [36, 36, pytest.approx(51.2 / 0.75)]
    wording(node_bound(NODE, total).how)
    in_cache = total | {"regime": "cache"}
    unknown = total | {"source": factories.place("host-pinned", None)}
    assert bounds(in_cache, unknown) == [72, 72]


def test_managed_memory_is_bound_by_the_host_link():
    names = ("read", "write", "host-read", "host-write", "prefetch-h2d", "prefetch-d2h")
    assert bounds(*(factories.managed_copy(name, 3) for name in names)) == [36] * 6
    # What the processor finds in its own memory crosses no link.
    on_host = factories.managed_copy("host-read", source=factories.place("managed", None, 1))
    both = [pytest.approx(102.4 / 0.75)]
    assert bounds(on_host) == both
    nowhere = {"source": factories.place("managed", None), "regime": "cache"}
    assert node_bound(NODE, on_host | nowhere) is None


@pytest.mark.parametrize(
    ("pair", "counted", "role", "value"),
    [
        ((0, 1), "once", "single", 200.0),
        ((0, 6), "once", "single", 100.0),
        ((1, 7), "once", "single", 100.0),
        ((0, 2), "read+write", "single", 100.0),
        ((0, 2), "once", "sum", 100.0),
    ],
)
def test_a_pair_is_bound_by_its_widest_path(pair, counted, role, value):
    ends = {"source": factories.place("device", pair[0]),
            "destination": factories.place("peer", pair[1])}  # fmt: skip
    executing = None if role == "sum" else pair[0]
    series = factories.series([1.0] * 7, device=executing, device_set=list(pair), role=role, **ends)
    series["bytes_counted"] = counted
    assert node_bound(NODE, series).value == value


def test_a_latency_is_bound_by_zero():
    series = factories.series([1.0] * 7, device=0, device_set=[0]) | {"unit": "us"}
    assert node_bound(NODE, series).value == 0.0


@pytest.mark.slow
def test_engines_that_the_environment_switches_off_are_a_setting(suite, wording):
    file = suite.own_checks() / "p2p" / "p2p.py"
    text, count = re.subn(r"env_vars = ENGINES_ON\w*", "env_vars = {}", file.read_text())
    assert count
    file.write_text(text)
    outcome = session(suite, "p2p_engine$", HSA_ENABLE_SDMA="0")
    assert outcome.status == 1
    (reason,) = outcome.reasons
    setting, *_ = reason.splitlines()
    wording(setting)
    (found,) = judging.judge(reading.read([str(suite.results)]))
    assert found.status == "INCOMPLETE"
    assert "setting" in {reason.rule for reason in found.reasons}
    assert not drain_lines([session_verdict("a session", [found]).nodes[0]])
