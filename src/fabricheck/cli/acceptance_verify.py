"""`fabricheck acceptance verify`: whether a record is what was closed, and says what is true."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.results.requested_nodes import now

RecordFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a record.")]


@commands.command("acceptance verify")
def verify(
    folder: RecordFolder,
    keys: Annotated[
        list[Path] | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="A public key of ssh that must have signed, besides those of the agreement; may "
            "be repeated.",
        ),
    ] = None,
    agreement: Annotated[
        Path | None,
        typer.Option("--agreement", metavar="FILE", help="The agreement as you have it."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check digests and signatures of a record, and judge its documents again by its own limits.

    Exit status 15 if files are not those of its manifest, 16 if a signature is missing or of
    another key or manifest, 17 if its documents, judged again, say otherwise; 0 if all is so.
    """
    from fabricheck.judge.acceptance import closing, verifying
    from fabricheck.report import acceptance as shown
    from fabricheck.report import acceptance_verified

    made_again = {closing.TABLE: shown.table, closing.PAGE: shown.html}
    verified = verifying.verify(folder, keys or [], agreement, now(), made_again)
    show.result(verified, acceptance_verified.lines(verified), as_json, wrapped=False)
    return verified.exit_code
