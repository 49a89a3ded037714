"""The figure of energy by path: its rows, and none without energy."""

import pytest

from fabricheck.report.figures import energy
from fabricheck.results.observed import Observed
from tests import check_rows, factories
from tests.results.test_energy import counted, held, on_device


def figures(*series):
    document = factories.document(series=list(series))
    return list(energy.figures(Observed("site:x2", check_rows.checks(document), None)))


def test_a_path_has_gross_and_net_energy_of_its_first_device():
    (figure,) = figures(on_device(0, 500), on_device(1, 505))
    assert [(row["series"], row["value"], row["low"]) for row in figure.rows] == [
        ("gross", 500, 500),
        ("net of idle power", 400, 390),
    ]
    assert {(row["path"], row["unit"]) for row in figure.rows} == {("copy, 256 MiB", "pJ/bit")}
    assert figure.rows[0]["gb_per_s"] == pytest.approx(125)
    assert "500 pJ/bit at 125 GB/s" in figure.says


def test_without_idle_power_there_is_no_net_bar():
    (figure,) = figures(held(counted(idle_before_w=None)))
    assert [row["series"] for row in figure.rows] == ["gross"]


def test_without_energy_there_is_no_figure():
    assert figures(factories.series()) == []
