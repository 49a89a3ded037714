"""The partition of the cases is calibrated, so that what rests on its limits is not provisional."""

import pytest

import factories
from fabricheck.references.published import PREFIX_VARIABLE
from session_builder import PARTITION


@pytest.fixture(autouse=True)
def references(tmp_path_factory, monkeypatch):
    """A folder of references that has a record of the partition, and nothing else."""
    folder = tmp_path_factory.mktemp("references")
    factories.calibration(folder, PARTITION)
    monkeypatch.setenv(PREFIX_VARIABLE, str(folder))
    return folder
