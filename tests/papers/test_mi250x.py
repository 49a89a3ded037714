"""The simulated MI250X node against published values: the aims, and the page made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fabricheck.node.schema import Quantity
from fabricheck.papers import fidelity_command as render
from fabricheck.papers.fidelity import AIM
from fabricheck.papers.fidelity_plan import MOST_FITTED

ROOT = Path(__file__).resolve().parents[2]
MAIN = "E1 to E5, E7 and E8"
#: Predicted records that the model misses, found and left so. A new one has to be understood.
#: The first is not run: 4 B are less than the programs copy.
KNOWN = {
    MAIN: {"epicure-lumi-size-4B", "kth-lat-34", "kth-lat-70"},
    # Ranks in the same situation, of which each has its own share on the real machine.
    "E6": {f"epicure-lumi-multi8-incorrect-rank{rank}" for rank in range(8)}
    | {"epicure-lumi-half-incorrect-rank0", "epicure-lumi-half-incorrect-rank3"},
    # Paths of one link with the engine, which other documents have at 37 to 38 GB/s.
    "E9": {f"lab-osubw-sdma1-0{device}" for device in (2, 3, 4, 5)}
    | {"lab-osubw-sdma0-05", "lab-osubw-sdma0-07"},
}
#: Statements of documents that do not hold, of the same kind.
NOT_HELD = {
    "STREAM copy on one device, achievable",
    "messages of 16 MiB without the engine, % of the path's peak",
    "messages of 1 GiB without the engine against writes by kernel, part lost",
    "messages of 64 MiB without the engine within a package",
    "messages of 64 MiB without the engine over paths of two links",
    "messages of 64 MiB without the engine over paths of one link",
}


def rows(tables):
    return {row.record.id: row for table in tables for row in table.rows}


@pytest.mark.parametrize(("latency", "n"), [(False, 68), (True, 53)])
def test_most_predicted_values_are_reproduced(found, latency, n):
    share = found.share(latency=latency, aim=MAIN)
    assert share.n == n
    assert share.part >= AIM == 0.95, [row.record.id for row in share.worst]
    assert share.tolerance == (0.15 if latency else 0.05)


@pytest.mark.parametrize(("aim", "n", "within"), [("E6", 15, 5), ("E9", 14, 8)])
def test_values_of_ranks_are_counted_apart_and_their_misses_said(found, aim, n, within):
    share = found.share(latency=False, aim=aim)
    assert (share.n, share.within) == (n, within)
    assert found.share(latency=True, aim=aim).n == 0
    summary = "\n".join(render.summary(found))
    assert re.search(rf"bandwidths of {aim} +\| +{n} \| .* 95 %, not met", summary)
    assert f"- {aim}: {found.plan.file.aims[aim].remark}." in summary


def test_what_is_not_explained_is_what_is_known(found):
    missed = {name for name, row in rows(found.tables["predicted"]).items() if not row.within}
    assert missed == set().union(*KNOWN.values())
    for aim, known in KNOWN.items():
        shares = [found.share(latency=latency, aim=aim) for latency in (False, True)]
        assert sum(share.n - share.within for share in shares) == len(known)
    assert {judged.title for judged in found.statements if not judged.holds} == NOT_HELD


def test_placement_matters_as_published(found):
    values = {
        title: [row.simulated for row in table.rows]
        for table in (*found.tables["predicted"], *found.tables["fitted"], *found.tables["beside"])
        for title in [table.title.rpartition(", ")[2]]
    }
    right, wrong = (
        values["eight ranks near their devices"],
        values["eight ranks with their cores in order"],
    )
    half_right = values["four ranks near their devices"]
    half_wrong = values["four ranks far from their devices"]
    assert all(near > far for near, far in zip(right, wrong, strict=True))
    assert max(half_wrong) < min(half_right)
    single = rows(found.tables["predicted"])["epicure-lumi-single-full"].simulated
    assert half_right == pytest.approx([single] * 4, rel=0.02)


def test_messages_have_three_tiers_without_the_engine_and_a_cap_with_it(found):
    both = rows(found.tables["predicted"]) | rows(found.tables["fitted"])
    kernel, engine = (
        {to: both[f"lab-osubw-sdma{on}-0{to}"].simulated for to in range(1, 8)} for on in (0, 1)
    )
    assert kernel[1] > 1.8 * kernel[6] > 3 * kernel[2]
    assert kernel[7] == pytest.approx(kernel[6], rel=0.01)
    assert [kernel[to] for to in (3, 4, 5)] == pytest.approx([kernel[2]] * 3, rel=0.01)
    assert max(engine.values()) < 50
    assert all(engine[to] < kernel[to] for to in (1, 6, 7))


def test_a_value_that_is_not_run_counts_as_missed(found):
    summary = "\n".join(render.summary(found))
    assert (
        f"Worst predicted bandwidths of {MAIN}: epicure-lumi-size-4B not run, lumirfm-" in summary
    )


def test_what_is_shown_but_not_counted_is_in_the_summary(found):
    both = found.share(latency=False, beside=True, aim=MAIN)
    assert (both.n, both.within) == (76, 67)
    summary = "\n".join(render.summary(found))
    assert "67 of 76 within 5 % (88.2 %)" in summary
    assert "58 of 60 within 15 % (96.7 %)" in summary


def test_the_fitted_records_are_those_of_the_parameters_and_reproduced(found, node):
    parameters = [value for _, value in node.simulation if isinstance(value, Quantity)]
    wanted = {value.record for value in parameters if value.kind == "fitted"}
    fitted = rows(found.tables["fitted"])
    assert set(fitted) == wanted
    assert len(fitted) <= MOST_FITTED == 15
    assert not set(fitted) & set(rows(found.tables["predicted"]))
    assert all(row.within for row in fitted.values())


def test_every_pair_is_predicted_or_fitted_once(found):
    named = set(rows(found.tables["predicted"])) | set(rows(found.tables["fitted"]))
    for prefix in ("kth-bw", "kth-lat"):
        pairs = {f"{prefix}-{a}{b}" for a in range(8) for b in range(8) if a != b}
        assert pairs <= named


@pytest.mark.parametrize(
    ("record", "published", "simulated"),
    [
        ("kth-bw-01", 50.3, 50.0),
        ("kth-lat-17", 18.23, 17.78),
        ("lumirfm-commscope-quad", 148, 150.4),
        ("lumi-train-hipstream", 1280 * 2**30 / 1e9, 1394),
        ("paper-commscope-util-quad", 25, 25),
        ("epicure-lumi-single-gpu4", 23.45257 * 2**30 / 1e9, 25.28),
        ("epicure-lumi-size-64KiB", 5.3084 * 2**30 / 1e9, 5.706),
        ("epicure-lumi-multi8-incorrect-rank2", 14.45105 * 2**30 / 1e9, 12.24),
        ("lab-osubw-sdma1-06", 49.3868, 49.05),
        ("lumirfm-mbwmr-intranode", 482.735, 487.9),
    ],
)
def test_values_are_in_the_units_of_the_record(found, record, published, simulated):
    row = rows(found.tables["predicted"])[record]
    assert row.record.value == pytest.approx(published, rel=1e-4)
    assert row.simulated == pytest.approx(simulated, rel=0.005)
    assert row.deviation == pytest.approx(row.simulated / row.record.value - 1)


def test_the_page_and_the_records_are_what_is_made_now(found):
    page = ROOT / "docs" / "evidence" / "fidelity-mi250x.md"
    assert page.read_bytes() == render.page_of(found).encode(), (
        "make it again: fabricheck papers fidelity mi250x --output docs/evidence/fidelity-mi250x.md"
    )
    records = ROOT / "tests" / "papers" / "fidelity-mi250x.md"
    assert records.read_text() == render.text_of(found), (
        "make it again: fabricheck papers fidelity mi250x > tests/papers/fidelity-mi250x.md"
    )


def test_the_command_writes_the_page(command, made, programs, tmp_path):
    page = tmp_path / "page.md"
    line = ["papers", "fidelity", "mi250x", "--programs", str(programs), "--output", str(page)]
    command(*line)
    assert page.read_text() == render.page_of(made)


def test_json_holds_every_row_labelled(command, made, programs):
    done = command("papers", "fidelity", "mi250x", "--programs", programs, json=True)
    content = done.json
    assert content == json.loads(json.dumps(render.json_of(made)))
    assert content["node"]["sha256"] == made.plan.node.sha256
    kinds = [row["kind"] for row in content["rows"]]
    assert (kinds.count("predicted"), kinds.count("fitted")) == (68 + 53 + 15 + 14, 15)
    assert all({"published", "simulated"} <= set(row) for row in content["rows"])
