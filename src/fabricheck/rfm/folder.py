"""The folder for the results of a session, checked before anything is written to it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from reframe.core.exceptions import ConfigError

from fabricheck.core.vocabulary import ENV_RESULTS

#: Bytes that must be free: stage, output, logs and reports of a session of all checks have some
#: 20 MB, most of it the documents of the scans.
LEAST_FREE = 64 << 20


def results(default: Path) -> Path:
    """Return the folder that FABRICHECK_RESULTS names, or the default; it exists afterwards.

    :raises ConfigError: for a relative path, one that a shell would have to quote, a folder that
        cannot be made or written, and a disk that is all but full.
    """
    text = os.environ.get(ENV_RESULTS, "")
    folder = Path(text) if text else default
    if not folder.is_absolute():
        # ReFrame reads its settings from another working folder than the user's.
        raise ConfigError(
            f"{ENV_RESULTS}={text} is no absolute path: write {ENV_RESULTS}=$PWD/{text}."
        )
    if shlex.quote(str(folder)) != str(folder):
        raise ConfigError(
            f"The results folder '{folder}' has white space or another character that a shell "
            f"would need quoted, and ReFrame does not quote it: set {ENV_RESULTS} to another one."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The results folder {folder} cannot be: {error.strerror}.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"The results folder {folder} is not writable.")
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise ConfigError(
            f"The results folder {folder} has {free / 1e6:.0f} MB free, and a session needs "
            f"{LEAST_FREE / 1e6:.0f} MB."
        )
    return folder
