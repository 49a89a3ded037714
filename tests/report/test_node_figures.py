"""The drawing of the node and the matrices of its pairs: a fault shows, and nothing is invented."""

from __future__ import annotations

import dataclasses
import json
import re
from html import unescape
from itertools import permutations
from pathlib import Path

import pytest

import check_rows
import factories
from fabricheck.node import load
from fabricheck.report.figure import WIDTH
from fabricheck.report.figures import collectives, matrices, node, peers, sections
from fabricheck.report.figures.bars import bars
from fabricheck.report.figures.charts import cell
from fabricheck.report.figures.drawing import Curve, Drawing, Style
from fabricheck.report.figures.heat_map import top
from fabricheck.results.entry import Entry
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.metric_records import CheckRecord, MetricRecord
from fabricheck.results.observed import Observed
from fabricheck.results.reading import of_session
from fabricheck.results.run_report import MetricResult
from fabricheck.results.session import Case, read_report
from session_builder import SessionBuilder

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"

#: Of each direct link class of MI250X what a kernel writes over it, in GB/s.
WRITES = {"links4": 150.4, "links2": 75.2, "links1": 37.6}

DRAWERS = (
    node.figures,
    matrices.hops,
    matrices.figures,
    matrices.messages,
    matrices.host_memory,
    peers.figures,
    peers.messages,
    collectives.figures,
)


@pytest.fixture(scope="module")
def mi250x():
    return load("mi250x")


@pytest.fixture(scope="module")
def h200():
    folder = ResultsFolder(RECORDED)
    (found,) = of_session(folder, folder.latest()).observed
    return found


@pytest.fixture(scope="module")
def h200_figures(h200):
    return {figure.id: figure for drawer in DRAWERS for figure in drawer(h200)}


def transfer(a, b, value, operation="write", size=1 << 30, **changes):
    engine = operation in ("engine", "latency")
    changes = {
        "experiment": "E7" if engine else "E8",
        "engine": "copy-engine" if engine else "kernel",
        "operation": operation,
        "device": a,
        "device_set": [a, b],
        "source": factories.place(device=a),
        "destination": factories.place("peer", b),
        "direction": "one-way",
        "bytes": size,
        "bytes_counted": "once",
        "host_clock": None,
    } | changes
    return factories.series([value], **changes)


def message(a, b, value, **changes):
    mpi = {"experiment": "E9", "operation": "bandwidth", "engine": "mpi", "ranks": [a, b]}
    return transfer(a, b, value, size=1 << 24, **mpi | changes)


def collective(name, value, count, **changes):
    ranks = {"ranks": list(range(count)), "device_set": list(range(count)), "device": None}
    both = {"experiment": "E10", "operation": name, "engine": "mpi", "direction": "collective"}
    latency = {"unit": "us", "better": "lower", "bytes": 1 << 20}
    return factories.series([value], **ranks | both | latency | changes)


def partition(model, *documents, references=None, behind=None):
    """Return a simulated partition whose check p2p_kernel has these references.

    :param behind: by metric among peers its value, where at least 97 % are required, and the index
        of the series that decides it.
    """
    case = Case(
        *("p2p_kernel", "local", "sim-mi250x", "sim", "pass"), None, frozenset(), (),
        metrics={
            name: MetricResult(worst(model, name, *documents), *one, "GB/s", "pass")
            for name, one in (references or {}).items()
        }
        | {
            name: MetricResult(percent, 100, -0.03, None, "%", "fail" if percent < 97 else "pass")
            for name, (percent, _) in (behind or {}).items()
        },
    )  # fmt: skip
    entries = tuple(Entry(case, None, document, None) for document in documents)
    for entry in entries:
        records = {
            name: MetricRecord(series=members(model, name, entry.document), reduce="worst")
            for name in references or {}
        } | {
            name: MetricRecord(
                series=members(model, name, entry.document), reduce="peers", decided=(index,)
            )
            for name, (_, index) in (behind or {}).items()
        }
        # What else is read beside a document.
        vars(entry)["_beside"] = CheckRecord(started="", metrics=records), None
    return Observed("local:sim-mi250x", check_rows.checks(*entries), model)


def members(model, metric, document):
    """Return the indices of a metric's series: the large transfers of its link class."""
    return tuple(
        index
        for index, one in enumerate(document["series"])
        if one["bytes"] == 1 << 30
        and model.link_class(*one["device_set"]).name == metric.split("_")[1]
    )


