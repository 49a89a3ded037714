"""Checks that were one check in older sessions, mapped to those of today.

Lists of sessions show the name that ran. Names of today are used only where names are matched: with
references, and with another session.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fabricheck.results.model import Series


class _Part(NamedTuple):
    """A check of today: its name, its metrics, and the memory of its series."""

    check: str
    metrics: re.Pattern[str]
    memory: str


_SPLIT = {
    "memcpy_near": _Part(
        "memcpy_near_pageable", re.compile(r"(h2d|d2h|both)_pageable_near_\w+"), "host-pageable"
    ),
}

#: The parts of a check's name: folders, name, and repetition or environment.
_NAME = re.compile(r"(?P<before>(.*/)?)(?P<name>[^/ ]+)(?P<after>( .*)?)")


def of_metric(check: str, metric: str) -> str:
    """Return the check of today with a metric; the recorded name unless that check was split.

    :param check: the check that recorded it; the folders before its name and the suffix stay.
    """
    found, part = _part(check)
    return _named(found, part) if part and found and part.metrics.fullmatch(metric) else check


def of_series(check: str, series: Series) -> str:
    """Return the check of today with a series, as `of_metric`."""
    found, part = _part(check)
    memories = (series["source"]["memory"], series["destination"]["memory"])
    return _named(found, part) if part and found and part.memory in memories else check


def _part(check: str) -> tuple[re.Match[str] | None, _Part | None]:
    found = _NAME.fullmatch(check)
    return found, None if found is None else _SPLIT.get(found["name"])


def _named(found: re.Match[str], part: _Part) -> str:
    return f"{found['before']}{part.check}{found['after']}"
