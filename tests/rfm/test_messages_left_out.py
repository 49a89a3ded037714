"""What a check says of an MPI that does not take buffers of devices everywhere."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabricheck.rfm.ranks import MpiCheck

TRIAL = Path(__file__).resolve().parents[1] / "outputs/h200/two-devices-mpi/mpi_trial.json"


def sentences(folder, without=()):
    check = SimpleNamespace(
        stagedir=str(folder),
        without=without,
        buffers="device",
        current_environ=SimpleNamespace(name="cuda"),
    )
    return list(MpiCheck._not_reached(check))


@pytest.mark.parametrize("left", ["result.json", "result.json.partial"])
def test_the_collectives_to_be_left_out_are_named(tmp_path, left, wording):
    shutil.copy(TRIAL, tmp_path / left)
    wording(sentences(tmp_path))
    wording(sentences(tmp_path, ("reduce", "allreduce")))


def test_nothing_is_said_where_nothing_is_known(tmp_path):
    assert sentences(tmp_path) == []
    (tmp_path / "result.json").write_text("{")
    assert sentences(tmp_path) == []
