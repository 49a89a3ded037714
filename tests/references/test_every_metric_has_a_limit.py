"""No metric of a site is without a limit, unless a reason stands beside it."""

from __future__ import annotations

import pytest

from fabricheck.references import listing
from site_dry_runs import H200_TOOLS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "variables", "least"),
    [
        ("lumi", {}, 1000),
        ("jureca", {}, 1300),
        ("leonardo", {}, 300),
        pytest.param(
            "local:gpu",
            {
                "FABRICHECK_NODE": "mi250",
                "FABRICHECK_ROCM_OSU": "/osu",
                "FABRICHECK_RCCL_TESTS": "/rccl",
            },
            900,
            marks=pytest.mark.full,
        ),
        pytest.param(
            "local:gpu",
            {"FABRICHECK_NODE": "mi355x", "FABRICHECK_RCCL_TESTS": "/rccl"},
            500,
            marks=pytest.mark.full,
        ),
        pytest.param(
            "local:gpu",
            {"FABRICHECK_NODE": "b200", "FABRICHECK_NCCL_TESTS": "/nccl"},
            400,
            marks=pytest.mark.full,
        ),
        ("h200", H200_TOOLS, 500),
    ],
)
def test_a_limit_or_a_reason(command, system, variables, least, site_dry_run, monkeypatch):
    asked = site_dry_run(system, **variables).told
    monkeypatch.setattr(listing, "ask", lambda system, folders, names=(): asked)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    told = command("limits", "show", "--system", system, json=True).json
    metrics = told["references"]
    assert len(metrics) > least
    bare = [
        f"{one['check']} {one['metric']} of {one['partition']}"
        for one in metrics
        if one["entry"][1:3] == [None, None] and not one["how"]
    ]
    assert bare == []
