"""What a plan can say of ranks: placements, means, sums, aims, and parts that are lost."""

from __future__ import annotations

import pytest

from fabricheck.core.errors import InvalidInputError
from fabricheck.node import load
from fabricheck.papers.fidelity import command, evaluate, value_of
from fabricheck.papers.fidelity_plan import ProgramRun, Read, read_plan

DEVICES = (0, 2, 4, 6)


def series(device, median, *, role="share", devices=DEVICES, size=10**9):
    return {
        "operation": "there-and-back",
        "device": device,
        "device_set": list(devices),
        "role": role,
        "source": {"memory": "host-pageable", "device": None, "numa_domain": 3},
        "destination": {"memory": "device", "device": device, "numa_domain": None},
        "bytes": size,
        "bytes_moved": 2 * size,
        "bytes_counted": "once",
        "unit": "GB/s",
        "median": median,
    }


def ranks(*medians):
    return [series(device, median) for device, median in zip(DEVICES, medians, strict=True)]


def value(found, place, **read):
    rank = {"run": "it", "operation": "there-and-back", "counts": "once"}
    asked = Read.model_validate({**rank, **read})
    return value_of({"it": {"series": found}}, asked, place, load("mi250x"))


def test_a_rank_is_named_by_its_device_and_no_place_is_their_mean():
    found = ranks(10.0, 20.0, 30.0, 40.0)
    assert value(found, (4,), rank=True) == pytest.approx(30)
    assert value(found, (), rank=True) == pytest.approx(25)
    with pytest.raises(
        InvalidInputError, match="has 0 series of operation there-and-back at place 1"
    ):
        value(found, (1,), rank=True)
    with pytest.raises(
        InvalidInputError, match="has 0 series of operation there-and-back at place 4"
    ):
        value(found, (4,))
    alone = [series(0, 10.0, role="single", devices=(0,))]
    assert value(alone, (0,)) == pytest.approx(10)
    with pytest.raises(InvalidInputError, match="'it' has no series of several ranks"):
        value(alone, (), rank=True)


def test_without_ranks_no_place_is_the_sum_of_several():
    found = [*ranks(10.0, 20.0, 30.0, 40.0), series(None, 90.0, role="sum")]
    assert value(found, ()) == pytest.approx(90)
    with pytest.raises(InvalidInputError, match="at place ranks; exactly one is required"):
        value(found[:4], ())


def half(content):
    """Reduce the plan to statements on four ranks."""
    near, far = (
        {"run": run, "operation": "there-and-back", "counts": "once", "rank": True}
        for run in ("half-right", "half-wrong")
    )
    content["statements"] = [
        {
            "title": "lost",
            "read": far,
            "against": near,
            "places": "0,2,4,6",
            "lost": {
                "records": "epicure-lumi-half-incorrect-rank{rank}",
                "below": "epicure-lumi-half-correct-rank{rank}",
                "above": 0.05,
            },
        }
    ]


