"""What takes most of the time of a session beside its programs, and can be had for less.

All of it changes how ReFrame 4.10 does a thing, and nothing of what it does.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from reframe.core import fields, variables
from reframe.core.warnings import ReframeDeprecationWarning


def improve() -> None:
    """Apply all; a second call changes nothing."""
    _leave_out_ignored_warnings()


def _leave_out_ignored_warnings() -> None:
    """Make no warning of a deprecated variable that is ignored anyway.

    With each message about a check ReFrame reads all of its variables, a deprecated one among them,
    and looks through the source of every caller for whom to warn. A dry run of 33 checks took 20 s
    with that, and takes 4 s without.
    """
    for module in (fields, variables):
        original = module.user_deprecation_warning
        if not hasattr(original, "__wrapped__"):
            module.user_deprecation_warning = _unless_ignored(original)


def _unless_ignored(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def warn(*args: object, **kwargs: object) -> None:
        # What ReFrame's suppress_deprecations puts before all other filters.
        if warnings.filters and warnings.filters[0][0:3:2] == ("ignore", ReframeDeprecationWarning):
            return
        original(*args, **kwargs)

    return warn