def worst(model, metric, document):
    """Return what is recorded of a metric: the least of its series."""
    return min(document["series"][index]["median"] for index in members(model, metric, document))


def program(name, *series, **changes):
    simulated = factories.simulated_document()
    return (
        simulated | {"program": simulated["program"] | {"name": name}, "series": series} | changes
    )


def kernels(model, **slow):
    """Return the document of kernels that write over every link, and the references of these."""
    series = []
    for a, b in permutations(range(8), 2):
        link = model.link_class(a, b)
        if link.direct:
            value = slow.get(f"from{min(a, b)}to{max(a, b)}", WRITES[link.name])
            series += [] if value is None else [transfer(a, b, value)]
    references = {f"write_{name}_worst": (value, -0.05, None) for name, value in WRITES.items()}
    return program("p2p", *series), references


def drawing_of(model, **slow):
    document, references = kernels(model, **slow)
    (figure,) = node.figures(partition(model, document, references=references))
    return figure


def texts(svg):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def outside(figure):
    """Return the links of which the data say that they are outside of their limits."""
    return {row["series"] for row in figure.rows if row["state"] == "outside"}


def test_links_that_are_as_expected_are_said_to_be(mi250x, wording):
    figure = drawing_of(mi250x)
    wording(figure.says)
    assert texts(figure.svg).count("100 %") == 12
    assert {row["state"] for row in figure.rows} == {"within"}
    assert len(figure.rows) == 24


def test_a_slow_link_shows_in_words_in_a_dash_and_in_the_data(mi250x, wording):
    figure = drawing_of(mi250x, from0to6=37.6)
    wording(figure.says)
    assert "50 %" in texts(figure.svg)
    style = node.STYLES["outside"]
    assert figure.svg.count(f'stroke="{style.colour}"') == 2  # the link and the legend
    assert style.dash and not node.STYLES["within"].dash
    assert outside(figure) == {"0-6"}


def test_a_check_of_one_pair_a_class_judges_without_a_worst(mi250x, wording):
    document = program("p2p", transfer(0, 1, 75.2))
    found = partition(mi250x, document, references={"write_links4": (148.0, -0.05, None)})
    (figure,) = node.figures(found)
    wording(figure.says)
    assert outside(figure) == {"0-1"}


def test_the_slower_direction_of_a_link_decides(mi250x, wording):
    document, references = kernels(mi250x)
    slow = [
        one | {"median": 40.0} if one["device_set"] == [6, 0] else one for one in document["series"]
    ]
    (figure,) = node.figures(partition(mi250x, document | {"series": slow}, references=references))
    wording(figure.says)
    assert outside(figure) == {"0-6"}


def test_small_transfers_do_not_decide(mi250x):
    document, references = kernels(mi250x)
    small = [transfer(0, 6, 1.0, size=1 << 12), *document["series"]]
    (figure,) = node.figures(partition(mi250x, document | {"series": small}, references=references))
    assert outside(figure) == set()


def test_a_link_without_a_value_is_no_good_link(mi250x, wording):
    figure = drawing_of(mi250x, from2to4=None)
    wording(figure.says)
    assert node.STYLES["missing"].colour in figure.svg


def test_without_references_it_is_the_percentage_of_the_peak(h200_figures, wording):
    figure = h200_figures["node"]
    wording(figure.says)
    assert {row["expected_is"] for row in figure.rows} == {"peak"}


def test_the_legend_says_what_the_numbers_at_links_are_percent_of(mi250x, h200_figures):
    slow = texts(drawing_of(mi250x, from0to6=37.6).svg)
    assert sum(text.startswith("% of the reference bandwidth") for text in slow) == 2
    of_peak = texts(h200_figures["node"].svg)
    assert sum(text.startswith("% of the peak bandwidth") for text in of_peak) == 1


def test_a_reference_without_a_limit_bounds_nothing(results_folder):
    values = {
        "local:host:judged": [9.0, 10.0, -0.05, None, "GB/s", "fail"],
        "local:host:free": [9.0, 0, None, None, "GB/s", "pass"],
    }
    report = SessionBuilder(results_folder).add(factories.case(perfvalues=values)).write_report()
    (case,) = read_report(report, results_folder).cases
    assert (case.metrics["judged"].least, case.metrics["judged"].most) == (9.5, None)
    assert (case.metrics["free"].least, case.metrics["free"].most) == (None, None)


