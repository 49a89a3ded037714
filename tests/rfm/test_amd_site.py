"""A plain AMD node is what the node model says that a variable names."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("node", "ranks", "migrates"),
    [
        pytest.param("mi250", 8, True, marks=pytest.mark.slow),
        # Its devices have no memory of their own that a page could go to.
        pytest.param("mi300a", 4, False, marks=pytest.mark.slow),
        pytest.param("mi210", 8, True, marks=pytest.mark.full),
        pytest.param("mi250-two-sockets", 8, True, marks=pytest.mark.full),
        pytest.param("mi250x", 8, True, marks=pytest.mark.full),
    ],
)
def test_a_plain_amd_node_is_what_its_node_model_says(site_dry_run, node, ranks, migrates):
    ended = site_dry_run("amd", FABRICHECK_AMD_NODE=node)
    job = ended.stage("amd:node", "pingpong_right") / "rfm_job.sh"
    assert f"\nmpirun -np {ranks} --map-by pe-list=" in job.read_text()
    told = {one.check for one in ended.told}
    assert ("managed_migration" in told) == migrates and "managed_zero_copy" in told
