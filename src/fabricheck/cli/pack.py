"""`fabricheck results pack`: results as an archive, to send: all of them, or a node's."""

from __future__ import annotations

import os
import platform
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import Names, archive_target, say
from fabricheck.core import show
from fabricheck.core.errors import UsageError
from fabricheck.report.vendor import files as vendor_files
from fabricheck.results import archive, requested_nodes
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import read
from fabricheck.tools.parts import parts
from fabricheck.tools.topology.host import scheduler_node


@commands.command("results pack")
def pack(
    what: Names = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The archive (.tar.gz); default: results-NODE-TIME.tar.gz."
        ),
    ] = None,
    vendor: Annotated[
        str | None,
        typer.Option(
            "--vendor",
            metavar="NODE",
            help="Pack instead what a vendor needs of a node: verdict, ticket, parts, documents "
            "without names of users and paths.",
        ),
    ] = None,
) -> None:
    """Pack all sessions and jobs of the results folder into one archive, to send.

    It has documents, run reports, outputs of checks and node models, and nothing else of the
    folder. The commands results show, verdict, limits calibrate and compare accept it like the
    folder. Exit status 3 if there is no session or the archive cannot be written.
    """
    if vendor is not None:
        _for_vendor(what or [], vendor, archive_target(output, "vendor", vendor))
        return
    if what:
        raise UsageError("Names of results require --vendor: all sessions are packed otherwise.")
    folder = ResultsFolder.default()
    if not folder.sessions and not any(requested_nodes.jobs_of(folder.path)):
        raise folder.no_session()
    target = archive_target(output, "results", platform.node())
    inside = f"{archive.stem(target)}/{archive.RESULTS}"
    archive.pack(folder.path, target, archive.OF_RESULTS, inside)
    show.line(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")


def _for_vendor(what: list[str], node: str, target: Path) -> None:
    """Pack what a vendor needs of a node; serial numbers only where this machine is that node."""
    results = read(what)
    if any(observed.on for observed in results.observed):
        results = results.only(on=[node])
    documents = [entry.document for entry in results.entries if entry.document is not None]
    devices = [device for document in documents for device in document["devices"]]
    addresses = {device["pci_address"] for device in devices if device["pci_address"] is not None}
    here = node in (scheduler_node(), platform.node())
    texts = vendor_files(results, node, parts(sorted(addresses)) if here else None)
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        archive.pack(Path(folder), target, ("*", "documents/*"), archive.stem(target))
    if not here:
        say(f"Serial numbers and slots are missing: this machine is not {node}.")
    show.line(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")
