"""`fabricheck network nics`: the NICs of this node, compared with its node model."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Devices, FabricName
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import EXIT_DIFFERENT, EXIT_NODE_OPEN
from fabricheck.node import load
from fabricheck.node.fabric import load_fabric
from fabricheck.tools.nic_comparison import compare, require_nics
from fabricheck.tools.nics import read_nics
from fabricheck.tools.topology.host import scheduler_node

#: The folder with ``sys``, ``dev`` and ``usr``.
SYSTEM = Path("/")

Model = Annotated[str, typer.Argument(help="A node model with NICs: its name, or a YAML file.")]


@commands.command("network nics")
def check_command(
    model: Model,
    fabric: FabricName = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Print a line for each finding about this node's NICs: for people, prologs and health checks.

    NICs that the model lacks or names otherwise have a line that begins with "Note", too.

    It takes about a second, measures nothing, writes nothing, and needs no root. Exit status 0 if
    all is as in the model, 8 if a NIC differs, 13 if a setting keeps messages from one, 3 if this
    machine shows no network or the model has no NICs, 4 if the state or the speed of a NIC cannot
    be read.
    """
    expected = load(model, devices=devices)
    require_nics(expected)
    network = None if fabric is None else load_fabric(fabric)
    node = scheduler_node() or platform.node()
    nics = read_nics(node, network, SYSTEM)
    comparison = compare(node, expected, nics, network, SYSTEM)
    names = [
        f"{pair.nic['name']} ({pair.expected.name})" if pair.is_renamed else pair.nic["name"]
        for pair in comparison.pairs
    ]
    differences = [difference.sentence for difference in comparison.differences]
    result = {
        "node": node,
        "model": expected.name,
        "fabric": None if network is None else network.name,
        "differences": differences,
        "settings": comparison.settings,
        "unread": comparison.unread,
        "notes": comparison.notes,
        "versions": comparison.versions,
        "nics": nics,
    }
    good = f"{node}: {show.listed(names)} are as in {expected.name}."
    findings = [*differences, *comparison.settings, *comparison.unread] or [good]
    notes = [f"Note: {note}." for note in comparison.unlike]
    show.result(result, [*findings, *notes], as_json, wrapped=False)
    if differences:
        raise typer.Exit(EXIT_DIFFERENT)
    if comparison.settings:
        raise typer.Exit(EXIT_NODE_OPEN)
    if comparison.unread:
        raise typer.Exit(InvalidInputError.exit_code)
