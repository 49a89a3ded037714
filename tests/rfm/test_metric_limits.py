"""Floors limit what no reference limits, on every partition that has a node model."""

from __future__ import annotations

import pytest
import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.node import available, load, node_directory
from fabricheck.references import entries
from fabricheck.references.stated import References
from fabricheck.rfm.metric_limits import floor
from fabricheck.rfm.metrics import Metric

#: The models whose dry run as local:gpu other tests share.
SHARED = ("mi250", "mi300a")


#: The models of whose metrics references limit all that a floor would.
LIMITED_BY_REFERENCES = {
    model: {
        ("stream_local", "copy_worst"),
        ("memcpy_near", "h2d_pinned_near_worst"),
        ("p2p_kernel", "write_links1_worst"),
    }
    for model in ("mi300x", "mi325x")
}


def floors(told):
    """Return the limits by a floor, by check and metric."""
    return {
        (one.check, name): tuple(metric["entry"])
        for one in told
        for name, metric in one.metrics.items()
        if (metric["rule"] or "").startswith(("no healthy node on", "no health check on record"))
    }


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SHARED else pytest.mark.full)
        for name in available()
    ],
)
def test_a_site_s_own_partition_has_the_floors_of_this_machine(
    site_dry_run, dry_run_of_models, model
):
    """They differ in what a shared host decides, which no floor is of."""
    own = dry_run_of_models().of(f"models:{model}")
    here = site_dry_run("local:gpu", FABRICHECK_NODE=model).of("local:gpu")
    checks = {one.check for one in own} & {one.check for one in here}
    assert {"stream_local", "memcpy_near", "p2p_kernel"} <= checks
    own_floors, floors_here = (
        floors(one for one in told if one.check in checks) for told in (own, here)
    )
    assert own_floors == floors_here
    if model in LIMITED_BY_REFERENCES:
        limits = {
            (one.check, name) for one in own for name, metric in one.metrics.items()
            if entries.required(metric["entry"])
        }  # fmt: skip
        assert limits >= LIMITED_BY_REFERENCES[model]
    else:
        assert own_floors


#: A floor of each kind, by the fact of the node model that it rests on.
KINDS = {
    "devices.memory_peak_gbs": Metric(
        "copy_worst",
        {
            "engine": "kernel",
            "operation": "copy",
            "role": "single",
            "regime": "memory",
            "source.memory": "device",
            "destination.memory": "device",
        },
    ),
    "links.peak_gbs": Metric(
        "write_worst",
        {
            "engine": "kernel",
            "operation": "write",
            "role": "single",
            "bytes_counted": "once",
            "source.memory": "device",
            "destination.memory": "peer",
        },
        ("device_set",),
        among=(([0, 1],),),
    ),
    "host_link.peak_gbs": Metric(
        "h2d_pinned_near_worst",
        {
            "engine": "copy-engine",
            "operation": "h2d",
            "role": "single",
            "experiment": "E2",
            "source.memory": "host-pinned",
            "destination.memory": "device",
        },
    ),
}


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("kind", ["published", "assumed"])
def test_no_floor_rests_on_an_assumption(tmp_path, key, kind):
    """A healthy node may have a narrower link than was assumed, as ROCm's MI250 has to its host."""
    section, name = key.split(".")
    content = yaml.safe_load((node_directory() / "mi250x.yaml").read_text())
    content[section][name] |= {"kind": kind, "source": "paper", "note": "a test"}
    file = tmp_path / "mi250x.yaml"
    file.write_text(yaml.safe_dump(content))
    node = load(str(file))
    rule = floor(KINDS[key], node)
    assert entries.requires(rule.entry) == (kind == "published")
    assert (f"the assumed {key} of the node model" in rule.why) == (kind == "assumed")


def test_links_that_are_assumed_make_no_floor():
    """The peak of a pair is that of its links, of which mi210 assumes the number."""
    rule = floor(KINDS["links.peak_gbs"], load("mi210"))
    assert not entries.requires(rule.entry)
    assert rule.why == "no limit rests on the assumed links of the node model mi210"


def stated(folder, text):
    """Return the references of a folder with one file."""
    (folder / "p2p.yaml").write_text(text)
    return References(folder)


@pytest.mark.parametrize("key", ["north:gpu", "north", "amd", "any"])
def test_a_reason_beside_a_metric_is_one_and_that_of_all_is_none(tmp_path, key):
    found = stated(
        tmp_path,
        f"""
p2p_kernel:
  {key}:
    $why: no document at hand states the others
    write_worst: [0, null, null, GB/s]
    read_worst: {{limit: [0, null, null, GB/s], source: {{kind: report only, why: it varies}}}}
    copy_worst: {{limit: [50, -0.1, null, GB/s], source: {{kind: site, why: promised}}}}
""",
    )
    named = key if key in ("north", "amd") else None
    reasons = [
        found.why_open("p2p_kernel", "north:gpu", metric, named)
        for metric in ("write_worst", "read_worst", "copy_worst", "no_such_metric")
    ]
    assert reasons == [None, "it varies", None, None]


#: What a site may state of a metric, and the limit that it then has.
STATED = {
    "read_links1_worst: [0, null, null, GB/s]": "(r:64.0, l:-0.45, u:None)",
    "read_links1_worst: {limit: [0, null, null, GB/s], source: {kind: report only, why: x}}": "",
    "read_links1_worst: {limit: [40, -0.1, null, GB/s], source: {kind: site, why: x}}":
        "(r:40, l:-0.1, u:None)",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("entry", STATED)
@pytest.mark.parametrize("partition", ["models:mi300x", "local:gpu"])
def test_what_a_site_states_of_a_metric_comes_before_the_floor(
    suite, sites_of_models, entry, partition
):
    references = suite.own_references().parent / "p2p.yaml"
    of_partition = f"""
p2p_kernel:
  {partition}:
    {entry}
    read_links1_median: [0, null, null, GB/s]
    write_links1_{{worst,median}}: [0, null, null, GB/s]
    copy_links1_{{worst,median}}: [0, null, null, GB/s]
"""
    text = references.read_text()
    references.write_text(text.replace("\np2p_kernel:\n", of_partition))
    suite.variables |= {"FABRICHECK_SITES": str(sites_of_models), "FABRICHECK_NODE": "mi300x"}
    checks = ROOT / "reframe_checks" / "p2p"
    ended = suite(f"--system={partition}", "-n", "^p2p_kernel$", "--dry-run", checks=checks)
    assert ended.status == 0, ended
    limit = STATED[entry]
    assert f"read_links1_worst: None GB/s {limit}".strip() + "\n" in ended.text
    assert "write_links1_worst: None GB/s (r:64.0, l:-0.45, u:None)\n" in ended.text
