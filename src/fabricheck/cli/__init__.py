"""The command line `fabricheck`: it reads and shows results; it measures nothing itself."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fabricheck
from fabricheck.cli.output import say
from fabricheck.core import garbage
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.core.vocabulary import COMMAND_EXITS, EXIT_DEFECT

_OTHERS = (f"{code} {said}" for code, said in COMMAND_EXITS.items() if code != EXIT_DEFECT)
EXIT_CODES = f"Exit codes: {'; '.join(_OTHERS)}. {EXIT_DEFECT} is {COMMAND_EXITS[EXIT_DEFECT]}."


#: The extra of pyproject.toml that installs a package which only some commands need.
EXTRAS = {
    "altair": "report",
    "jinja2": "report",
    "polars": "results",
    "reframe": "run",
    "vl_convert": "report",
}

#: The commands in the order of the help: the module of this package that adds each to `commands`,
#: and its line of the help, which needs no import.
_ALL = {
    "summary": (
        "cli.summary",
        "Show a session on one screen: status, E1 to E17, worst findings.",
    ),
    "results": ("cli.results", "List sessions, and show or validate their results."),
    "coverage": (
        "cli.coverage",
        "Show which of E1 to E17 a session ran, and why not the others.",
    ),
    "claims": (
        "papers.claims_command",
        "Show which published findings are reproduced here.",
    ),
    "report": ("cli.report", "Write the HTML page of a session."),
    "topology": ("cli.node", "Show node models, and compare a node's tools with one."),
    "nics": ("cli.nics", "Compare the NICs of this node with its node model."),
    "best-gpus": (
        "cli.node",
        "Print the best K devices of a node, or run a command on them.",
    ),
    "fidelity": (
        "papers.fidelity_command",
        "Simulate a node and compare it with published values.",
    ),
    "tools": ("cli.tools", "Run third-party benchmarks, as a check does."),
    "beside": ("beside.command", "Run third-party tools and our programs in rounds."),
    "calibrate": (
        "cli.calibrate",
        "Calibrate references of a partition from its sessions.",
    ),
    "compare": (
        "cli.compare",
        "Show what is worse, better or missing in B relative to A.",
    ),
    "export": ("cli.export", "Write results as one table."),
    "fleet": (
        "cli.fleet",
        "Show which of many nodes stand out, and what changed on them.",
    ),
    "references": (
        "cli.references",
        "Show the reference of each metric, and its source.",
    ),
    "sets": ("cli.sets", "Show the checks of each set, and their times."),
    "site-check": (
        "cli.site_check",
        "Report what is missing before a site's checks can run.",
    ),
    "first-hour": (
        "cli.first_hour",
        "Run the ten commands of the first hour, and pack their output.",
    ),
    "every-node": ("cli.every_node", "Run a session on each node of the allocation."),
    "verdict": (
        "cli.verdict",
        "Judge each node PASS, PERF-FAIL, HW-FAIL, ..., with reasons.",
    ),
    "diagnose": (
        "cli.diagnose",
        "Show which degraded components explain missed limits.",
    ),
    "fabric": ("cli.fabric", "Name the NICs, nodes and switches that are slow."),
}

#: Those whose subpackage is installed: the core does without `papers` and `beside`.
COMMANDS = {
    name: (module, line)
    for name, (module, line) in _ALL.items()
    if find_spec(f"fabricheck.{module.partition('.')[0]}") is not None
}

#: The group to which the modules below add their commands; `app`, at the end, is the command line.
commands = typer.Typer(rich_markup_mode=None)


@functools.cache
def _built(name: str) -> Any:
    """Return a command of the modules that are imported; building takes some 20 ms each time."""
    return typer.main.get_group(commands).commands[name]


class OneSentenceGroup(TyperGroup):
    """A group of commands whose errors are one sentence on stderr and an exit code.

    A command's module is imported when the command is called: importing all takes most of a second.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        importlib.import_module(f"fabricheck.{module}")
        return _built(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; with ``standalone_mode`` it ends the process."""
        garbage.collect_rarely()
        call = functools.partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return call()
        try:
            code = call()
        except FabricheckError as error:
            say(str(error))
            sys.exit(error.exit_code)
        except ModuleNotFoundError as missing:
            package = str(missing.name).partition(".")[0]
            if package not in EXTRAS:
                raise
            say(
                f"This command needs the Python package {package}, which is not installed: "
                f"install fabricheck[{EXTRAS[package]}], or copy the results to a machine that "
                "has it."
            )
            sys.exit(NotFoundError.exit_code)
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            say(f"The operating system refused{where}: {error.strerror or error}.")
            sys.exit(FabricheckError.exit_code)
        except Exception as error:
            # Typer's own errors of usage; their class has moved between its versions.
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            say(f"{message().rstrip('.')}; see fabricheck --help.")
            sys.exit(UsageError.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=OneSentenceGroup,
    help="Read and show the results of fabricheck's checks.",
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fabricheck {fabricheck.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Read and show the results of fabricheck's checks."""
    if context.invoked_subcommand is None:
        importlib.import_module("fabricheck.cli.today").show()
