"""The sets of checks: smoke, node and full, what each may take, and which one a session ran."""

from __future__ import annotations

import argparse
import functools
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fabricheck.core.errors import UsageError

#: Where no option chooses: the checks that run only if asked for are in no set.
EVERYTHING = "full"


_FLAGS = ("--failed", "--cpu-only", "--gpu-only")

#: ReFrame's other options that leave checks of a set out, each by its names.
NARROWING = (
    ("-n", "--name"),
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


@functools.cache
def known() -> dict[str, CheckSet]:
    """Return the sets by name, from the shortest to the longest."""
    text = Path(__file__).with_name("sets.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, CheckSet]).validate_python(yaml.safe_load(text))


def require(name: str) -> None:
    """Refuse what is the name of no set.

    :raises UsageError: that names all sets.
    """
    if name not in known():
        raise UsageError(f"There is no set {name!r}; there are {', '.join(known())}.")


def modes() -> list[dict[str, Any]]:
    """Return ReFrame's modes: one for each set, with what chooses its tag and no other."""
    return [{"name": name, "options": [f"--tag=^{name}$"]} for name in known()]


@functools.cache
def chosen(command: str) -> Choice:
    """Return what chose the checks of a session.

    :param command: how ReFrame was called, as its run report has it; of one that cannot be taken
        apart no set is known.
    """
    try:
        _, *arguments = shlex.split(command)
        given, _ = _parser().parse_known_args(arguments)
    except ValueError:
        return Choice((), None)
    modes = [given.mode] if given.mode else []
    named = {*modes, *(tag.removeprefix("^").removesuffix("$") for tag in given.tag)}
    words = [*(f"--mode={mode}" for mode in modes), *(f"-t {tag}" for tag in given.tag)]
    narrowed = [
        f"{names[0]} {value}".rstrip()
        for names in NARROWING
        for value in getattr(given, names[0]) or []
    ]
    # A check must have all of several, so the shortest set is what remains.
    whole = next((name for name in known() if name in named), None) if named else EVERYTHING
    if narrowed or not named <= known().keys():
        whole = None
    return Choice((*words, *narrowed), whole)


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
    for names in NARROWING:
        how: dict[str, Any] = {"action": "append"}
        if names[0] in _FLAGS:
            how = {"action": "append_const", "const": ""}
        elif names[0] == "--restore-session":
            how |= {"nargs": "?", "const": ""}
        parser.add_argument(*names, dest=names[0], **how)
    return parser
