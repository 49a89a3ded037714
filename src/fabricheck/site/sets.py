"""The sets of checks (smoke, node, full, network, soak), their limits, and that of a session."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pydantic import Field

from fabricheck.core import yaml_files
from fabricheck.core.errors import UsageError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import listed

#: The default: checks that run only if selected by name are in no set.
EVERYTHING = "full"


_FLAGS = ("--failed", "--cpu-only", "--gpu-only")

#: Further options of ReFrame that leave checks of a set out, with all their names.
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


class CheckSet(StrictModel):
    """One set.

    limit_s: its time limit on a node in s, None for no limit. shows, not_: what a passed set
    proves, and what it does not. apart: whether its checks are in no set of a node, because they
    are of several nodes or take longer than any.
    """

    limit_s: float | None = Field(gt=0)
    shows: str
    not_: str = Field(alias="not")
    apart: bool = False


@dataclass(frozen=True)
class Choice:
    """What selected the checks of a session.

    words: the options, as given (``-t smoke``). set: the set that was selected completely; None for
    a part of one, or for no set. part_of: the set that options selected a part of; None where a set
    was selected completely, or none is known.
    """

    words: tuple[str, ...]
    set: str | None
    part_of: str | None = None


@functools.cache
def known() -> dict[str, CheckSet]:
    """Return the sets by name: those of a node from the shortest to the longest, then others."""
    path = Path(__file__).with_name("sets.yaml")
    return validated(dict[str, CheckSet], yaml_files.read(path), path)


def require(name: str) -> None:
    """Refuse a name that is no set's.

    :raises UsageError: with the names of all sets.
    """
    if name not in known():
        raise UsageError(f"There is no set {name!r}; the sets are {listed(known())}.")


def modes() -> list[dict[str, Any]]:
    """Return ReFrame's modes: one for each set, with the options that select exactly its tag."""
    return [{"name": name, "options": [f"--tag=^{name}$"]} for name in known()]


def require_mode(arguments: Sequence[str]) -> None:
    """Refuse a mode that there is none of, for which ReFrame names no other.

    :param arguments: of ReFrame's command line.
    :raises UsageError: as `require`.
    """
    try:
        given, _ = _parser().parse_known_args(list(arguments))
    except ValueError:
        return
    if given.mode is not None:
        require(given.mode)


@functools.cache
def chosen(command: str) -> Choice:
    """Return what selected the checks of a session.

    :param command: ReFrame's command line, as in its run report; an unparsable one has no set.
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
    # A check must have every given tag, so the shortest set is what remains.
    whole = next((name for name in known() if name in named), None) if named else EVERYTHING
    if narrowed or not named <= known().keys():
        return Choice((*words, *narrowed), None, whole or EVERYTHING)
    return Choice((*words, *narrowed), whole)


def without_choice(arguments: Sequence[str]) -> list[str]:
    """Return ReFrame's arguments without those that select checks."""
    return _parser().parse_known_args(list(arguments))[1]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


@functools.cache
def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False)
    # One-letter options, so that -rt smoke is parsed as ReFrame parses it.
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
