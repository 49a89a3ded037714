"""What a name on the command line stands for in a results folder."""

from __future__ import annotations

from datetime import datetime

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.results import jobs, nodes_asked
from fabricheck.results.folder import UNREPORTED, ResultsFolder
from fabricheck.results.jobs import Job
from fabricheck.results.killed import Killed
from fabricheck.results.session import Session

#: What can be named: a session, what one left that has no report, a job over many nodes.
Meant = Session | Killed | Job


def named(folder: ResultsFolder, name: str) -> Meant:
    """Return what has a name: ``latest``, an id, the folder of a killed session, a job's number.

    :raises NotFoundError: when there is none of that name, or several.
    :raises InvalidInputError: when a report or ``nodes.json`` is not readable.
    """
    if name == "latest":
        return latest(folder)
    try:
        return folder.session(name)
    except NotFoundError:
        for one in without_report(folder):
            if one.name == name:
                return one
        job = jobs.named(folder.path, name)
        if job is not None:
            return job
        raise


def latest(folder: ResultsFolder) -> Session | Job:
    """Return what began last: a session with a report, or a job over many nodes.

    :raises FabricheckError: as `ResultsFolder.latest` where no job is later than all sessions, and
        when a ``nodes.json`` that was written after all that is not readable.
    """
    found, unreadable = jobs.all_of(folder.path)
    last = found[0] if found else None
    starts = [one.start for one in found] + [one.start for one in folder.sessions]
    began = max(starts, default=0.0)
    for written, problem in unreadable:
        if written > began:
            raise problem
    if last is None or any(session.start > last.start for session in folder.sessions):
        return folder.latest()
    if folder.unreadable_since(last.start):
        folder.latest()  # says which, unless a readable one was written after it
    return last


def began_last(folder: ResultsFolder) -> Meant:
    """Return what began last, also where it has no report.

    :raises FabricheckError: as `latest`.
    """
    killed = max(without_report(folder), key=lambda one: named_start(one.name), default=None)
    try:
        last = latest(folder)
    except NotFoundError:
        if killed is None:
            raise
        return killed
    except InvalidInputError as problem:
        if killed is None:
            raise
        # A full disk cuts the report, and leaves what was measured before.
        raise InvalidInputError(
            f"{problem} What the last session without a report left has the name {killed.name}."
        ) from None
    return killed if killed is not None and named_start(killed.name) > last.start else last


def without_report(folder: ResultsFolder) -> list[Killed]:
    """Return the sessions that left documents, or the names of their nodes, and no report."""
    found = {one.name: one for one in folder.killed() if one.name != UNREPORTED}
    reported = {path.name for session in folder.sessions for path in session.outputs}
    for asked in folder.path.glob(f"output/*/{nodes_asked.NAME}"):
        name = asked.parent.name
        if name not in reported:
            found.setdefault(name, Killed(name, folder.path, (), folder.node))
    return list(found.values())


def named_start(name: str) -> float:
    """Return when a session began by the name of its folders; 0 of one that is named otherwise."""
    try:
        return datetime.strptime(name.partition("-")[0], "%Y%m%dT%H%M%S").timestamp()
    except ValueError:
        return 0.0
