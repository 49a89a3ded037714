"""One archive of the files that a session reads, and the command that reads them from a copy on its
own node.

Without it each session opens some hundred files of the shared file system: Python's modules,
ReFrame, fabricheck, the checks, node models and references. The archive is packed once. The
scheduler brings it to the nodes, or each node reads it once; there it is unpacked in memory or on a
local disk, and removed when the session has ended. Whatever the archive lacks is still found where
it was: the shared folders stay behind the copy in Python's search path. The interpreter and the
programs stay where they are.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, NotFoundError
from fabricheck.core.whole_files import replaced
from fabricheck.schedulers.row import Allocation
from fabricheck.tools import runner

#: The archive, in the folder of the run.
ARCHIVE = "staged.tar.gz"

#: By default the files are staged for more nodes than this.
FEW_NODES = 16

#: Parts of the checkout that sessions read, beside the package.
_PARTS = ("config", "reframe_checks", "reference_values")

#: Seconds for finding out what a session loads, and for bringing the archive.
_LOADING_S, _BROADCAST_S = 120, 60

#: What is below it is on each node's own disk or in its system image, and not packed.
_OF_THE_NODE = Path("/usr")

#: zlib's level: with 6 it takes three times as long, and the archive is a tenth smaller.
_LEVEL = 1

#: Imports what a session does, and prints each module's name and file.
_LOADS = """
import importlib, json, pkgutil, sys
import fabricheck.cli, fabricheck.rfm, reframe.frontend.cli, xml.etree.ElementTree
for one in pkgutil.iter_modules(fabricheck.rfm.__path__):
    importlib.import_module(f"fabricheck.rfm.{one.name}")
