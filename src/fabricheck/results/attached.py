"""Files attached to a session: outputs of amd-node-scraper, DCGM or a site's own tools.

Reports link these files; nothing reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fabricheck.results.reading import Results

#: The folder of attached files, in a session's output folder or in that of a job over many nodes.
FOLDER = "attached"


def files(results: Results) -> list[Path]:
    """Return the files attached to sessions, and to jobs over many nodes, by name."""
    folders = [path for session in results.sessions for path in session.outputs]
    folders += [job.path for job in results.jobs]
    return sorted({path for folder in folders for path in _under(folder / FOLDER)})


def _under(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.rglob("*") if path.is_file())
