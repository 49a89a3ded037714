"""The command that runs checks of a partition again."""

from __future__ import annotations

from collections.abc import Iterable


def command_line(where: str, checks: Iterable[str]) -> list[str]:
    """Return the command line that runs checks on a partition; where: empty if it is unknown."""
    chosen = [part for check in dict.fromkeys(checks) for part in ("-n", f"^{check}$")]
    system = [f"--system={where}"] if where else []
    return ["reframe", *system, "-c", "reframe_checks", "-r", *chosen]
