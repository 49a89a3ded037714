"""`fabricheck site check`: what a site's partitions need, and what of it is missing here."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError

if TYPE_CHECKING:
    from fabricheck.run.site_check import Finding

Where = Annotated[
    bool | None,
    typer.Option(
        "--compute/--login",
        help="The kind of this node; by default a job around it, or devices, make it a compute "
        "node.",
    ),
]


@commands.command("site check")
def check(
    site: Annotated[
        str,
        typer.Argument(
            metavar="SITE[:PARTITION]",
            help="A partition or system of config/sites.",
            autocompletion=partition_names,
        ),
    ],
    compute: Where = None,
    as_json: AsJson = False,
) -> None:
    """Report what is missing on this node before a site's checks can run.

    Exit status 3 if something is missing.
    """
    # These read ReFrame, which other commands do without.
    from fabricheck.run import site_check
    from fabricheck.site import partitions

    machine = site_check.Machine(stated=compute)
    findings = {
        target.name: list(site_check.check(target, machine)) for target in partitions.choose(site)
    }
    kind = "compute" if machine.is_compute else "login"
    result = {
        "node": platform.node(),
        "kind": kind,
        "because": machine.because,
        "partitions": findings,
    }
    seen = f"seen from {platform.node()}, considered a {kind} node ({machine.because})"
    show.result(result, _text(seen, findings), as_json, wrapped=False)
    if any(
        finding.status == "missing"
        for of_partition in findings.values()
        for finding in of_partition
    ):
        raise typer.Exit(NotFoundError.exit_code)


def _text(seen: str, partitions: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    for name, findings in partitions.items():
        yield f"{name}, {seen}"
        yield from (f"{finding.status:<8}  {finding.says}" for finding in findings)
        counts = Counter(finding.status for finding in findings)
        yield (
            f"{name}: {counts['ok']} ok, {counts['missing']} missing, "
            f"{counts['not seen']} not seen."
        )
