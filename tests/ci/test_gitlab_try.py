"""The pipeline, run by gitlab-ci-local where that is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "ci/gitlab/try.sh"


@pytest.mark.full
@pytest.mark.skipif(
    not (shutil.which("gitlab-ci-local") and shutil.which("rsync")),
    reason="gitlab-ci-local (npm) or rsync is not installed",
)
def test_the_pipeline_is_green_and_with_a_link_gone_red(tmp_path):
    ended = subprocess.run(
        [SCRIPT, tmp_path / "tried"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Metric engine_links2_worst: pairs 0-6, 6-0, " in ended.stdout