@pytest.mark.parametrize(
    "name", ["mi250x", "mi250", "mi250-two-sockets", "mi210", "h200", "a100-booster", "a100-jureca"]
)
def test_every_node_has_its_devices_once_and_packages_beside_each_other(name):
    model = load(name)
    rows = node.rows_of(model)
    assert sorted(device for row in rows for device in row) == list(range(len(model.devices)))
    for package in model.packages:
        (row,) = [row for row in rows if set(package) <= set(row)]
        places = sorted(row.index(device) for device in package)
        assert places[-1] - places[0] == len(package) - 1


def test_a_matrix_has_the_medians_of_the_document(h200_figures):
    (path,) = RECORDED.glob("output/**/p2p_kernel/result.json")
    series = json.loads(path.read_text())["series"]
    medians = {
        tuple(one["device_set"]): (one["median"], *one["ci95"], len(one["samples"]))
        for one in series
        if one["operation"] == "write"
    }
    rows = h200_figures["peer-write"].rows
    assert {
        (row["row"], row["column"]): (row["value"], row["low"], row["high"], row["n"])
        for row in rows
    } == medians
    written = h200_figures["peer-write"].csv.splitlines()
    assert len(written) == 3 and str(rows[0]["value"]) in written[1]


def test_a_value_outside_of_its_limits_is_framed_and_told(mi250x, wording):
    document, references = kernels(mi250x, from0to6=37.6)
    found = partition(mi250x, document, references=references)
    (figure,) = [one for one in matrices.figures(found) if one.id == "peer-write"]
    wording(figure.says)
    assert texts(figure.svg).count("none") == 32
    healthy, references = kernels(mi250x)
    (other,) = matrices.figures(partition(mi250x, healthy, references=references))
    assert "#D55E00" in figure.svg and "#D55E00" not in other.svg


@pytest.mark.parametrize("percent, framed", [(96.0, True), (98.0, False)])
def test_a_pair_that_is_behind_its_peers_is_framed_without_a_reference(
    mi250x, percent, framed, wording
):
    # Recorded of a metric is the worst member, and 2-4 is behind as well.
    document, _ = kernels(mi250x)
    for one in document["series"]:
        if one["device_set"] in ([0, 6], [2, 4]):
            one["median"] *= percent / 100
    index = next(n for n, one in enumerate(document["series"]) if one["device_set"] == [0, 6])
    name = f"write_{mi250x.link_class(0, 6).name}_alike"
    found = partition(mi250x, document, behind={name: (percent, index)})
    (figure,) = [one for one in matrices.figures(found) if one.id == "peer-write"]
    wording(figure.says)
    assert ("#D55E00" in figure.svg) == framed


def test_sizes_are_not_mixed_in_a_matrix(mi250x):
    small = [transfer(a, b, 50.0, "engine") for a, b in permutations(range(3), 2)]
    large = transfer(0, 1, 51.0, "engine", size=8 << 30)
    (figure, *_) = matrices.figures(partition(mi250x, program("p2p", *small, large)))
    assert "1 GiB" in figure.says
    assert {row["value"] for row in figure.rows} == {50.0}


def test_what_was_published_is_a_figure_of_its_own_and_of_such_nodes_only(mi250x, wording):
    engine = program("p2p", transfer(5, 3, 98.0, "engine"))
    mine, theirs = sections(partition(mi250x, engine))[0]["Between devices"]
    assert (mine.kind, theirs.kind) == ("simulated", "published")
    assert {row["record"] for row in theirs.rows} > {"kth-bw-01", "kth-bw-76"}
    assert len(theirs.rows) == 56 and all(row["place"] for row in theirs.rows)
    wording(theirs.says)
    measured = factories.document(series=engine["series"])
    assert "fitted" not in sections(partition(mi250x, measured))[0]["Between devices"][1].says
    elsewhere = dataclasses.replace(mi250x, systems=())
    assert [one.kind for one in matrices.figures(partition(elsewhere, engine))] == ["simulated"]


def test_both_have_one_colour_scale():
    assert [top([value]) for value in (0.43, 17.8, 49.4, 50.4, 150.4, 1256)] == pytest.approx(
        [0.5, 20, 50, 60, 160, 1600]
    )


def test_hops_are_told_where_devices_are_not_all_joined(mi250x, h200, wording):
    (figure,) = matrices.hops(partition(mi250x))
    assert figure.kind == "derived"
    wording(figure.says)
    assert not list(matrices.hops(h200))


