"""`fabricheck every-node`: one job over many nodes, each measured by itself."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, drift, verdict
from fabricheck.cli.output import Notify
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.results import marking, marks
from fabricheck.schedulers.row import Allocation

#: The selection of checks by default.
CHOSEN = ("-t", "smoke")

#: The same of a soak, for what is to be complete on a node.
CHOSEN_OF_SOAK = ("-t", "soak")

SETTINGS = "RFM_CONFIG_FILES"


@commands.command("every-node")
def every_node(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- REFRAME ARGUMENTS",
            help="Arguments of each session besides -r; default: -t smoke.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            metavar="LIST",
            help="Nodes of the allocation, such as node[1-4,7]; default: all.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="LIST",
            help="Hosts to reach by ssh, outside any allocation, such as gpu[1-8].",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0.001,
            help="Time limit of a session in minutes; default: the rest of the job.",
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once",
            min=1,
            help="Number of sessions that read their files at the same time; default: 32, staged "
            "128.",
        ),
    ] = None,
    stage: Annotated[
        bool | None,
        typer.Option(
            "--stage/--no-stage",
            help="Whether the sessions read one archive instead of some hundred shared files; "
            "default: with more than 16 nodes.",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        bool | None,
        typer.Option(
            "--network/--no-network",
            help="Then measure what joins the nodes (the set network), in one session over all of "
            "them; default: where the site names a fabric.",
            show_default=False,
        ),
    ] = None,
    notify: Notify = None,
    soak: Annotated[
        float | None,
        typer.Option(
            "--soak",
            metavar="HOURS",
            min=0.001,
            help="On each node `fabricheck soak` of so many hours in place of one session.",
        ),
    ] = None,
    network_only: Annotated[
        bool,
        typer.Option("--network-only", help="Measure what joins the nodes, and no node by itself."),
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="COMMAND",
            help="What starts each session in a container that has the checkout, such as 'podman "
            "run ... IMAGE'.",
        ),
    ] = None,
) -> int:
    """Run a session on each node of the allocation, all at the same time.

    Use it inside an allocation that has its nodes alone, such as sbatch with --nodes=N --exclusive,
    or with --hosts. Exit status as for `fabricheck verdict`: 12 if a node or the network failed, 13
    if one of them is unstable or incomplete; and 128 plus its number if a signal ended the run.
    """
    # Without ReFrame, which each session needs, the sentence of a missing package is shown.
    importlib.import_module("reframe")
    from fabricheck.rfm import host
    from fabricheck.run.every_node import driver, staging
    from fabricheck.schedulers import table

    if hosts is not None:
        if any((nodes, minutes, at_once, stage, network, network_only, soak, within)):
            raise UsageError("--hosts goes with no other option: one session measures all hosts.")
        return _on_hosts(hosts, tuple(arguments or CHOSEN), notify)
    default = Path("results").absolute()
    mark = marking.leave(marking.new_stamp(), ["fabricheck", *sys.argv[1:]], default)
    if network_only and network is False:
        raise UsageError("--network-only and --no-network leave nothing to measure.")
    allocation = table.allocation_around(os.environ, nodes, needs_end=minutes is None)
    usable = [name for name, node in allocation.nodes.items() if node.unusable is None]
    if network_only and len(usable) < 2:
        raise UsageError(
            f"--network-only needs two nodes, but job {allocation.job} has {len(usable)} to "
            "measure."
        )
    reframe = reframe_command()
    results = host.results_folder(default)
    chosen = tuple(arguments or CHOSEN)
    driver.require_site(chosen)
    if stage is None and within is None:
        stage = len(allocation.nodes) > staging.FEW_NODES
    if network_only:
        chosen = tuple(driver.network_arguments(chosen))
    command = (reframe, "--nocolor", "-r", *chosen)
    if within is not None:
        command = in_container(
            within, command, stage or network or network_only or soak is not None
        )
        stage = network = False
    if soak is not None:
        command = soak_command(soak, arguments or (), bool(network or network_only))
        # Each round reads its files anew, hours after what was staged.
        stage, network, chosen = False, False, CHOSEN_OF_SOAK
    run = driver.Driver(
        command, allocation, results, show.line, chosen=chosen, minutes=minutes, at_once=at_once,
        stage=bool(stage), network_only=network_only,
    )  # fmt: skip
    if mark is not None:
        marks.complete(mark, job=run.folder.name)
    words = ("reframe", "-r", *chosen) if soak is None else ("fabricheck", *command[1:])
    show.line(_beginning(allocation, "all" if network_only else "each", words, run.folder))
    number = run.run()
    wanted = network_only or network
    if number is None and (wanted or (wanted is None and driver.is_joined(chosen))):
        command = (reframe, "--nocolor", "-r", *driver.network_arguments(chosen))
        limits = [run.left_s, None if minutes is None else 60 * minutes]
        left_s = min((limit for limit in limits if limit is not None), default=None)
        number = driver.measure_network(
            allocation, run.folder, run.nodes, command, left_s, show.line
        )
    if number is not None:
        raise typer.Exit(128 + number)
    if soak is not None:
        return drift.drift([str(run.folder)])
    return verdict.verdict([str(run.folder)], notify=notify)


def _beginning(allocation: Allocation, which: str, words: Sequence[str], folder: Path) -> str:
    return (
        f"{len(allocation.nodes)} nodes of job {allocation.job}, {which} by "
        f"`{shlex.join(words)}`; results in {folder}"
    )


def in_container(within: str, command: Sequence[str], other: object) -> tuple[str, ...]:
    """Return the command of a session that starts in a container.

    :param command: reframe, by its path here, and its arguments.
    :param other: whether an option says otherwise how the sessions run.
    :raises UsageError: where one does, or `within` is no command.
    """
    if other:
        raise UsageError(
            "--within starts a session of each node in its container: it goes with none of "
            "--stage, --network, --network-only and --soak."
        )
    return (*words_of(within), "reframe", *command[1:])


def words_of(within: str) -> list[str]:
    """Return the words of the command that starts a container.

    :raises UsageError: where they are none, or there is no such command here.
    """
    try:
        words = shlex.split(within)
    except ValueError as error:
        raise UsageError(f"--within '{within}' is no command ({error}).") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"--within '{within}' names no command that is here.")
    return words


def soak_command(hours: float, arguments: Sequence[str], network: bool) -> tuple[str, ...]:
    """Return the command of a soak of a node.

    :param arguments: those of ReFrame in each of its sessions.
    :param network: whether what joins the nodes was to be measured as well.
    :raises UsageError: where it was.
    """
    if network:
        raise UsageError("--soak measures each node by itself, and no network.")
    fabricheck = str(Path(sys.executable).with_name("fabricheck"))
    return (fabricheck, "soak", f"--hours={hours:g}", "--", *arguments)


def reframe_command() -> str:
    """Return the command of a session.

    :raises FabricheckError: when it, or its settings, are not there.
    """
    reframe = shutil.which("reframe")
    if reframe is None:
        raise NotFoundError("The command reframe is not on the PATH: source env.sh first.")
    if not os.environ.get(SETTINGS):
        raise UsageError(f"{SETTINGS} is not set, so ReFrame has no checks: source env.sh first.")
    return reframe


def _on_hosts(hosts: str, chosen: tuple[str, ...], notify: str | None) -> int:
    """Run one session on hosts that are reached by ssh, and judge it."""
    from fabricheck.core import nodelists
    from fabricheck.run import on_hosts

    names = nodelists.unfolded(hosts)
    command = (reframe_command(), "--nocolor", "-r", "--distribute=all", *chosen)
    name = os.environ.get(marking.ENV_SESSION) or f"hosts-{marking.new_stamp()}"
    show.line(
        f"{len(names)} hosts by ssh, in one session: `reframe -r --distribute=all "
        f"{shlex.join(chosen)}`; if this command is ended: fabricheck verdict {name}"
    )
    number = on_hosts.run(command, names, name)
    if number is not None:
        raise typer.Exit(128 + number)
    return verdict.verdict([name], notify=notify)
