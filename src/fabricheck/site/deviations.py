"""How a session may deviate from what this commit states. A site may accept each by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from fabricheck.core.models import StrictModel

#: The names are those of rules of a verdict (judge/verdict/rules.py) and of the extra `accepts`.
DeviationName = Literal[
    "other-references",
    "wide-limits",
    "left-out-checks",
    "without-mpi",
    "changed-checks",
    "other-programs",
]


NAMES = frozenset(get_args(DeviationName))


class Deviation(StrictModel):
    """A deviation that the session itself recorded.

    facts: what deviates: the folder of references and its files that differ; variables and their
    values, those of -S without the option; files of checks; the checkout's commit and those of the
    programs.
    """

    name: DeviationName
    facts: Sequence[str]
