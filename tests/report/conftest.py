"""A session that a page is made of, and figures that take no time."""

import functools
from types import SimpleNamespace

import pytest

from fabricheck.report import figure
from page_fixtures import one_figure, two_partitions  # noqa: F401


class OnDemand:
    """Draws a figure when its drawing is asked for: most tests look at its rows alone."""

    def __init__(self, pen):
        self.pen = pen

    def submit(self, *drawing):
        return SimpleNamespace(result=functools.cache(lambda: self.pen().submit(*drawing).result()))


@pytest.fixture(autouse=True)
def _draws_on_demand(monkeypatch):
    monkeypatch.setattr(figure, "_pen", functools.partial(OnDemand, figure._pen))
