"""No metric of the set node is without a limit, unless a reason stands beside it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT


def checks_of_the_set(partition: str) -> set[str]:
    system = partition.partition(":")[0]
    listed = yaml_files.read(ROOT / "config" / "sites" / f"{system}.checks.yaml")
    (own,) = (one for one in listed if one["partition"] == partition)
    return {name for name, about in own["checks"].items() if "node" in about["tags"]}


@pytest.mark.slow
@pytest.mark.parametrize(("partition", "least"), [("lumi:gpu", 300), ("h200:x2", 60)])
def test_a_limit_or_a_reason(partition, least):
    chosen = checks_of_the_set(partition)
    told = json.loads(
        CliRunner().invoke(app, ["references", "--system", partition, "--json"]).stdout
    )
    metrics = [one for one in told["references"] if one["check"] in chosen]
    assert len(metrics) > least
    bare = [
        f"{one['check']} {one['metric']}"
        for one in metrics
        if one["entry"][1:3] == [None, None] and not one["how"]
    ]
    assert bare == []
