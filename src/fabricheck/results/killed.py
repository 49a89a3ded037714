"""Sessions without a run report: killed ones, and documents outside any session.

A session that is still running looks the same: ReFrame writes its report at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from fabricheck.core.text import printable
from fabricheck.results import requested_nodes
from fabricheck.results.entry import Entry, no_document, read_entry
from fabricheck.results.session import Case, Session

#: The result of a check for which there is no report.
RESULT = "unknown"

#: The job script that ReFrame keeps in the case's folder, and the line that requests one node.
_SCRIPT = "rfm_job.sh"
_ON_ONE_NODE = re.compile(r"^#SBATCH --nodelist=(?P<node>[^\s,\[\]]+)$", re.MULTILINE)

#: The digest by which ReFrame tells the folders of a parameterized check apart.
_DIGEST = re.compile(r"_[0-9a-f]{8}$")

_KINDS = ("output", "stage")
_OF_A_CASE = ("SYSTEM", "PARTITION", "ENVIRON", "CHECK")


def without_report(
    name: str, results: Path, paths: Sequence[Path], node: str | None = None
) -> Session:
    """Return what a session without a run report left, or documents outside any session.

    Case and result come from the folders: SYSTEM/PARTITION/ENVIRON/CHECK, and ``unknown``. The node
    is the one that the job script requests, as it does where ReFrame distributes; there a check
    that was never submitted has no script, and is no case: its node is unknown.

    :param name: its folder in ``output`` and ``stage``, which is its start and the number of its
        process; empty for documents outside any session.
    :param results: the results folder, or the folder of the documents.
    :param paths: its documents; none where only its list of nodes is left.
    :param node: the node that the results folder is of, if any.
    """
    cases = [_case(path.parent, node) for path in paths if _is_of_case(path, results)]
    output = results / "output" / name
    if name:
        known = {path.parent for path in paths}
        distributed = (output / requested_nodes.NAME).is_file()
        for folder in sorted((results / "stage" / name).glob("/".join("*" * len(_OF_A_CASE)))):
            submitted = not distributed or _requested_node(folder) is not None
            if folder.is_dir() and folder not in known and submitted:
                cases.append(_case(folder, node))
    return Session(
        id=name,
        uuid="",
        report=None,
        hostname="",
        start=_start(name),
        end=_start(name),
        cases=tuple(cases),
        outputs=(output,) if name else (),
        paths=tuple(paths),
    )


def _start(name: str) -> float:
    try:
        return datetime.strptime(name.partition("-")[0], "%Y%m%dT%H%M%S").timestamp()
    except ValueError:
        return 0.0


def entries(session: Session) -> list[Entry]:
    """Return the documents of a session without a report, and a problem for each check that started
    and left none.
    """
    cases = {folder: case for case in session.cases for folder in case.folders}
    found = [read_entry(path, cases.pop(str(path.parent), None)) for path in session.paths]
    for folder, case in cases.items():
        why = f" in {printable(folder)}: its session was killed there, or is still running"
        found.append(no_document(case, why))
    return found


def _is_of_case(path: Path, results: Path) -> bool:
    """Whether the folders of a document name a case."""
    parts = path.relative_to(results).parts
    return parts[0] in _KINDS and len(parts) - len(_OF_A_CASE) in (2, 3)


def session_folder(path: Path, results: Path) -> str | None:
    """Return the folder in ``output`` or ``stage`` of the session that a document is of.

    None where sessions have no folders of their own, or it lies elsewhere.
    """
    parts = path.relative_to(results).parts
    if parts[0] in _KINDS and len(parts) == 3 + len(_OF_A_CASE):
        return parts[1]
    return None


def _case(folder: Path, of: str | None = None) -> Case:
    system, partition, environ, check = map(printable, folder.parts[-len(_OF_A_CASE) :])
    node = _requested_node(folder)
    # Two checks of one name on two nodes are told apart by the node.
    return Case(
        name=_DIGEST.sub("", check) if node else check,
        system=system,
        partition=partition,
        environ=environ,
        result=RESULT,
        reason=None,
        tags=frozenset(),
        folders=(str(folder),),
        node=node or of,
    )


def _requested_node(folder: Path) -> str | None:
    try:
        found = _ON_ONE_NODE.search((folder / _SCRIPT).read_text(errors="replace"))
    except OSError:
        return None
    return printable(found["node"]) if found else None
