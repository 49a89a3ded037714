"""The start of a passive look: the file of the look before, and the program that asks the drivers.

It imports little, so that the program works while all else is imported.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ORIGIN
from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.core.show import enumerated
from fabricheck.core.text import read_text
from fabricheck.tools.topology import asking

FORM = "fabricheck-look-1"

#: The folders of the programs below the checkout: the first that has the program is asked.
_BUILDS = ("build/rocm/bin", "build/cuda/bin", "build/host/bin")

#: Seconds for the drivers to answer: a prolog waits for it.
LIMIT_S = 8.0


class Begun:
    """A look whose program asks the drivers.

    before: the content of the file of the look before; None where there is none.
    """

    def __init__(self, programs: Path | None, file: Path, root: Path = Path("/")) -> None:
        """Read the file, and start the program.

        :param programs: the folder of the programs; None for those of the checkout.
        :param file: that of the look before.
        :param root: the folder with ``sys``, ``proc`` and ``dev`` of the node.
        :raises NotFoundError: when there is no program `inventory`.
        :raises InvalidFile: when the file is damaged.
        """
        self.before = read(file)
        self._programs = _programs(programs)
        self._options = ["--passive"]
        if root != Path("/"):
            self._options += ["--sys", f"{root}/sys", "--kernel-log", f"{root}/dev/kmsg"]
        since: list[str] = []
        if self.before is not None:
            since = ["--since", str(self.before["kernel_log_until_us"] + 1)]
        beside = ThreadPoolExecutor(1)
        self._answer = beside.submit(self._ask, since)
        beside.shutdown(wait=False)

    def _ask(self, since: list[str]) -> asking.Answer:
        return asking.ask(self._programs, LIMIT_S, [*self._options, *since])

    def answer(self) -> asking.Answer:
        """Wait for the program, and return how it ended.

        :raises FabricheckError: when it cannot be started.
        """
        return self._answer.result()

    def again(self) -> asking.Answer:
        """Forget the look before, and ask once more, for everything since the node was started."""
        self.before = None
        return self._ask([])


def default_file() -> Path:
    """Return the file of the look before: in a folder that a restart of the node empties."""
    if os.geteuid() == 0:
        return Path("/run/fabricheck/look.json")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) if runtime else Path.home() / ".cache"
    return folder / "fabricheck" / f"look-{platform.node()}.json"


def read(file: Path) -> Mapping[str, Any] | None:
    """Return the content of the file of a look; None where there is none.

    :raises InvalidFile: when it is damaged.
    """
    if not file.exists():
        return None
    members = {"at", "boot_id", "devices", "host", "kernel_log_until_us", "nics"}
    try:
        content = json.loads(read_text(file))
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("form") != FORM or members - set(content):
        raise InvalidFile(file, None, "this is no look of fabricheck; remove it")
    return content


def _programs(named: Path | None) -> Path:
    folders = [named] if named is not None else [ORIGIN / folder for folder in _BUILDS]
    for folder in folders:
        if (folder / asking.PROGRAM).is_file():
            return folder
    where = enumerated(map(str, folders), last="or")
    raise NotFoundError(
        f"There is no program {asking.PROGRAM} in {where}: build the programs, or name their "
        "folder by --programs."
    )