files = {name: getattr(one, "__file__", None) for name, one in sys.modules.items()}
print(json.dumps({name: file for name, file in files.items() if file and "." not in name}))
"""

#: A command of the copy. Its interpreter alone looks into the copy: what it starts may be of
#: another Python.
_COMMAND = """#!/bin/sh
here=${{0%/bin/*}}
PYTHONPATH=$here/checkout/src:$here/python${{PYTHONPATH:+:$PYTHONPATH}}
export PYTHONPATH
exec {python} "$here/start.py" {script} "$@"
"""

_START = """import os, sys
here = os.path.dirname(os.path.abspath(__file__))
# Without the folder of this file, and the two that the command added.
del sys.path[0]
rest = os.environ.pop("PYTHONPATH").split(":", 2)[2:]
os.environ.update({"PYTHONPATH": one for one in rest})
# Plugins of pydantic are looked for in all installed packages, one file each.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Commands beside the interpreter are those of the copy.
sys.executable = os.path.join(here, "bin", "python")
del sys.argv[0]
if os.path.basename(sys.argv[0]) == "reframe":
    from reframe.frontend.cli import main
elif os.path.basename(sys.argv[0]) == "fabricheck":
    from fabricheck.cli import app as main
sys.exit(main())
"""

_PYTHON = """#!/bin/sh
exec {python} "$@"
"""

#: Runs a session from a copy of the archive; from the shared files where there can be none. A
#: signal to end reaches the session too, so the shell only waits, and removes the copy.
_SESSION = """
sent=$1 archive=$2 shared=$3
shift 3
why="no local file system of $TMPDIR /tmp /dev/shm can be written"
copy=
trap : TERM INT HUP
trap '[ -z "$copy" ] || rm -rf "$copy"' EXIT
own=fabricheck-$(id -u)
for folder in "$TMPDIR" /tmp /dev/shm; do
  case $(stat -f -c %T "$folder" 2> /dev/null) in
    tmpfs | ramfs | ext2/ext3 | xfs | btrfs | zfs | overlayfs) ;;
    *) continue ;;
  esac
  # Of sessions that were killed.
  for left in "$folder/$own".*; do
    pid=${left#"$folder/$own".} pid=${pid%%.*}
    [ ! -d "$left" ] || [ -d "/proc/$pid" ] || rm -rf "$left"
  done
  copy=$(mktemp -d "$folder/$own.$$.XXXXXX" 2> /dev/null) || continue
  said=
  for file in "$sent" "$archive"; do
    [ -n "$file" ] || continue
    said=$(tar -xzf "$file" --no-same-owner -C "$copy" 2>&1) && "$copy/bin/true" && break 2
  done
  why="it cannot be unpacked in $folder${said:+: $(echo "$said" | head -n 1)}"
  rm -rf "$copy"
  copy=
done
[ -z "$sent" ] || rm -f "$sent"
if [ -n "$copy" ]; then
  RFM_CONFIG_FILES=$copy/checkout/config/settings.py "$copy/bin/reframe" "$@"
else
  echo "This node reads the shared files, not a copy of $archive: $why."
  "$shared" "$@"
fi
"""


class CannotStage(FabricheckError):
    """The files of a session cannot be staged; it says why."""


@contextlib.contextmanager
def staged(
    folder: Path, allocation: Allocation, arguments: Sequence[str], say: Callable[[str], object]
) -> Iterator[Sequence[str]]:
    """Pack and send the archive, and give the command of a session; the archive is removed after.

    :param folder: of the run.
    :param arguments: reframe, by its path, and its arguments.
    :param say: called with a sentence of what was done.
    :raises CannotStage: when it cannot be packed.
    """
    reframe, *others = arguments
    archive = folder / ARCHIVE
    began = time.monotonic()
    try:
        pack(archive, Path(reframe), os.environ.get("RFM_CONFIG_FILES", ""))
        packed = (
            f"{archive.stat().st_size / 1e6:.0f} MB, packed in {time.monotonic() - began:.0f} s"
        )
        sent, how = _send(archive, allocation)
        say(f"Each session reads one archive ({packed}), {how}.")
        yield ["/bin/sh", "-c", _SESSION, "sh", sent, str(archive), reframe, *others]
    finally:
        # Sessions that have begun do not need it any more.
        with contextlib.suppress(OSError):
            archive.unlink()


def pack(path: Path, reframe: Path, settings: str) -> None:
    """Write the archive of what a session reads.

    :param reframe: the command of the sessions.
    :param settings: the file of ReFrame's settings, as its variable names it.
    :raises CannotStage: when the settings are not those of this checkout, or something cannot be
        read or written.
    """
    root = checkout.ROOT
    if Path(settings).resolve() != root / "config" / "settings.py":
        raise CannotStage(f"the settings {settings} are not those of {root}")
    python = reframe.with_name("python")
    if not python.exists():
        raise CannotStage(f"there is no python beside {reframe}")
    origin = f"{checkout.ORIGIN}\n{checkout.commit()}\n"
    try:
        with (
            replaced(path) as file,
            tarfile.open(fileobj=file, mode="w:gz", compresslevel=_LEVEL) as archive,
        ):
            for name, text in _commands(python, reframe).items():
                _add(archive, name, text)
            _add(archive, f"checkout/{checkout.STAGED_FROM}", origin)
            for part in _PARTS:
                archive.add(root / part, f"checkout/{part}", filter=_wanted)
            for module, place in _modules(python, root):
                archive.add(module, place, filter=_wanted)
    except (OSError, NotFoundError) as error:
        raise CannotStage(str(error).rstrip(".")) from None


def _send(archive: Path, allocation: Allocation) -> tuple[str, str]:
    """Let the scheduler bring the archive to the nodes; return where it is there, and how it comes.

    A node that it does not reach reads the shared one, as all do in a part of a job's nodes.
    """
    target = f"/tmp/fabricheck-{allocation.job}-{os.getpid()}.tar.gz"
    command = allocation.scheduler.broadcast(archive, target)
    if not allocation.is_whole or not command or shutil.which(command[0]) is None:
        return "", "read once by each node"
    try:
        done = runner.run(command, _BROADCAST_S)
        done.require_good(command[0], _BROADCAST_S, done.err, done.out)
    except (OSError, runner.ProgramFailed) as error:
        return (
            target,
            f"read once by each node that {command[0]} did not reach ({str(error).rstrip('.')})",
        )
    return target, f"which {command[0]} brought to all nodes"


def _commands(python: Path, reframe: Path) -> dict[str, str]:
    commands = {
        f"bin/{script.name}": _COMMAND.format(python=python, script=script)
        for script in (reframe, reframe.with_name("fabricheck"))
    }
    written = {"bin/python": _PYTHON.format(python=python), "bin/true": "#!/bin/sh\n"}
    return {**commands, **written, "start.py": _START}


def _modules(python: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each package and module that a session loads, and its place in the archive."""
    done = runner.run([str(python), "-c", _LOADS], _LOADING_S)
    try:
        done.require_good("python", _LOADING_S, done.err)
        loaded = json.loads(done.out.splitlines()[-1])
    except (runner.ProgramFailed, ValueError, IndexError) as error:
        raise CannotStage(f"what a session loads cannot be found out: {error}") from None
    for name, text in loaded.items():
        file = Path(text)
        module = file.parent if file.stem == "__init__" else file
        if not module.exists() or module.resolve().is_relative_to(_OF_THE_NODE):
            continue
        is_ours = module == root / "src" / name
        yield module, f"checkout/src/{name}" if is_ours else f"python/{module.name}"


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    path = Path(entry.name)
    if path.name.endswith((".opt-1.pyc", ".opt-2.pyc", ".a")) or path.name in ("test", "tests"):
        return None
    return entry


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    data = text.encode()
    entry.size, entry.mode = len(data), 0o755
    archive.addfile(entry, io.BytesIO(data))
