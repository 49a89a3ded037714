"""`fabricheck acceptance status`: criteria by nodes, and what to run next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.acceptance_reading import AgreementFile, ResultsFolders, accepted
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import UsageError
from fabricheck.core.whole_files import write_whole


@commands.command("acceptance status")
def status(
    file: AgreementFile,
    results: ResultsFolders = None,
    page: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the page (.html)."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show which node has met, missed or not yet measured which agreed criterion.

    Exit status 12 if a node missed one without a waiver or too many failed at first, 13 if some are
    not yet measured.
    """
    from fabricheck.report import acceptance as shown

    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{page}: the page is HTML; the name must end with .html or .htm.")
    record = accepted(file, results or []).accepted.record
    show.result(record, shown.lines(record), as_json, wrapped=False)
    if page is not None:
        write_whole(page, shown.html(record))
        if not as_json:
            show.line(f"Page: {page}")
    return record.exit_code
