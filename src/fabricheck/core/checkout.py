"""The checkout that this package runs from, by git; for an installation, its copy."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import UNKNOWN

#: The parts of the checkout that a wheel contains (setup.py): node models, site files, references.
_INSTALLED = Path(__file__).resolve().parents[1] / "suite"

#: Node models, site files, checks and references.
ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parents[3]

#: In the copy that a node has of a part of the checkout (run/every_node/staging.py): the file with
#: the checkout's folder and its commit, a line each.
STAGED_FROM = "staged-from"


def _staged_from(root: Path) -> tuple[Path, str | None]:
    try:
        folder, known = (root / STAGED_FROM).read_text(encoding="utf-8").splitlines()
    except OSError:
        return root, None
    return Path(folder), known


#: The checkout with all that is in it: sources, programs, git. Only a copy has another ROOT.
ORIGIN, _KNOWN_COMMIT = _staged_from(ROOT)

#: The folder of the programs' sources.
SOURCES = ("CMakeLists.txt", "cmake", "src/bench", "src/runtime")

_TIME_LIMIT_S = 10


def config_folder(kind: str) -> Path:
    """Return the folder ``config/KIND`` in the working directory, or beside this package.

    :param kind: ``nodes`` or ``fabrics``.
    :raises NotFoundError: when neither exists.
    """
    for root in (Path.cwd(), ROOT):
        folder = root / "config" / kind
        if folder.is_dir():
            return folder
    raise NotFoundError(f"There is no folder config/{kind} here: change to fabricheck's root.")


def config_file(kind: str, name: str, what: str) -> Path:
    """Return the YAML file of a name in a folder of the configuration.

    :param name: such as ``mi250x``, or the path of a file that ends in ``.yaml`` or ``.yml``.
    :param what: what the file describes, for errors.
    :raises NotFoundError: when there is none, listing those that exist.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    folder = config_folder(kind)
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = listed(sorted(file.stem for file in folder.glob("*.yaml"))) or "none"
        raise NotFoundError(f"There is no {what} '{name}' in {folder}, which has: {known}.")
    return path


def commit(root: Path = ORIGIN) -> str:
    """Return the commit as the programs report theirs, ``unknown`` outside a git checkout."""
    if root == ORIGIN and _KNOWN_COMMIT is not None:
        return _KNOWN_COMMIT
    done = _git(root, "describe", "--always", "--dirty")
    return (done.stdout.strip() if done and done.returncode == 0 else "") or UNKNOWN


def changed_files(folder: Path, root: Path = ORIGIN) -> list[str]:
    """Return the names of a folder's files that differ from those of the commit, new ones aside.

    Empty outside a git checkout. A node's copy of a part of the checkout has the folder as it was
    when it was made.
    """
    if not commit(root).endswith("-dirty"):
        return []
    within = folder.resolve().relative_to(ROOT.resolve())
    done = _git(root, "diff", "--name-only", "HEAD", "--", str(within))
    names = done.stdout.splitlines() if done is not None and done.returncode == 0 else []
    return [str(Path(name).relative_to(within)) for name in names]


def has_sources_of(recorded: str, root: Path = ORIGIN) -> bool:
    """Whether a program that reports this commit was built from the sources of this checkout.

    Uncommitted changes (``-dirty``) can be compared only in the checkout that has them.
    """
    if recorded == commit(root):
        return True
    done = _git(root, "diff", "--quiet", recorded, "--", *SOURCES)
    return done is not None and done.returncode == 0


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
