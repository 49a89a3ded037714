"""The libraries below MPI on this machine: versions, and whether a fabric's provider is there.

A missing provider is no fault of a NIC: messages then go by TCP, more than ten times slower, with
right data.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.tools.nics.reading import SeenNic
from fabricheck.tools.runner import Output, last_words, run

#: The time limit of one tool, in s: three of them fit into the 10 s of a scheduler's prolog.
LIMIT_S = 2.5

#: What prints the version of a library, by the library's name in a result document.
_VERSIONS: Mapping[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "libfabric": (("fi_info", "--version"), re.compile(r"^libfabric: (\S+)$", re.MULTILINE)),
    "ucx": (
        ("ucx_info", "-v"),
        re.compile(r"^# (?:Library version: |UCT version=)(\S+)", re.MULTILINE),
    ),
}

#: The version of rdma-core ends the name of its library's file: libibverbs.so.1.14.50.0.
_VERBS = re.compile(r"libibverbs\.so\.1\.\d+\.(\d\S*)")
_FOLDERS = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib")


@dataclass(frozen=True)
class Libraries:
    """What is installed.

    versions: by library. settings: a sentence for each thing that keeps messages from the NICs.
    notes: what is not installed or did not answer.
    """

    versions: Mapping[str, str]
    settings: tuple[str, ...]
    notes: tuple[str, ...]


def libraries(
    node: str,
    nics: Sequence[SeenNic],
    provider: str | None,
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
) -> Libraries:
    """Return the versions of libfabric, UCX and rdma-core, and what keeps messages from the NICs.

    :param node: its name, for the sentences.
    :param nics: the NICs of the node model that are there.
    :param provider: the driver by which messages must go; ``None`` where no fabric states it.
    :param root: the folder with ``dev`` and ``usr``.
    :param environ: its PATH decides which tools are installed.
    """
    versions: dict[str, str] = {}
    notes: list[str] = []
    for library, (command, form) in _VERSIONS.items():
        answer = _answer(command, environ)
        found = form.search(answer.out) if isinstance(answer, Output) else None
        if found is not None:
            versions[library] = found[1]
        else:
            why = answer if isinstance(answer, str) else "its output has no version"
            notes.append(f"no version of {library}: {why}")
    verbs = _verbs(root)
    versions |= {} if verbs is None else {"rdma_core": verbs}
    settings = [*_closed(node, nics, root), *_no_provider(node, provider, environ)]
    return Libraries(versions, tuple(settings), tuple(notes))


def _answer(command: Sequence[str], environ: Mapping[str, str]) -> Output | str:
    """Return what a tool printed, or why it did not."""
    name = command[0]
    if shutil.which(name, path=environ.get("PATH")) is None:
        return f"{name} is not in the PATH"
    try:
        done = run(command, LIMIT_S, environ)
    except OSError as error:
        return f"{name} cannot be started ({error.strerror})"
    return f"{name} did not answer within {LIMIT_S:g} s" if done.code is None else done


def _no_provider(node: str, provider: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield that libfabric lacks the provider cxi, where fi_info says so.

    MPI uses verbs without libfabric, so only their device files count.
    """
    if provider != "cxi":
        return
    answer = _answer(("fi_info", "-p", provider), environ)
    if isinstance(answer, Output) and f"provider: {provider}" not in answer.out:
        yield (
            f"Node {node}: libfabric has no provider {provider} (fi_info -p {provider}: "
            f"{last_words(answer.err, answer.out)}), so messages would go by TCP: use the system's "
            "libfabric."
        )


def _closed(node: str, nics: Sequence[SeenNic], root: Path) -> Iterator[str]:
    """Yield the NICs whose device file this user cannot open."""
    for nic in nics:
        if nic.kind == "infiniband" and nic.device_file is None:
            yield f"Node {node}: {nic.name} has no device for user programs (module ib_uverbs)."
        elif nic.device_file is not None and not os.access(
            root / nic.device_file, os.R_OK | os.W_OK
        ):
            there = (root / nic.device_file).exists()
            why = "cannot be opened by this user" if there else "is not there"
            yield f"Node {node}: /{nic.device_file}, by which programs use {nic.name}, {why}."


def _verbs(root: Path) -> str | None:
    for folder in _FOLDERS:
        found = _VERBS.fullmatch(Path(os.path.realpath(root / folder / "libibverbs.so.1")).name)
        if found is not None:
            return found[1]
    return None
