"""Partitions that share entries by anchors and merges: a change is of one of them only."""

import pytest
import yaml

from fabricheck.judge.calibration.files import ReferenceFile

SHARED = """\
x-provenance:
  a:one: &same {kind: report only, why: not calibrated yet}
  a:two: *same

x-report-only: &report_only [0, null, null, GB/s]

small:
  $index: [$partition]
  a:one: &small_one
    copy: *report_only
    # Of add.
    add: *report_only

  # The same devices.
  a:two: *small_one
  a:three: *small_one

large:
  $index: [$partition]
  a:one: &large_one
    sum: *report_only
  a:two: &large_two
    <<: *large_one
    # Of the share.
    share: *report_only
  a:three:
    <<: *large_two
    all: *report_only

elsewhere:
  $index: [$partition]
  a:two: *small_one
"""
ENTRY = (1.5, -0.02, None, "GB/s")


@pytest.mark.parametrize("partition", ["a:one", "a:two", "a:three"])
@pytest.mark.parametrize("check", ["small", "large", "elsewhere"])
def test_only_one_partition_of_one_check_changes(tmp_path, check, partition):
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED)
    expected = yaml.safe_load(SHARED)
    metric = {"small": "copy", "large": "sum", "elsewhere": "add"}[check]
    expected[check][partition] = expected[check].get(partition, {}) | {metric: list(ENTRY)}
    file = ReferenceFile(path)
    file.put(check, partition, {metric: ENTRY})
    text = file.text()
    assert yaml.safe_load(text) == expected
    for comment in ("# Of add.", "# The same devices.", "# Of the share."):
        assert text.count(comment) == 1


def test_only_one_partition_is_calibrated(tmp_path):
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED)
    file = ReferenceFile(path)
    file.state("a:two", {"kind": "calibration", "record": "one"})
    assert yaml.safe_load(file.text())["x-provenance"] == {
        "a:one": {"kind": "report only", "why": "not calibrated yet"},
        "a:two": {"kind": "calibration", "record": "one"},
    }


def test_what_is_the_same_stays_shared(tmp_path):
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED)
    file = ReferenceFile(path)
    file.put("small", "a:two", {"copy": (0, None, None, "GB/s")})
    assert file.text() == SHARED
