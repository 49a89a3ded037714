"""No metric of a site is without a limit, unless a reason stands beside it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "node", "least"),
    [
        ("lumi", "", 1000),
        ("jureca", "", 1300),
        ("leonardo", "", 300),
        ("amd", "mi250", 900),
        ("h200", "", 500),
    ],
)
def test_a_limit_or_a_reason(system, node, least, monkeypatch):
    if node:
        monkeypatch.setenv("FABRICHECK_AMD_NODE", node)
    told = json.loads(CliRunner().invoke(app, ["references", "--system", system, "--json"]).stdout)
    metrics = told["references"]
    assert len(metrics) > least
    bare = [
        f"{one['check']} {one['metric']} of {one['partition']}"
        for one in metrics
        if one["entry"][1:3] == [None, None] and not one["how"]
    ]
    assert bare == []
