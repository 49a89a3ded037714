"""`fabricheck acceptance close`: the record of an acceptance in one folder, signed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.acceptance_reading import AgreementFile, ResultsFolders, accepted
from fabricheck.core import show
from fabricheck.core.errors import UsageError


@commands.command("acceptance close")
def close(
    file: AgreementFile,
    output: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="The new folder of the record.")
    ],
    results: ResultsFolders = None,
    signatures: Annotated[
        list[str] | None,
        typer.Option(
            "--sign",
            metavar="SIGNER=KEY",
            help="Sign as a signer of the agreement with a private key of ssh; may be repeated.",
        ),
    ] = None,
) -> int:
    """Write agreement, table, verdicts, documents, limits, locks and a manifest into one folder.

    It is written whatever came of the acceptance. Exit status as for `fabricheck acceptance
    status`.
    """
    from fabricheck.judge.acceptance import closing, manifest
    from fabricheck.report import acceptance as shown
    from fabricheck.report import acceptance_verified
    from fabricheck.tools import signatures as signing

    keys = [each.partition("=") for each in signatures or ()]
    judged = accepted(file, results or [])
    record = judged.accepted.record
    names = [signer.name for signer in record.agreement.signers]
    for name, _, key in keys:
        if name not in names or not key:
            wanted = show.enumerated(names, last="or")
            raise UsageError(f"--sign {name}: write SIGNER=KEY, where the signer is {wanted}.")
        signing.require_key(Path(key))
    texts = {closing.TABLE: shown.table(record), closing.PAGE: shown.html(record)}
    closing.write(output, file, judged.folders, judged.accepted, texts)
    made = []
    for name, _, key in keys:
        made.append(output / f"{manifest.NAME}.{name}.sig")
        signing.sign(output / manifest.NAME, Path(key), made[-1])
    lines = [*shown.lines(record), *acceptance_verified.closed(output, record, made)]
    show.result(record, lines, wrapped=False)
    return record.exit_code
