"""Rows of checks from documents: what programs that stand in for ours cannot import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricheck.results.entry import Entry
from fabricheck.results.rows import Check
from fabricheck.results.session import Case
from fabricheck.results.table import check_row


def checks(*documents: dict[str, Any] | Entry, cases: Sequence[Case] = ()) -> list[Check]:
    """Return the rows of documents, which may be entries, and of cases without one."""
    entries = [one if isinstance(one, Entry) else Entry(None, None, one, None) for one in documents]
    return [check_row(None, one, None) for one in cases] + [
        check_row(None, one.case, one) for one in entries
    ]
