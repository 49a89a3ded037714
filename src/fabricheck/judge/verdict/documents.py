"""Writing of verdicts: one file for each node, and one for all nodes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import fabricheck
from fabricheck.core import models
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.nodelists import is_several, natural
from fabricheck.core.text import read_text
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.core.whole_files import write_all
from fabricheck.judge.verdict import alike, model
from fabricheck.judge.verdict.model import NodeVerdict, Row, Verdict
from fabricheck.judge.verdict.rules import FAILED, STATUSES
from fabricheck.results import archive
from fabricheck.results.reading import Results
from fabricheck.results.requested_nodes import now

#: The folder of verdicts in a results folder, or in the folder of a job over many nodes.
VERDICTS = "verdicts"

#: The file of all nodes.
WHOLE = "verdict.json"


def session_verdict(of: str, verdicts: Iterable[NodeVerdict]) -> Verdict:
    """Return the verdict on all nodes, the worst first, and the differences among them."""
    ordered = sorted(
        verdicts, key=lambda verdict: (STATUSES.index(verdict.status), natural(verdict.node))
    )
    statuses = {verdict.status for verdict in ordered}
    good: bool = statuses <= {"PASS"}
    rows = [
        Row(
            **{name: getattr(verdict, name) for name in Row.model_fields if name != "file"},
            file=file,
        )
        for verdict, file in zip(ordered, file_names(ordered), strict=True)
    ]
    networks = [row for row in rows if is_several(row.node)]
    nodes = [row for row in rows if not is_several(row.node)]
    return Verdict(
        of=of,
        made=now(),
        by=fabricheck.__version__,
        exit_code=EXIT_NODE_FAILED if statuses & FAILED else EXIT_GOOD if good else EXIT_NODE_OPEN,
        counts={status: sum(node.status == status for node in nodes) for status in STATUSES},
        nodes=nodes,
        networks=networks,
        notes=[
            *filter(
                None,
                [model.provisional_note(p for verdict in ordered for p in verdict.provisional)],
            ),
            *(difference.note for difference in alike.differences(ordered)),
        ],
    )


def folder(results: Results) -> Path:
    """Return the default folder of a verdict.

    For several sources it is the folder of the last. For an archive it lies beside the archive.
    """
    last = results.parts[-1] if results.parts else results
    if last.archive is not None:
        return last.archive.parent / VERDICTS / archive.stem(last.archive)
    return last.home / VERDICTS if last.job is not None else last.home / VERDICTS / last.name


def file_names(verdicts: Sequence[NodeVerdict]) -> list[str]:
    """Return a distinct file name for each node: its own name where that is safe."""
    found: list[str] = []
    for verdict in verdicts:
        where = f".simulated.{verdict.simulated.partition}" if verdict.simulated else ""
        plain = f"{verdict.node}{where}"
        safe = (
            re.sub(r"[^A-Za-z0-9._-]+", "-", plain.replace(":", "-"))[:100].lstrip(".-_") or "node"
        )
        if safe != plain.replace(":", "-") or f"{safe}.json" in (*found, WHOLE):
            safe += f"-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
        found.append(f"{safe}.json")
    return found


def write_new(base: Path, verdicts: Sequence[NodeVerdict], total: Verdict) -> Path:
    """Write all documents where no other verdict is: into a folder, else into its ``2``, ``3``, ...

    An equal verdict, whenever it was made, is not written again.

    :returns: the document of all nodes.
    :raises NotFoundError: when they cannot be written.
    """
    place, number, made = base, 1, as_json(total)
    while (place / WHOLE).exists():
        # It may differ in when and by which version it was made.
        if {**_earlier(place), "made": made["made"], "by": made["by"]} == made:
            return place / WHOLE
        number += 1
        place = base / str(number)
    return write(place, verdicts, total)


def _earlier(folder: Path) -> dict[str, Any]:
    """Return the content of ``verdict.json`` in a folder; empty where it cannot be read."""
    try:
        content = models.parse_json(read_text(folder / WHOLE), folder / WHOLE)
    except (NotFoundError, InvalidInputError):
        return {}
    return content if isinstance(content, dict) else {}


def write(folder: Path, verdicts: Sequence[NodeVerdict], total: Verdict) -> Path:
    """Write all documents, or none; documents of an earlier verdict on other nodes are removed.

    :returns: the document of all nodes.
    :raises NotFoundError: when they cannot be written.
    """
    by_subject = {(verdict.node, verdict.simulated): verdict for verdict in verdicts}
    texts = {
        folder / row.file: _text(by_subject[row.node, row.simulated])
        for row in (*total.nodes, *total.networks)
    } | {folder / WHOLE: _text(total)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{folder} cannot be created ({error.strerror}).") from None
    before = _files_of(folder)
    write_all(texts)
    for name in before - {path.name for path in texts}:
        (folder / name).unlink(missing_ok=True)
    return folder / WHOLE


def _files_of(folder: Path) -> set[str]:
    """Return the files of nodes that an earlier verdict in a folder lists, in any version."""
    earlier = _earlier(folder)
    ours = str(earlier.get("form")).startswith("fabricheck-verdict-")
    lists = [earlier.get("nodes"), earlier.get("networks")] if ours else []
    # A list that was changed by hand may have anything.
    return {
        row["file"]
        for rows in lists
        if isinstance(rows, list)
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("file"), str)
        if Path(row["file"]).name == row["file"] and (folder / row["file"]).is_file()
    }


def _text(document: NodeVerdict | Verdict) -> str:
    return json.dumps(as_json(document), indent=1, ensure_ascii=False) + "\n"


def as_json(document: NodeVerdict | Verdict) -> Any:
    """Return a document as JSON types, its form first."""
    return {"form": document.form} | document.model_dump(mode="json")
