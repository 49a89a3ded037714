"""The command line `fabricheck`: it reads and shows results; it measures nothing itself."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fabricheck
from fabricheck.cli.output import say
from fabricheck.core import processes
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

#: The groups of commands, with their lines of the help.
GROUPS = {
    "results": "Sessions and documents: list, show, check and export them.",
    "node": "Node models, and what the drivers of a node report.",
    "limits": "What each metric must reach, and where that comes from.",
    "site": "A site before its first measurement.",
    "network": "NICs, and what is slow between nodes.",
    "papers": "Comparison with publications.",
    "beside": "Third-party tools beside our programs.",
}

#: The module that adds each command to `commands`, and its line of the help, which needs no import.
_ALL = {
    "verdict": ("cli.verdict", "Judge each node PASS, PERF-FAIL, HW-FAIL, ..., with reasons."),
    "diagnose": ("cli.diagnose", "Show which degraded components explain missed limits."),
    "report": ("cli.report", "Write the HTML page of a session."),
    "summary": ("cli.summary", "Show a session on one screen: status, E1 to E17, worst findings."),
    "compare": ("cli.compare", "Show what is worse, better or missing in B relative to A."),
    "every-node": ("cli.every_node", "Run a session on each node of the allocation."),
    "fleet": ("cli.fleet", "Show which of many nodes stand out, and what changed on them."),
    "results list": ("cli.results_list", "List the sessions, latest first."),
    "results show": ("cli.results", "Show what was measured."),
    "results coverage": ("cli.coverage", "Show which of E1 to E17 a session ran, and why not all."),
    "results validate": ("cli.results", "Report whether documents are valid and complete."),
    "results export": ("cli.export", "Write results as one table, or as OpenMetrics."),
    "results join": ("cli.results", "Join the sessions of several results folders into one."),
    "results osu": ("cli.results_osu", "Compare the program mpi with OSU Micro-Benchmarks."),
    "results pack": ("cli.export", "Pack all sessions into one archive, to send."),
    "results record": ("cli.record", "Run third-party benchmarks, as a check does."),
    "node show": ("cli.node", "Show a node model, or what files or drivers tell of a node."),
    "node compare": ("cli.node", "Compare a node model with the drivers of this machine."),
    "node draft": ("cli.node_files", "Draft a node model from the drivers of this machine."),
    "node record": ("cli.record", "Write the comparison to a result document, as a check does."),
    "node best-gpus": ("cli.node", "Print the best K devices of a node."),
    "node platform": ("cli.node_files", "Print the platform of a node for the simulator."),
    "limits show": ("cli.references", "Show the reference of each metric, and its source."),
    "limits check": ("cli.references", "Check the reference files: each limit and its source."),
    "limits calibrate": ("cli.calibrate", "Calibrate references of a partition from its sessions."),
    "limits transfer": ("cli.limits", "Use a calibrated partition's record for another one."),
    "limits noise": ("cli.limits", "Show how much repeated measurements differ."),
    "site check": ("cli.site_check", "Report what is missing before a site's checks can run."),
    "site first-hour": (
        "cli.first_hour",
        "Run the first hour's ten commands, and pack the output.",
    ),
    "site sets": ("cli.sets", "Show the checks of each set, and their times."),
    "network nics": ("cli.nics", "Compare the NICs of this node with its node model."),
    "network record": ("cli.record", "Write that to a result document, as a check does."),
    "network fabric": ("cli.fabric", "Name the NICs, nodes and switches that are slow."),
    "papers claims": (
        "papers.claims_command",
        "Show which published findings are reproduced here.",
    ),
    "papers fidelity": (
        "papers.fidelity_command",
        "Compare a simulated node with published values.",
    ),
    "beside rounds": ("beside.command", "Run third-party tools and our programs in rounds."),
    "beside table": ("beside.command", "Compare recorded rounds."),
}

#: Those whose subpackage is installed: the core does without `papers` and `beside`.
COMMANDS = {
    name: (module, line)
    for name, (module, line) in _ALL.items()
    if find_spec(f"fabricheck.{module.partition('.')[0]}") is not None
}

#: The sections of the help.
SECTIONS = {
    "Every day": ("verdict", "diagnose", "report", "summary", "compare"),
    "Many nodes": ("every-node", "fleet"),
    "Groups (fabricheck GROUP --help)": tuple(
        group for group in GROUPS if any(name.startswith(f"{group} ") for name in COMMANDS)
    ),
}

#: The group to which the modules above add their commands; `app`, at the end, is the command line.
commands = typer.Typer(rich_markup_mode=None)


@functools.cache
def _built(name: str) -> Any:
    """Return a command of the modules that are imported; building takes some 20 ms each time."""
    module, _ = COMMANDS[name]
    importlib.import_module(f"fabricheck.{module}")
    return typer.main.get_group(commands).commands[name]


class OneSentenceGroup(TyperGroup):
    """The command line, or a group of commands; its errors are one sentence on stderr and an exit
    code.

    A command's module is imported when the command is called: importing all takes most of a second.
    """

    @property
    def sections(self) -> Mapping[str, Sequence[str]]:
        """The sections of the help, with the names of their commands."""
        first = f"{self.name} "
        inside = [name.removeprefix(first) for name in COMMANDS if name.startswith(first)]
        return {"Commands": inside} if self.name in GROUPS else SECTIONS

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands and groups."""
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command or a group, or None if there is none of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name in GROUPS:
            return OneSentenceGroup(name=cmd_name, help=GROUPS[cmd_name], rich_markup_mode=None)
        return _built(self._whole(cmd_name))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name, GROUPS.get(name) or COMMANDS[self._whole(name)][1]) for name in names]
                )

    def _whole(self, name: str) -> str:
        return f"{self.name} {name}" if self.name in GROUPS else name

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
        processes.collect_rarely()
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
            context = getattr(error, "ctx", None)
            command = "fabricheck" if context is None else context.command_path
            say(f"{message().rstrip('.')}; see {command} --help.")
            sys.exit(UsageError.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="fabricheck",
    cls=OneSentenceGroup,
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
    """Read and show the results of fabricheck's checks; reframe --mode=node -r measures a node."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
