"""Which partitions of the sites have what the checks of an experiment ask for.

Both are read and nothing is run: what a check asks for from its source, what a partition has from
the site files. What can not be known so is left open, never guessed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.results.session import EXPERIMENT
from fabricheck.site.expected_checks import fits


@dataclass(frozen=True)
class Check:
    """What one check class asks for, in ReFrame's words; None where its source does not say."""

    tags: frozenset[str]
    systems: tuple[str, ...] | None
    environs: tuple[str, ...] | None


def with_what_it_needs(
    experiment: str, checks: Sequence[Check], sites: dict[str, list[dict[str, Any]]] | None
) -> tuple[str, ...] | None:
    """Return the partitions, ``system:partition``, that can run a check of an experiment.

    A simulated one says so, as in ``local:sim-mi250x (simulated)``.

    None where that is not known: there are no sites, or a check asks in other words than names
    and features.
    """
    chosen = [check for check in checks if experiment in check.tags]
    if sites is None or not chosen:
        return None
    environments = {entry["name"]: entry for entry in sites.get("environments", [])}
    found: list[str] = []
    for system in sites.get("systems", []):
        for partition in system.get("partitions", []):
            name = f"{system['name']}:{partition['name']}"
            offered = [environments.get(environ, {}) for environ in partition["environs"]]
            able = [
                fits(check.systems, {name, system["name"]}, partition)
                and any(
                    fits(check.environs, {environ.get("name", "")}, environ) for environ in offered
                )
                for check in chosen
                if _is_known(check)
            ]
            if any(able):
                simulated = "simulated" in partition.get("features", [])
                found.append(f"{name} (simulated)" if simulated else name)
    if not found and not all(map(_is_known, chosen)):
        return None
    return tuple(found)


def _is_known(check: Check) -> bool:
    words = [word for part in (check.systems, check.environs) for word in (part or ("%",))]
    return not any("%" in word for word in words)


def read_sites(*folders: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Return what the site files say, as ReFrame's settings gather it; None without readable ones.

    A site file is Python and may need its machine, so a broken one is not this command's error.
    """
    try:
        return require_sites(*folders)
    except FabricheckError:
        return None


@functools.cache
def known_sites() -> dict[str, list[dict[str, Any]]] | None:
    """Return what the site files say, read once in a process; None without readable ones."""
    return read_sites()


def known(where: str) -> Mapping[str, Any]:
    """Return what its site says of a partition, ``system:partition``; nothing of one of no site."""
    for system in (known_sites() or {}).get("systems", []):
        for one in system.get("partitions", []):
            if f"{system['name']}:{one['name']}" == where:
                found: dict[str, Any] = one
                return found
    return {}


def extras(where: str) -> Mapping[str, Any]:
    """Return the extras of a partition; none of one of no site."""
    found: dict[str, Any] = known(where).get("extras", {})
    return found


def require_sites(*folders: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what the site files say, as ReFrame's settings gather it.

    :param folders: of site files; by default those of `sites.folders`.
    :raises NotFoundError: without a folder, as outside of the repository.
    :raises InvalidInputError: when a site file can not be read, with its name and why.
    """
    from reframe.core.exceptions import ConfigError

    from fabricheck.site import sites

    where = folders or tuple(sites.folders())
    for folder in where:
        if not folder.is_dir():
            raise NotFoundError(
                f"There is no folder of sites {folder}: run this in the repository."
            )
    try:
        return sites.gather(*where)
    except ConfigError as error:
        raise InvalidInputError(str(error)) from None


def read_checks(trees: Sequence[ast.Module]) -> list[Check]:
    """Return the checks in parsed check files that carry an experiment's tag.

    What a class does not say itself is looked for in its bases, of the same file.
    """
    return [check for tree in trees for check in _checks(tree)]


def tags_of_checks(trees: Sequence[ast.Module]) -> dict[str, frozenset[str]]:
    """Return the tags of each check class in parsed check files, of a base where it has none."""
    found = {}
    for tree in trees:
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for name, node in classes.items():
            found[name] = frozenset(_strings(node, "tags", classes) or ())
    return found


def _checks(tree: ast.Module) -> Iterator[Check]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        tags = frozenset(filter(EXPERIMENT.fullmatch, _strings(node, "tags", {}) or ()))
        if tags:
            systems = _strings(node, "valid_systems", classes)
            yield Check(tags, systems, _strings(node, "valid_prog_environs", classes))


def _strings(
    node: ast.ClassDef, name: str, classes: dict[str, ast.ClassDef]
) -> tuple[str, ...] | None:
    """Return the strings that a class body assigns to a name, else those of its bases."""
    for statement in node.body:
        targets: Sequence[ast.expr] = ()
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = statement.value  # type: ignore[attr-defined]
            if not isinstance(value, (ast.List, ast.Set, ast.Tuple)):
                return None
            parts = [part.value for part in value.elts if isinstance(part, ast.Constant)]
            strings = tuple(part for part in parts if isinstance(part, str))
            return strings if len(strings) == len(value.elts) else None
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes and base.id != node.name:
            return _strings(classes[base.id], name, classes)
    return None
