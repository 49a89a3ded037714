"""The checks that each partition must have: a generated, committed list beside each site file.

``lumi.checks.yaml`` belongs to ``lumi.py``. `fabricheck sets --write` makes it from ReFrame
(`fabricheck.rfm.listing`); a session in which a listed check is missing fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from fabricheck.core import yaml_files
from fabricheck.core.errors import InvalidFile, InvalidInputError

HEAD = """\
# Made by `fabricheck sets --write`, not by hand: the checks that each partition must have, and what
# each asks of an environment, and its tags. A check that is lost shows as a line that is lost here.
"""


class Check(BaseModel):
    """A check: the features it requires of an environment, as ReFrame's ``valid_prog_environs``;
    its tags.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    environs: Annotated[Sequence[str], Field(min_length=1)]
    tags: Sequence[str]


class Listed(BaseModel):
    """The checks of one partition, ``system:partition``, on one node model, by class name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: str
    node: str | None
    checks: Mapping[str, Check]


def beside(site: Path) -> Path:
    """Return the list beside a site file."""
    return site.with_suffix(".checks.yaml")


def read(site: Path) -> list[Listed]:
    """Read the list of a site file; empty where there is none.

    :raises InvalidInputError: for a file that cannot be read, with its name and the reason.
    """
    file = beside(site)
    if not file.exists():
        return []
    try:
        return yaml_files.validated(list[Listed], yaml_files.read(file), file)
    except InvalidFile as error:
        raise InvalidInputError(
            f"The list of checks {error} Regenerate it with 'fabricheck sets --write'."
        ) from None


def written(every: Iterable[Listed]) -> str:
    """Return the text of a list."""
    lines = [HEAD]
    for one in every:
        lines.append(f"- partition: {one.partition}\n  node: {one.node or 'null'}\n  checks:\n")
        for name, check in one.checks.items():
            asks, tags = ", ".join(check.environs), ", ".join(check.tags)
            lines.append(f"    {name}: {{environs: [{asks}], tags: [{tags}]}}\n")
    return "".join(lines)


def of(
    partition: str, extras: Mapping[str, Any], environments: Sequence[Mapping[str, Any]],
    every: Iterable[Listed],
) -> dict[str, list[str]] | None:  # fmt: skip
    """Return the checks that a partition must have, with their tags; None without a list.

    Checks that need what an environment states as ``not_installed`` are left out. Checks that need
    anything else the environment lacks are included, so that they fail visibly.

    :param extras: of the partition. environments: those that it names.
    """
    here = (partition, extras.get("node"))
    for one in every:
        if (one.partition, one.node) == here:
            return {
                name: list(check.tags)
                for name, check in one.checks.items()
                if not _left_out(check.environs, environments)
            }
    return None


def _left_out(asks: Sequence[str], environments: Sequence[Mapping[str, Any]]) -> bool:
    whole = any(fits(asks, {one["name"]}, with_all_installed(one)) for one in environments)
    return whole and not any(fits(asks, {one["name"]}, one) for one in environments)


def with_all_installed(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment with its ``not_installed`` features added."""
    absent = environment.get("extras", {}).get("not_installed", [])
    return {**environment, "features": [*environment.get("features", []), *absent]}


def fits(requested: Sequence[str] | None, names: set[str], has: Mapping[str, Any]) -> bool:
    """Whether one of the alternatives matches: ``*``, a name, or features with + or -."""
    features = set(has.get("features", []))
    for words in requested or ():
        if words == "*" or words in names:
            return True
        parts = words.split()
        if all(part[0] in "+-" and (part[1:] in features) == (part[0] == "+") for part in parts):
            return True
    return False
