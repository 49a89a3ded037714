"""The folder of an acceptance record: whatever it takes to judge again, and a manifest of it.

acceptance.yaml    the agreement
    record.json        what came of it, also as table.csv and acceptance.html
    verdicts/          one for each session of a node
    results/N/         the documents, as they were measured
    limits/            the reference files and calibrations
    software/          locks of Spack and digests of programs
    inventories/       one for each node
    site/              the site file and the node model
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fabricheck.core.checkout import config_file
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.core.text import printable_json
from fabricheck.judge.acceptance import manifest
from fabricheck.judge.acceptance.judging import Accepted
from fabricheck.judge.acceptance.model import AcceptanceRecord, Environment
from fabricheck.judge.verdict import model as verdicts
from fabricheck.references.published import folder as references_folder
from fabricheck.results import archive
from fabricheck.site import partitions, sites, software

AGREEMENT, RECORD, TABLE, PAGE = "acceptance.yaml", "record.json", "table.csv", "acceptance.html"
RESULTS, LIMITS, SOFTWARE, VERDICTS = "results", "limits", "software", "verdicts"
INVENTORIES, SITE = "inventories", "site"


def write(
    target: Path,
    agreement: Path,
    folders: Sequence[Path],
    accepted: Accepted,
    shown: Mapping[str, str],
) -> None:
    """Write the folder, as a whole or not at all.

    :param agreement: the file.
    :param folders: the results folders, in the order of the record.
    :param shown: by name the table and the page.
    :raises UsageError: when the folder is there.
    :raises NotFoundError: when it cannot be written.
    """
    if target.exists():
        raise UsageError(f"{target} is there: a record is never written over; name a new folder.")
    made = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        made.mkdir(parents=True)
        shutil.copyfile(agreement, made / AGREEMENT)
        _write_texts(made, {**dict(_texts(accepted)), **shown})
        for number, folder in enumerate(folders):
            _copy(folder, made / RESULTS / str(number), archive.files(folder, archive.OF_RESULTS))
        _copy(references_folder(), made / LIMITS, sorted(references_folder().rglob("*.yaml")))
        _copy_software(accepted, folders, made / SOFTWARE)
        _copy_site(accepted.record, made / SITE)
        (made / manifest.NAME).write_text(manifest.text(made), encoding="utf-8")
        made.rename(target)
    except OSError as error:
        where = error.filename or target
        raise NotFoundError(f"{where} cannot be written ({error.strerror}).") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _texts(accepted: Accepted) -> Iterator[tuple[str, str]]:
    record = accepted.record
    yield RECORD, record.model_dump_json(indent=1) + "\n"
    for row in record.nodes:
        yield f"{INVENTORIES}/{row.node}.json", row.hardware.model_dump_json(indent=1) + "\n"
    for session in accepted.sessions:
        place = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{session.node}.{session.place}.{session.id}")
        document = verdicts.as_json(session.verdict)
        yield f"{VERDICTS}/{place}.json", printable_json(document) + "\n"
    for number, environment in enumerate(record.environments):
        lines = [f"{digest}  {name}\n" for name, digest in environment.programs.items()]
        yield f"{SOFTWARE}/{programs_file(number, environment)}", "".join(lines)


def programs_file(number: int, environment: Environment) -> str:
    """Return the name of the file with the digests of an environment's programs."""
    return f"{number}.{environment.name}.sha256"


def _write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path, paths: Iterator[Path] | Sequence[Path]) -> None:
    """Copy files with their times: those tell to which session a document belongs."""
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    target.mkdir(parents=True, exist_ok=True)


def _copy_software(accepted: Accepted, folders: Sequence[Path], target: Path) -> None:
    """Copy the locks that sessions recorded, each once; one that differs has a number."""
    contents: dict[str, list[bytes]] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"**/{software.FOLDER}/*.spack.lock")):
            known = contents.setdefault(path.name, [])
            content = path.read_bytes()
            if content not in known:
                known.append(content)
    target.mkdir(parents=True, exist_ok=True)
    for name, each in contents.items():
        for number, content in enumerate(each):
            (target / (name if number == 0 else f"{number + 1}.{name}")).write_bytes(content)


def _copy_site(record: AcceptanceRecord, target: Path) -> None:
    """Copy the site file of the system and its node model; nothing of them is run again."""
    target.mkdir(parents=True, exist_ok=True)
    system = record.agreement.system
    try:
        site = sites.file_of(system.partition(":")[0], *sites.folders())
        shutil.copy2(site, target / site.name)
    except FabricheckError:
        return  # this machine has no such site any more
    node = partitions.extras(system).get("node")
    if node is not None:
        try:
            model = config_file("nodes", str(node), "node model")
        except FabricheckError:
            return
        if model.is_file():
            shutil.copy2(model, target / model.name)
