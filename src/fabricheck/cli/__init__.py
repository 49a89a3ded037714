"""The command line `fabricheck`: it reads and shows results; it measures nothing itself."""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import fabricheck
from fabricheck.cli.listing import COMMANDS, EXIT_CODES, EXTRAS, GROUPS, SECTIONS
from fabricheck.cli.output import say
from fabricheck.core import processes, show
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError

#: The group to which the listed modules add their commands; `app`, at the end, is the command line.
commands = typer.Typer(rich_markup_mode=None)


@functools.cache
def _built(name: str) -> Any:
    """Return a command of the modules that are imported; building takes some 20 ms each time."""
    module, _ = COMMANDS[name]
    importlib.import_module(f"fabricheck.{module}")
    return typer.main.get_group(commands).commands[name]


@contextlib.contextmanager
def _ending_with_its_reader() -> Iterator[None]:
    """End quietly, with the status of a broken pipe, when nobody reads what a command still does.

    A result that is only shown is complete: `show.result` keeps its exit code.
    """
    try:
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        show.discard_output()
        sys.exit(128 + signal.SIGPIPE)


class OneSentenceGroup(TyperGroup):
    """The command line, or a group of commands, whose errors are one sentence and an exit code.

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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named; of a misspelt one the error has its like."""
        names = self.list_commands(ctx)
        if args and args[0] not in names:
            in_groups = [name for name in COMMANDS if name.split()[-1] == args[0]]
            close = [*difflib.get_close_matches(args[0], names), *in_groups]
            meant = f" Did you mean {show.enumerated(close, last='or')}?" if close else ""
            raise UsageError(
                f"There is no command '{args[0]}'.{meant} See {ctx.command_path} --help."
            )
        return super().resolve_command(ctx, args)

    def _whole(self, name: str) -> str:
        return f"{self.name} {name}" if self.name in GROUPS else name

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments; the help is written here."""
        with _ending_with_its_reader():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Around this typer ends with 1 when nobody reads the output."""
        with _ending_with_its_reader():
            return super().invoke(ctx)

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run the command line; with ``standalone_mode`` it ends the process."""
        processes.collect_rarely()
        call = functools.partial(super().main, *arguments, **options | {"standalone_mode": False})
        if not standalone_mode:
            return call()
        with _ending_with_its_reader():
            self._end(call)

    def _end(self, call: Callable[[], Any]) -> NoReturn:
        """Call a command, and end the process with its exit code or that of its error."""
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
            command = getattr(getattr(error, "ctx", None), "command_path", "fabricheck")
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
