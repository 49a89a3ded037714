"""A plugin of pytest: ends it where another package is tested than that of this folder."""

from pathlib import Path

import pytest

import fabricheck

_SOURCES = Path.cwd().resolve() / "src"


def pytest_sessionstart():
    """Look where the package is from; processes that tests start have the same path."""
    found = Path(fabricheck.__file__).resolve()
    if not found.is_relative_to(_SOURCES):
        pytest.exit(f"{found} is tested, and not that of {_SOURCES}", returncode=4)