def test_host_memory_is_by_domain_and_device(mi250x, wording):
    series = [
        factories.host_copy("h2d", device, domain, value=28.0 + domain)
        for device in range(8)
        for domain in range(4)
    ]
    (figure,) = matrices.host_memory(partition(mi250x, program("memcpy", *series)))
    assert {(row["row"], row["column"], row["value"]) for row in figure.rows} == {
        (domain, device, 28.0 + domain) for domain in range(4) for device in range(8)
    }
    wording(figure.says)


def test_kinds_of_host_memory_are_figures_of_their_own(mi250x, wording):
    series = [factories.host_copy("h2d"), factories.host_copy(memory="host-pageable", value=25.4)]
    pinned, pageable = matrices.host_memory(partition(mi250x, program("memcpy", *series)))
    assert (pinned.id, pageable.id) == ("numa-pinned-h2d", "numa-pageable-h2d")
    assert [row["value"] for row in (*pinned.rows, *pageable.rows)] == [28.3, 25.4]
    wording(pinned.says)


def test_mpi_from_the_first_device_stands_beside_the_lab_notes(mi250x, wording):
    series = [message(0, device, 100.0) for device in range(1, 8)]
    found = partition(mi250x, program("mpi", *series), program("mpi", environment={}))
    (figure,) = peers.messages(found)
    published = [row for row in figure.rows if row["kind"] == "published"]
    assert {row["record"] for row in published} == {f"lab-osubw-sdma1-0{to}" for to in range(1, 8)}
    wording(figure.says)
    off = program("mpi", *series, environment={"HSA_ENABLE_SDMA": "0"})
    (other,) = peers.messages(partition(mi250x, off))
    assert {row["record"] for row in other.rows if row["kind"] == "published"} == {
        f"lab-osubw-sdma0-0{to}" for to in range(1, 8)
    }
    swapped = load("mi250")  # other links: their pairs are not these pairs
    (alone,) = peers.messages(partition(swapped, program("mpi", *series)))
    assert {row["kind"] for row in alone.rows} == {"simulated"}


def test_copies_by_kernel_are_a_part_of_the_peak_of_both_directions(mi250x):
    series = [transfer(0, b, value, "copy") for b, value in ((1, 174.0), (2, 43.0), (3, 43.0))]
    (figure,) = peers.figures(partition(mi250x, program("p2p", *series)))
    own = {row["to"]: row["percent"] for row in figure.rows if row["kind"] == "simulated"}
    assert own == pytest.approx({1: 43.5, 2: 43.0})  # device 3 is no neighbour
    assert "43.0 of 100, 43 %" in texts(figure.svg)
    ticks = [int(text) for text in texts(figure.svg) if text.isdecimal()]
    assert max(ticks) == 400  # the greatest peak


def test_collectives_say_that_there_is_no_rccl(mi250x, wording):
    series = [
        collective("reduce", value, count) for count, value in ((2, 30.0), (3, 60.0), (4, 50.0))
    ]
    (figure,) = collectives.figures(partition(mi250x, program("mpi", *series)))
    wording(figure.says)
    bounds = [row for row in figure.rows if row["kind"] == "published"]
    assert [(row["record"], row["value"]) for row in bounds] == [("paper-coll-bound-1", 8.7)]
    assert texts(figure.svg).count("lower bound") == 2  # beside the line, and in the legend
    assert "published" not in texts(figure.svg)


def test_collectives_of_mpi_and_nccl_stand_beside_each_other(h200_figures, wording):
    figure = h200_figures["collectives"]
    wording(figure.says)
    assert "collectives-rccl" not in h200_figures  # of one number of partners it says no more


@pytest.mark.parametrize("counts", [(2, 3), (2,)])
def test_bounds_are_called_lines_where_they_are_drawn(mi250x, counts, wording):
    series = [collective("reduce", 30.0, count) for count in counts]
    (figure,) = collectives.figures(partition(mi250x, program("mpi", *series)))
    wording(figure.says)
    assert ("lower bound" in texts(figure.svg)) == (len(counts) > 1)


def test_copies_with_the_switch_of_peers_alone_are_not_those_with_all_engines_off(mi250x):
    def copied(value, **environment):
        by_kernel = {"engine": "kernel", "engines": None}
        one = transfer(0, 1, value, "engine", **by_kernel)
        return program("p2p", one, environment=environment)

    alone = copied(70.0, HSA_ENABLE_PEER_SDMA="0")
    off = copied(150.0, HSA_ENABLE_PEER_SDMA="0", HSA_ENABLE_SDMA="0")
    drawn = {one.id: one for one in matrices.figures(partition(mi250x, alone, off))}
    assert [row["value"] for row in drawn["peer-engine-off"].rows] == [150.0]


