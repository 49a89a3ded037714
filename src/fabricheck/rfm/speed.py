"""What takes most of the time of a session beside its programs, and can be had for less.

All of it changes how ReFrame 4.10 does a thing, and nothing of what it does.
"""

from __future__ import annotations

import functools
import os
import types
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import yaml
from reframe.core import fields, pipeline, variables
from reframe.core.warnings import ReframeDeprecationWarning


def improve() -> None:
    """Apply all; a second call changes nothing."""
    _read_references_once()
    _leave_out_ignored_warnings()


def _read_references_once() -> None:
    """Let ReFrame read each reference file once, and by libyaml where PyYAML was built with it.

    It reads one anew for each of its checks, and copies what it takes of it.
    """
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]
    if pipeline.yaml is yaml:
        pipeline.yaml = types.SimpleNamespace(safe_load=_Files().load)


class _Files:
    """The content of files of YAML, as they were when last changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], Any]] = {}

    def load(self, file: TextIO) -> Any:
        """Return the content of an open file, which is not to be changed."""
        now = os.fstat(file.fileno())
        state = (now.st_dev, now.st_ino, now.st_mtime_ns, now.st_size)
        if file.name not in self._known or self._known[file.name][0] != state:
            self._known[file.name] = (state, yaml.safe_load(file))
        return self._known[file.name][1]


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
