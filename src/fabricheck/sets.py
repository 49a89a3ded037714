"""The sets of checks: smoke, node and full, what each may take, and which one a session ran."""

from __future__ import annotations

import argparse
import functools
import shlex
from dataclasses import dataclass
from importlib import resources
from typing import Any, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

#: Where no option chooses: the checks that run only if asked for are in no set.
EVERYTHING = "full"


_FLAGS = ("--failed", "--cpu-only", "--gpu-only")

#: ReFrame's other options that leave checks out, each by its names.
OTHERS = (
    ("-x", "--exclude"),
    ("-T", "--exclude-tag"),
    ("-E", "--filter-expr"),
    ("-p", "--prgenv"),
    ("--maintainer",),
    ("--restore-session",),
    *((flag,) for flag in _FLAGS),
)


class CheckSet(BaseModel):
    """One set.

    limit_s: what it may take on a node in s, None for no limit. shows, not_: what one that passed
    proves, and what it does not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit_s: float | None = Field(gt=0)
    shows: str
    not_: str = Field(alias="not")


@dataclass(frozen=True)
class Choice:
    """What chose the checks of a session.

    words: the options that did, as they were given (``-t smoke``). set: the set that it is the
    whole of; None for a part of one, or what no set is.
    """

    words: tuple[str, ...]
    set: str | None


@dataclass(frozen=True)
class Given:
    """The options of ReFrame that chose the checks of a session, in the form of their values.

    others: what else left checks out, each with its option (``-x rccl``).
    """

    tags: tuple[str, ...]
    mode: str | None
    names: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def in_part(self) -> bool:
        """Whether checks of the tags or of the mode were left out on purpose."""
        return bool(self.names or self.others)

    @property
    def words(self) -> tuple[str, ...]:
        """All of them, as they can be given."""
        mode = () if self.mode is None else (f"--mode={self.mode}",)
        tags = (f"-t {tag}" for tag in self.tags)
        return (*mode, *tags, *(f"-n {name}" for name in self.names), *self.others)


@functools.cache
def known() -> dict[str, CheckSet]:
    """Return the sets by name, from the shortest to the longest."""
    text = resources.files("fabricheck").joinpath("sets.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, CheckSet]).validate_python(yaml.safe_load(text))


def modes() -> list[dict[str, Any]]:
    """Return ReFrame's modes: one for each set, with what chooses its tag and no other."""
    return [{"name": name, "options": [f"--tag=^{name}$"]} for name in known()]


def given(command: str) -> Given | None:
    """Return the options that chose the checks of a session; None where they can not be read.

    :param command: how ReFrame was called, as its run report has it.
    """
    try:
        _, *arguments = shlex.split(command)
        found, _ = _parser().parse_known_args(arguments)
    except ValueError:
        return None
    return Given(
        tags=tuple(found.tag),
        mode=found.mode,
        names=tuple(found.name),
        others=tuple(
            f"{names[0]} {value}".rstrip() for names in OTHERS for value in getattr(found, names[0])
        ),
    )


def chosen(command: str) -> Choice:
    """Return what chose the checks of a session: of a command that can not be read, no set."""
    options = given(command)
    if options is None:
        return Choice((), None)
    named = {tag.removeprefix("^").removesuffix("$") for tag in options.tags}
    if options.mode is not None:
        named.add(options.mode)
    # A check must have all of several tags, so the shortest set is what remains.
    whole = next((name for name in known() if name in named), None) if named else EVERYTHING
    if options.in_part or not named <= known().keys():
        whole = None
    return Choice(options.words, whole)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


@functools.cache
def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False)
    # Of one letter, so that -rt smoke is read as ReFrame reads it.
    for flag in ("-r", "-q", "-R", "-v"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--mode")
    parser.add_argument("-t", "--tag", action="append", default=[])
    parser.add_argument("-n", "--name", action="append", default=[])
    for names in OTHERS:
        how: dict[str, Any] = {"action": "append"}
        if names[0] in _FLAGS:
            how = {"action": "append_const", "const": ""}
        elif names[0] == "--restore-session":
            how |= {"nargs": "?", "const": ""}
        parser.add_argument(*names, dest=names[0], default=[], **how)
    return parser