def test_collectives_are_of_the_best_devices_and_rccl_alone_of_threads(wording):
    def of(time, sets, program, threads=1):
        launches = [{"name": "reduce", "threads": threads}] if threads > 1 else [{"name": "reduce"}]
        moved = {"experiment": "E11", "engine": "rccl"} if program == "rccl-tests" else {}
        series = [
            collective("reduce", time + len(one), len(one), device_set=list(one)) | moved
            for one in sets
        ]
        name = {"program": factories.simulated_document()["program"] | {"name": program}}
        return factories.simulated_document(series=series, options={"launches": launches}, **name)

    best, first = [(0, 1), (0, 1, 6)], [(0, 1), (0, 1, 2)]
    runs = {
        "osu_collectives_in_order": of(70.0, first, "osu"),
        "osu_collectives": of(50.0, best, "osu"),
        "rccl_threads": of(20.0, first, "rccl-tests", threads=2),
        "rccl_scaling": of(30.0, best, "rccl-tests"),
    }
    entries = [
        Entry(Case(name, "local", "sim", "sim", "pass", None, frozenset(), ()), None, one, None)
        for name, one in runs.items()
    ]
    observed = Observed("local:sim", check_rows.checks(*entries), load("mi250x"))
    both, alone = collectives.figures(observed)
    of_osu = [row for row in both.rows if row["check"].startswith("osu")]
    assert [(row["check"], row["devices"]) for row in of_osu] == [
        # Two ranks are on the same devices in both checks.
        ("osu_collectives_in_order", "0 1"),
        ("osu_collectives", "0 1 6"),
    ]
    of_rccl = {row["check"] for row in both.rows if row["check"].startswith("rccl")}
    assert of_rccl == {"rccl_scaling"}
    assert {row["check"] for row in alone.rows} == {"rccl_threads"}
    wording(alone.says)


def test_rccl_over_its_partners_is_a_figure_of_its_own(mi250x, wording):
    series = [
        collective("allreduce", 20.0 + count, count, experiment="E11", engine="rccl")
        for count in range(2, 9)
    ]
    (figure,) = collectives.figures(partition(mi250x, program("rccl-tests", *series)))
    assert figure.id == "collectives-rccl"
    wording(figure.says)


def test_every_figure_fits_and_has_a_name_of_its_own(h200_figures):
    figures = list(h200_figures.values())
    assert len(figures) >= 10
    assert len({figure.title for figure in figures}) == len(figures)
    for figure in figures:
        assert re.fullmatch(r"[a-z0-9-]+", figure.id)
        assert int(re.search(r'width="(\d+)"', figure.svg)[1]) <= WIDTH, figure.id
        sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)', figure.svg)]
        assert sizes and min(sizes) >= 10, figure.id
        assert len({frozenset(row) for row in figure.rows}) == 1, figure.id


def test_text_with_html_in_it_is_text():
    evil = "<script>alert(1)</script>"
    drawing = Drawing(90, 40)
    drawing.text(45, 20, evil, fill='"><script>')
    drawing.line(Curve((0, 0), (40, 40)), 2, Style("black", "", ""), evil)
    row = {"series": evil, "value": 1.0, "low": None, "high": None, "text": evil}
    chart = bars([{**row, "kind": "measured"}], colours={evil: "black"}, unit=evil)
    for svg in (drawing.svg(), chart.result()):
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg


@pytest.mark.parametrize("documents", [(), (program("p2p"),), (program("mpi"),)])
def test_without_data_there_is_no_figure(mi250x, documents):
    found = partition(dataclasses.replace(mi250x, links={}) if documents else mi250x, *documents)
    drawers = [drawer for drawer in DRAWERS if drawer is not matrices.hops]
    assert [figure for drawer in drawers for figure in drawer(found)] == []


def test_without_a_node_model_only_what_was_measured_is_drawn():
    series = [transfer(a, b, 50.0, "engine") for a, b in permutations(range(2), 2)]
    found, _ = sections(partition(None, program("p2p", *series)))
    assert [figure.id for figures in found.values() for figure in figures] == ["peer-engine"]


def test_numbers_in_cells_have_three_figures():
    assert [cell(value) for value in (0.42564, 8.7, 50.0, 99.96, 150.4)] == [
        "0.426", "8.70", "50.0", "100", "150"
    ]  # fmt: skip
