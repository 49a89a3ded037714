"""`fabricheck results validate`: whether documents are valid and complete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.cli.results import choose, entries_of
from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.results.entry import Entry, read_entry
from fabricheck.results.folder import find_documents
from fabricheck.results.reading import read


@commands.command("results validate")
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|FOLDER|SESSION]...",
            help="Documents, folders (all documents below them), or as for show; default: the "
            "latest.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Report for each document whether it is valid and complete, in one sentence.

    Exit status 4 if one is invalid or incomplete, 3 if one is missing or there is none.
    """
    named = [entry for name in names or () for entry in _to_validate(name)]
    entries = named if names else entries_of(read())
    verdicts = [_verdict(entry) for entry in entries]
    show.result(verdicts, (verdict["says"] for verdict in verdicts), as_json, wrapped=False)
    if not entries:
        raise NotFoundError("There is no result document in the latest session.")
    return max(int(verdict["exit_code"]) for verdict in verdicts)


def _to_validate(name: str) -> list[Entry]:
    path = Path(name)
    try:
        documents = find_documents(path) if path.is_dir() else ()
        return [*map(read_entry, documents)] or entries_of(choose(name))
    except FabricheckError as problem:
        return [Entry(None, path, None, problem)]


def _verdict(entry: Entry) -> dict[str, Any]:
    document = entry.document
    if entry.problems or document is None:
        problem = next(iter(entry.problems), FabricheckError(f"{entry.path}: cannot be read."))
        return {"path": entry.path, "exit_code": problem.exit_code, "says": str(problem)}
    differences, faults = document.get("differences"), listed(document["faults_injected"])
    measured = f"{len(document['series'])} series"
    if differences is not None:
        number = count(len(differences), "difference") if differences else "no differences"
        measured = f"{number} from the node model"
    text = (
        f"{document['program']['name']}, {measured}, {document['clock']}, outcome "
        f"{document['outcome']['status']}{f', with injected faults ({faults})' if faults else ''}"
    )
    complete = document["complete"]
    judged = "valid" if complete else "valid but incomplete"
    return {
        "path": entry.path,
        "exit_code": EXIT_GOOD if complete else InvalidInputError.exit_code,
        "says": f"{entry.path}: {judged} ({text}).",
    }
