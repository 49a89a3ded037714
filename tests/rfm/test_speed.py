"""What makes sessions faster changes nothing of what ReFrame says."""

from __future__ import annotations

import warnings

import pytest
from reframe.core import fields, variables
from reframe.core.warnings import ReframeDeprecationWarning, suppress_deprecations

from fabricheck.rfm import speed


@pytest.fixture
def warned(monkeypatch):
    """Collect what would search for whom to warn."""
    found = []
    for module in (fields, variables):
        monkeypatch.setattr(module, "user_deprecation_warning", lambda *said: found.append(said))
    speed.improve()
    return found


@pytest.mark.parametrize("module", [fields, variables])
def test_a_deprecation_that_is_ignored_searches_for_nobody(warned, module):
    with suppress_deprecations():
        module.user_deprecation_warning("old", "4.0.0")
    assert warned == []


def test_any_other_deprecation_is_said(warned):
    fields.user_deprecation_warning("old", "4.0.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReframeDeprecationWarning)
        fields.user_deprecation_warning("older")
    assert warned == [("old", "4.0.0"), ("older",)]


def test_a_second_call_changes_nothing(warned):
    once = fields.user_deprecation_warning
    speed.improve()
    assert fields.user_deprecation_warning is once