@pytest.mark.parametrize(
    ("far", "rule", "holds"),
    [
        ((18.0, 18.0, 18.0, 18.0), {"above": 0.05}, True),
        ((18.0, 19.5, 18.0, 18.0), {"above": 0.05}, False),
        ((19.7, 20.3, 20.0, 20.0), {"within": 0.02}, True),
        ((19.5, 20.0, 20.0, 20.0), {"within": 0.02}, False),
        ((20.5, 20.0, 20.0, 20.0), {"within": 0.02}, False),
    ],
)
def test_every_rank_loses_or_none_does(changed, node, documents, far, rule, holds):
    def change(content):
        half(content)
        lost = content["statements"][0]["lost"]
        del lost["above"]
        lost.update(rule)

    plan = read_plan(changed(change), node)
    replaced = {
        **documents,
        "half-right": {"series": ranks(20.0, 20.0, 20.0, 20.0)},
        "half-wrong": {"series": ranks(*far)},
    }
    [judged] = evaluate(plan, replaced).statements
    assert judged.holds == holds
    assert (judged.low, judged.high) == (
        pytest.approx(1 - max(far) / 20),
        pytest.approx(1 - min(far) / 20),
    )
    assert judged.published == "0.01 to 0.13" and judged.unit == "ratio"
    assert judged.records == (
        "epicure-lumi-half-incorrect-rank*",
        "epicure-lumi-half-correct-rank*",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["lost"].update(within=0.02), "lost requires either above or within"),
        (lambda one: one.pop("against"), "a statement with lost requires against"),
        (lambda one: one.update(near="paper-p2p-bw-hi"), "one of near, between, below and lost"),
        (
            lambda one: one["lost"].update(below="epicure-lumi-nothing-rank{rank}"),
            "no record 'epicure-lumi-nothing-rank0'",
        ),
        (
            lambda one: one["lost"].update(below="paper-p2p-lat-single"),
            "'paper-p2p-lat-single' is in us, but what is read for it is in GB/s",
        ),
    ],
)
def test_a_faulty_statement_on_ranks_is_one_sentence(changed, node, change, said):
    def changes(content):
        half(content)
        change(content["statements"][0])

    with pytest.raises(Exception, match=said.replace("(", r"\(")) as caught:
        read_plan(changed(changes), node)
    assert str(caught.value).count("\n") == 0


def test_experiments_are_counted_by_aim(found):
    aims = found.plan.file.aims
    counts = {aim: found.share(latency=False, aim=aim).n for aim in aims}
    assert list(counts.values()) == [68, 15, 14]
    assert sum(counts.values()) == found.share(latency=False).n


def test_every_experiment_has_one_aim(changed, node):
    def twice(content):
        content["aims"]["E6"]["experiments"].append("E9")

    with pytest.raises(InvalidInputError, match="every experiment must have one aim"):
        read_plan(changed(twice), node)


def test_records_of_another_system_need_their_reason(changed, node):
    def only_jsc(content):
        content["also"] = [one for one in content["also"] if one["system"] == "jureca-mi250"]

    with pytest.raises(InvalidInputError, match="'lab-osubw-sdma0-01' is of amd-mi250-generic"):
        read_plan(changed(only_jsc), node)

    def one_left(content):
        for entry in content["predicted"]:
            if isinstance(entry["records"], dict):
                entry["records"].pop("lab-osubw-sdma0-05", None)

    with pytest.raises(InvalidInputError, match="nor left out: lab-osubw-sdma0-05"):
        read_plan(changed(one_left), node)


def test_ranks_are_put_on_their_devices_and_bound_to_their_cores(node, tmp_path):
    run = ProgramRun(program="pingpong", arguments="--sizes 1KiB", placement="half_rotated")
    line = command(run, node, tmp_path / "bin", tmp_path)
    assert line[:3] == ["smpirun", "-np", "4"]
    places = ["--placement", "half_rotated", "--map", "0,2,4,6", "--bind", "1,33,49,17"]
    assert line[-7:] == ["1KiB", *places]
    assert (tmp_path / "hosts").read_text() == "device0\ndevice2\ndevice4\ndevice6\n"
    plain = ProgramRun(program="mpi", arguments="--pairs all", ranks=3)
    line = command(plain, node, tmp_path / "bin", tmp_path)
    assert line[-3:] == [str(tmp_path / "bin" / "mpi"), "--pairs", "all"]
    assert (tmp_path / "hosts").read_text() == "device0\ndevice1\ndevice2\n"
    unknown = ProgramRun(program="pingpong", arguments="", placement="upside_down")
    with pytest.raises(InvalidInputError, match="mi250x has no placement 'upside_down'"):
        command(unknown, node, tmp_path, tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"program": "mpi"},
        {"program": "mpi", "ranks": 2, "placement": "right"},
        {"program": "p2p", "ranks": 2},
    ],
)
def test_only_programs_of_ranks_have_ranks(wrong):
    with pytest.raises(ValueError, match="which require one of them"):
        ProgramRun(arguments="", **wrong)
