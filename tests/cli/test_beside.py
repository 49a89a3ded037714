"""The program mpi beside OSU Micro-Benchmarks."""

import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "two-devices-mpi"


@pytest.fixture
def documents(tmp_path):
    """Return a folder with what two H200 gave, by mpi and by the checks of OSU."""
    for program, name in (("mpi", "mpi_round_1"), ("osu", "osu_device_0")):
        (tmp_path / program).mkdir()
        text = (RECORDED / f"{name}.json").read_text()
        (tmp_path / program / "result.json").write_text(text)
    return tmp_path


def test_pairs_of_the_same_size_stand_beside_each_other(command, documents):
    ended = command("results", "osu", documents, json=True)
    rows = ended.json
    assert rows
    mpi = json.loads((documents / "mpi" / "result.json").read_text())["series"]
    osu = json.loads((documents / "osu" / "result.json").read_text())["series"]
    for row in rows:
        for name, series in (("mpi", mpi), ("osu", osu)):
            (found,) = [
                one["median"]
                for one in series
                if one["operation"] == row["operation"]
                and one["bytes"] == row["bytes"]
                and one["role"] == "single"
                and one["device_set"] == row["members"]
            ]
            assert row[name] == found
        assert row["ratio"] == row["mpi"] / row["osu"]
        assert row["buffers"] == "device"
    assert {row["operation"] for row in rows} >= {"bandwidth"}


def test_the_table_has_the_pair(command, documents):
    ended = command("results", "osu", documents)
    lines = ended.stdout.splitlines()
    assert "mpi/OSU" in lines[0]
    assert any(" bandwidth " in line and " 0-1 " in line for line in lines)


def test_what_only_one_measured_is_not_compared(command, documents):
    text = (documents / "osu" / "result.json").read_text()
    document = json.loads(text)
    document["environment"]["HSA_ENABLE_SDMA"] = "0"
    (documents / "osu" / "result.json").write_text(json.dumps(document))
    ended = command("results", "osu", documents, code=3)
    assert "both mpi and OSU" in ended.stderr
