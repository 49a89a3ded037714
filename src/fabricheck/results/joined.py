"""Several sessions joined into one: a pipeline runs each check in a session and a folder of its
own.

Whatever reads a session (the report, claims, a comparison) then needs no knowledge of the pipeline.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.models import read_model
from fabricheck.core.show import listed
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_whole
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session
from fabricheck.results.session_checks import (
    CHECKS_FILE,
    SessionChecks,
    joined_checks,
    write_checks,
)
from fabricheck.site import software

#: Fields of a case that name a folder, and the part of the results folder that it is in.
_FOLDERS = {"outputdir": "output", "stagedir": "stage"}

#: The counts that ReFrame keeps of each run.
_COUNTED = ("num_cases", "num_failures", "num_aborted", "num_skipped")


def join(folders: Sequence[Path], target: Path, whole: str | None = None) -> tuple[Path, list[str]]:
    """Write a results folder whose only session joins the latest one of each results folder.

    A missing folder, or one without a readable session, is reported here and in the joined session.

    :param folders: results folders; they stay unchanged.
    :param target: a folder that does not exist yet, or is empty.
    :param whole: the set that all sessions together are; no session of a single check tells it.
    :returns: the report of all sessions, and sentences about what is missing from it.
    :raises NotFoundError: when none of the folders has a session, or the target cannot be written.
    :raises InvalidInputError: when the target is not empty, or the sessions were run with different
        software, so that no record fits them all.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"{target} already exists and is not empty: name another folder.")
    sessions, lacking = [], []
    for folder in folders:
        try:
            results = ResultsFolder(folder)
            session = results.latest()
            for killed in results.unreported()[0][:1]:
                if results.order(killed) > results.order(session):
                    raise NotFoundError(
                        f"session {killed.id} began after {session.id} and has no report: it was "
                        "killed, or is still running."
                    )
            sessions.append((folder, session))
        except (NotFoundError, InvalidInputError) as error:
            lacking.append(f"{folder} has no usable session: {error}")
    if not sessions:
        raise NotFoundError("\n".join(["There is no session to join.", *lacking]))
    _require_same_software(sessions)
    reports = [json.loads(read_text(session.report)) for _, session in sessions if session.report]
    try:
        for (folder, _), report in zip(sessions, reports, strict=True):
            for part in _FOLDERS.values():
                # Files of other sessions in it would belong to none.
                name = _folder_name(report["session_info"].get(f"prefix_{part}") or "", part)
                if (folder / part / name).is_dir():
                    shutil.copytree(folder / part / name, target / part / name, dirs_exist_ok=True)
        outputs_of_all = [output for _, session in sessions for output in session.outputs]
        of_software = [place / software.FOLDER for place in outputs_of_all]
        recorded = [folder for folder in of_software if folder.is_dir()]
        if recorded:
            # It may be there already, from an output folder that sessions share.
            joined_software = target / "output" / software.FOLDER
            shutil.copytree(recorded[0], joined_software, dirs_exist_ok=True)
        records = [
            read_model(place / CHECKS_FILE, SessionChecks)
            for place in outputs_of_all
            if (place / CHECKS_FILE).is_file()
        ]
        if records:
            write_checks(target / "output", joined_checks(records))
        (target / "reports").mkdir(parents=True)
    except (OSError, shutil.Error) as error:
        raise NotFoundError(f"{target} cannot be written: {error}") from None
    path = target / "reports" / "run-0.json"
    joined = _joined_report(reports, target.resolve())
    joined["session_info"]["joined"].update(set=whole, lacking=lacking)
    write_whole(path, json.dumps(joined, indent=1) + "\n")
    return path, lacking


def _joined_report(reports: Sequence[Mapping[str, Any]], target: Path) -> dict[str, Any]:
    first, infos = reports[0], [report["session_info"] for report in reports]
    start = min(info["time_start_unix"] for info in infos)
    end = max(info["time_end_unix"] for info in infos)
    rounds = max(len(report["runs"]) for report in reports)
    hosts = dict.fromkeys(info["hostname"] for info in infos)
    return {
        **first,
        "session_info": {
            **first["session_info"],
            "uuid": str(uuid.uuid4()),
            "joined": {"sessions": [info["uuid"] for info in infos]},
            "hostname": listed(hosts),
            "time_start_unix": start,
            "time_end_unix": end,
            "time_elapsed": end - start,
            **{f"prefix_{part}": str(target / part) for part in _FOLDERS.values()},
        },
        "runs": [_round(reports, number, target) for number in range(rounds)],
    }


def _round(reports: Sequence[Mapping[str, Any]], number: int, target: Path) -> dict[str, Any]:
    # An attempt that ReFrame repeated is the same attempt in each session.
    those = [report for report in reports if len(report["runs"]) > number]
    runs = [report["runs"][number] for report in those]
    return {
        **runs[0],
        **{name: sum(run.get(name) or 0 for run in runs) for name in _COUNTED},
        "testcases": [
            # The folders are those of the joined session.
            {**case, **dict(_places(case, report["session_info"], target))}
            for report, run in zip(those, runs, strict=True)
            for case in run["testcases"]
        ],
    }


def _places(
    case: Mapping[str, Any], info: Mapping[str, Any], target: Path
) -> Iterator[tuple[str, str]]:
    for key, part in _FOLDERS.items():
        base, recorded = info.get(f"prefix_{part}") or "", case.get(key)
        if base and recorded and Path(recorded).is_relative_to(base):
            yield (
                key,
                str(target / part / _folder_name(base, part) / Path(recorded).relative_to(base)),
            )


def _folder_name(base: str, part: str) -> str:
    """Return a session's own folder, the last part of ReFrame's prefix; ``""`` without one."""
    return "" if Path(base).name == part else Path(base).name


def _require_same_software(sessions: Sequence[tuple[Path, Session]]) -> None:
    reports = grouped(
        (tuple(software.sentences(session.outputs, session.start, session.end)), folder)
        for folder, session in sessions
    )
    if len(reports) > 1:
        (says, (first, *_)), (other_says, (other, *_)), *_ = reports.items()
        raise InvalidInputError(
            f"{first} and {other} ran with different software, so they cannot be joined: "
            f"{' '.join(says) or 'nothing is recorded'} | "
            f"{' '.join(other_says) or 'nothing is recorded'}"
        )
