"""`fabricheck acceptance repeat`: the commands that build what a record was measured with."""

from __future__ import annotations

from fabricheck.cli import commands
from fabricheck.cli.acceptance_verify import RecordFolder
from fabricheck.core import show
from fabricheck.core.models import read_model


@commands.command("acceptance repeat")
def repeat(folder: RecordFolder) -> None:
    """Print commands: they build the same commit, lock and programs beside today's, and compare.

    Nothing is run.
    """
    from fabricheck.judge.acceptance import closing
    from fabricheck.judge.acceptance.model import AcceptanceRecord
    from fabricheck.report import acceptance_verified

    record = read_model(folder / closing.RECORD, AcceptanceRecord)
    show.result(record, acceptance_verified.repeat(folder, record), wrapped=False)
