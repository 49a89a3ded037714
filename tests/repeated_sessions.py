"""Results folders of several sessions, one each, as ReFrame leaves them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import factories

MINUTES = 60.0
PARTITION = "local:host"


def recorded(values: dict[str, float], unit: str = "GB/s", where: str = PARTITION) -> dict:
    """Build what ReFrame records of a case's metrics."""
    return {
        f"{where}:{name}": [value, 0, None, None, unit, "pass"] for name, value in values.items()
    }


def measured(
    folder: Path,
    number: int,
    values: dict[str, float],
    minutes: float,
    ids: tuple[str, ...] = ("GPU-a", "GPU-b"),
    unit: str = "GB/s",
    check: str = "stream_local",
    document: dict[str, Any] | None = None,
    **case: Any,
) -> Path:
    """Write a session of one check in a results folder of its own; returns the folder.

    :param minutes: when it began, after the first one.
    """
    results = folder / f"session-{number}"
    start = factories.SESSION_START + minutes * MINUTES
    entry = factories.case(check, perfvalues=recorded(values, unit)) | case
    factories.session(results, [entry], number, start)
    kind = "output" if entry["result"] == "pass" else "stage"
    series = [factories.series([value] * 9, unit=unit, better="higher" if unit != "us" else "lower",
                               host_clock=None) for value in values.values()
              if 0 < value < float("inf") and unit != "count"]  # fmt: skip
    content = {
        "started": _time(start + 10),
        "finished": _time(start + 20),
        "devices": [factories.device(index, unique_id=one) for index, one in enumerate(ids)],
        "series": series or [factories.series()],
    } | (document or {})
    name = entry["unique_name"]
    path = factories.case_folder(results, name, kind) / "result.json"
    factories.write(path, factories.document(**content))
    factories.write_metrics(path, entry["perfvalues"])
    return results


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def several(folder: Path, values: list[float], metric: str = "copy_worst", **more: Any):
    """Write sessions of one metric, one a minute after the other, the later half after a pause."""
    half = len(values) // 2
    return [
        measured(
            folder, number, {metric: value}, 2 * number + (60 if number >= half else 0), **more
        )
        for number, value in enumerate(values)
    ]
