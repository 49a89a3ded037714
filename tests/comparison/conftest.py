"""A session to set others against."""

import pytest
from two_sessions import HEALTHY, document, results


@pytest.fixture
def before(tmp_path):
    """The results of a session before an update."""
    return results(tmp_path / "a", document(HEALTHY))
