"""Changes of checks, references, sites, node models and wording that some test has to see."""

from __future__ import annotations

from proof.mutants.mutant import Mutant


def _change(name: str, path: str, text: str, new: str) -> Mutant:
    """Return a change of a file, by its path from the root; its tests are those that are chosen."""
    return Mutant(name, path, text, new, (), folder=".")


_RECORD = """- id: kth-bw-01
  system: dardel
  accelerator: MI250X (1 GCD)
  experiment: p2p_bandwidth_hipmemcpypeer
  metric: bandwidth
  unit: GB/s
"""

CHANGES = (
    _change(
        "a check of STREAM leaves a kernel out",
        "reframe_checks/stream/stream.py",
        'KERNELS = ("copy", "scale", "add", "triad")',
        'KERNELS = ("copy", "scale", "add")',
    ),
    _change(
        "copies to and from the host count their bytes twice",
        "reframe_checks/memcpy/memcpy.py",
        '"bytes_counted": "once"}',
        '"bytes_counted": "read+write"}',
    ),
    _change(
        "both directions of a pair are not asked of p2p",
        "reframe_checks/p2p/p2p.py",
        'return ["--operations", ",".join(self.operations),',
        'return ["--operations", next(iter(self.operations)),',
    ),
    _change(
        "the binding of ranks is no part of the smallest set",
        "reframe_checks/affinity/affinity.py",
        '(E15)"\n    tags = {"E15", "smoke", "node", "full"}\n    valid_prog',
        '(E15)"\n    tags = {"E15", "node", "full"}\n    valid_prog',
    ),
    _change(
        "a scan of messages begins at 1 KiB",
        "reframe_checks/pingpong/pingpong.py",
        'return f"4:{super().sizes()}"',
        'return f"1024:{super().sizes()}"',
    ),
    _change(
        "a check is not known any more",
        "reframe_checks/pingpong/pingpong.py",
        "@rfm.simple_test\nclass pingpong_right(PlacedPingpong):",
        "class pingpong_right(PlacedPingpong):",
    ),
    _change(
        "a published limit is another one",
        "reference_values/p2p.yaml",
        "[50.33, -0.05, null, GB/s], source: &kth_bw_links2 {",
        "[51.33, -0.05, null, GB/s], source: &kth_bw_links2 {",
    ),
    _change(
        "a metric has no reference",
        "reference_values/stream.yaml",
        "    triad_{worst,median}: {limit: [1400, -0.15, null, GB/s], "
        "source: *paper_stream_local_2}\n",
        "",
    ),
    _change(
        "peers may be further behind",
        "reference_values/rules.yaml",
        "alike:\n  least_percent: 3",
        "alike:\n  least_percent: 6",
    ),
    _change(
        "what a collective may take is more",
        "reference_values/rules.yaml",
        "rccl: {factor: 4,",
        "rccl: {factor: 8,",
    ),
    _change(
        "a published record has another value",
        "reference_values/published_values.yaml",
        _RECORD + "  value: 50.3\n",
        _RECORD + "  value: 53.0\n",
    ),
    _change(
        "a site has another node",
        "config/sites/lumi.py",
        '"mi250x",\n                        references',
        '"mi250",\n                        references',
    ),
    _change(
        "a site has the references of another",
        "config/sites/dardel.py",
        'references="dardel"',
        'references="frontier"',
    ),
    _change("a host name is not the site's", "config/sites/lumi.py", "nid00[5-7]", "nid00[56]"),
    _change(
        "measurements of a node overlap", "config/sites/h200.py", '"max_jobs": 1', '"max_jobs": 4'
    ),
    _change(
        "a node model has a wrong link",
        "config/nodes/mi300a.yaml",
        "    - [2, 2, 2, 0]",
        "    - [2, 2, 1, 0]",
    ),
    _change(
        "an overlay takes another link away",
        "config/nodes/overlays/link-0-6-gone.yaml",
        "pair: [0, 6]",
        "pair: [0, 2]",
    ),
    _change(
        "the heading of a verdict has other words",
        "src/fabricheck/report/verdict_lines.py",
        'f"Verdict on {total.of}: "',
        'f"Verdict for {total.of}: "',
    ),
    _change(
        "a diagnosis says otherwise that nothing explains it",
        "src/fabricheck/judge/diagnosis/model.py",
        'f"No degraded component explains {many}."',
        'f"{many} have no common cause."',
    ),
    _change(
        "the sentence on a missing reference has other words",
        "src/fabricheck/rfm/check_limits.py",
        'f"State what is missing in {',
        'f"Add what is missing to {',
    ),
    _change(
        "the handbook names a command that is none",
        "docs/limits.md",
        "fabricheck limits show --system lumi ",
        "fabricheck limits list --system lumi ",
    ),
)
