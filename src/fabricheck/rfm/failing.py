"""Failures of a check that a verdict on the node tells from others, by the exception's name.

ReFrame keeps the name of the class in its report (`fail_info`), so that nothing has to be read out
of a sentence. All are errors of sanity: ReFrame treats them alike.
"""

from __future__ import annotations

from reframe.core.exceptions import SanityError


class OtherDevicesError(SanityError):  # type: ignore[misc]
    """The node has other devices than the partition states, fewer for one."""


class SettingError(SanityError):  # type: ignore[misc]
    """A setting of the node or the job changed what was measured, or hides devices."""


class EndedBySchedulerError(SanityError):  # type: ignore[misc]
    """Somebody, or the scheduler, ended the job, which says nothing of the node."""
