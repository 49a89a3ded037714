"""A real Spack makes the committed locks again, and our package comes on top without a change."""

import json
import shutil

import pytest
from relock import Trial, differences, pinned_commit, spack_commit
from site_stand_ins import SPACK_ENV, STAND_INS

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("spack") is None, reason="no spack on the PATH"),
]


@pytest.fixture(params=sorted(STAND_INS))
def name(request):
    if spack_commit() != pinned_commit(request.param):
        pytest.skip(f"the lock is of Spack {pinned_commit(request.param)}, not {spack_commit()}")
    return request.param


def test_the_committed_lock_is_made_again_and_our_package_on_top_changes_nothing(name, tmp_path):
    committed = json.loads((SPACK_ENV / name / "spack.lock").read_text())["concrete_specs"]
    trial = Trial(name, tmp_path)
    made = trial.concretize("--force")["concrete_specs"]
    assert differences(committed, made) == []
    for line in (SPACK_ENV / name / "fabricheck.specs").read_text().splitlines():
        trial.spack("add", line.split("#")[0])
    whole = trial.concretize()["concrete_specs"]
    assert [d for d in differences(committed, whole) if d.startswith("only committed")] == []
    added = {node["name"] for key, node in whole.items() if key not in committed}
    assert added == {"fabricheck"}
