"""The figures of energy: their rows, what is published beside them, and none without energy."""

import pytest

from fabricheck.report.figures import energy
from fabricheck.results.observed import Observed
from tests import check_rows, factories
from tests.results.test_energy import counted, held, on_device


def figures(*series):
    document = factories.document(series=list(series))
    return list(energy.figures(Observed("site:x2", check_rows.checks(document), None)))


def of_session(figure):
    return [row for row in figure.rows if row["kind"] != "published"]


def of_size(size, watts):
    """Build a held series of another size."""
    return on_device(0, watts) | {"bytes": size, "bytes_moved": 2 * size}


def test_a_path_has_gross_and_net_energy_of_its_first_device():
    by_path, _ = figures(on_device(0, 500), on_device(1, 505))
    rows = of_session(by_path)
    assert [(row["series"], row["value"], row["low"]) for row in rows] == [
        ("gross", 500, 500),
        ("net of idle power", 400, 390),
    ]
    assert {(row["path"], row["unit"]) for row in rows} == {("copy, 256 MiB", "pJ/bit")}
    assert rows[0]["gb_per_s"] == pytest.approx(125)
    assert "500 pJ/bit at 125 GB/s" in by_path.says


def test_paths_are_at_their_largest_size_and_each_size_is_over_its_bandwidth():
    by_path, by_bandwidth = figures(of_size(1 << 18, 900), of_size(1 << 28, 500))
    assert {row["path"] for row in by_path.rows} == {"copy, 256 MiB"}
    assert [(row["series"], row["text"], row["value"]) for row in by_bandwidth.rows] == [
        ("copy", "copy, 256 KiB", 900),
        ("copy", "copy, 256 MiB", 500),
    ]


def test_what_is_published_of_a_path_says_what_it_includes():
    by_path, by_bandwidth = figures(on_device(0, 500))
    published = {row["record"]: row for row in by_path.rows if row["kind"] == "published"}
    assert {row["path"] for row in published.values()} == {"copy, 256 MiB"}
    assert published["energy-a100-hbm"]["value"] == 13.11
    assert "energy-nvlink4" not in published
    assert all(row["includes"] and row["place"] for row in published.values())
    assert all(row["includes"] in by_path.says for row in published.values())
    assert of_session(by_bandwidth) == by_bandwidth.rows


def test_a_net_value_below_zero_is_told_and_not_drawn():
    # Idle power that is measured above that of the load.
    by_path, _ = figures(held(counted(idle_before_w=520.0, idle_after_w=520.0)))
    assert [row["value"] for row in of_session(by_path)] == [500, -20]
    assert ">500</text>" in by_path.svg
    assert ">-20.0</text>" not in by_path.svg


def test_without_idle_power_there_is_no_net_mark():
    by_path, _ = figures(held(counted(idle_before_w=None)))
    assert [row["series"] for row in of_session(by_path)] == ["gross"]


def test_without_energy_there_is_no_figure():
    assert figures(factories.series()) == []
