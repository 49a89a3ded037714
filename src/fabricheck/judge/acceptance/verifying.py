"""A record's folder checked: its files by the manifest, its signatures, its documents judged again.

Nothing of the folder is run. Its documents are judged by its limits, at the time of the record, and
by this checkout's rules, site file and node model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.checkout import config_folder
from fabricheck.core.errors import FabricheckError, NotFoundError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.vocabulary import (
    EXIT_ALTERED,
    EXIT_GOOD,
    EXIT_JUDGED_OTHERWISE,
    EXIT_NOT_SIGNED,
)
from fabricheck.judge.acceptance import closing, judging, manifest
from fabricheck.judge.acceptance.model import AcceptanceRecord, Cell, NodeRow
from fabricheck.references import agreement as agreements
from fabricheck.references.agreement import Agreement, Waiver
from fabricheck.references.published import folder as references_folder
from fabricheck.site.sites import PREFIX_VARIABLE
from fabricheck.tools import signatures

#: What is not in a record as it should be.
OfRecord = Literal["agreement", "table", "page", "judged", "unreadable"]


class SignatureFound(StrictModel):
    """A signature beside the manifest; see `tools/signatures`."""

    file: str
    state: signatures.State
    signer: str | None
    fingerprint: str | None


class Otherwise(StrictModel):
    """What a record says of a node, and what its documents say when they are judged again."""

    node: str
    what: str
    closed: str
    again: str


class Verified(StrictModel):
    """What came of it; `--json` is this.

    changed, missing, extra, odd: the files that differ from the manifest. unsigned: those whose
    signature is missing. of_record: parts of the record that contradict each other, and why nothing
    could be judged again. otherwise: what is judged otherwise. compared_page: whether the page was
    made again, which only the same version does. ended: waivers that have ended since. limits,
    node_models: files that today's checkout has otherwise.
    """

    folder: str
    changed: list[str]
    missing: list[str]
    extra: list[str]
    odd: list[str]
    signatures: list[SignatureFound]
    unsigned: list[str]
    of_record: dict[OfRecord, str]
    otherwise: list[Otherwise]
    compared_page: bool
    accepted: bool | None
    title: str
    simulated: bool
    ended: list[Waiver]
    limits: list[str]
    node_models: list[str]

    @property
    def altered(self) -> bool:
        """Whether a file is not what was closed, or is not that agreement."""
        files = self.changed or self.missing or self.extra or self.odd
        return bool(files) or "agreement" in self.of_record

    @property
    def badly_signed(self) -> bool:
        """Whether a signature is missing, or one is not by a known key and of this manifest."""
        bad = any(each.state != "good" for each in self.signatures)
        return bad or bool(self.unsigned)

    @property
    def exit_code(self) -> int:
        """The first that is true: 15 altered, 16 not signed so, 17 judged otherwise; else 0."""
        if self.altered:
            return EXIT_ALTERED
        if self.badly_signed:
            return EXIT_NOT_SIGNED
        if self.otherwise or self.of_record:
            return EXIT_JUDGED_OTHERWISE
        return EXIT_GOOD


def verify(
    folder: Path,
    keys: Sequence[Path],
    agreement_file: Path | None,
    now: datetime,
    made_again: Mapping[str, judging.Shown],
) -> Verified:
    """Check a folder.

    :param keys: files of public keys that must have signed, whatever the agreement says.
    :param agreement_file: a copy of the agreement that somebody kept; None without one.
    :param made_again: by name of the table and the page what makes them of a record.
    :raises NotFoundError: when it is no folder of a record.
    """
    differences = manifest.compare(folder)
    of_record: dict[OfRecord, str] = {}
    agreement, record = _read(folder, of_record)
    stored = _bytes(folder / closing.AGREEMENT)
    if agreement_file is not None and agreement_file.read_bytes() != stored:
        of_record["agreement"] = str(agreement_file)
    by_name = {} if agreement is None else _keys(agreement)
    there, unsigned = _signatures(folder, by_name, keys)
    otherwise: list[Otherwise] = []
    if agreement is not None and record is not None:
        otherwise = _judged_again(folder, agreement, record, of_record)
        _compare_texts(folder, record, made_again, of_record)
    return Verified(
        folder=str(folder),
        changed=list(differences.changed),
        missing=list(differences.missing),
        extra=list(differences.extra),
        odd=list(differences.odd),
        signatures=there,
        unsigned=unsigned,
        of_record=of_record,
        otherwise=otherwise,
        compared_page=record is not None and _is_of_this_commit(record),
        accepted=None if record is None else record.accepted,
        title="" if agreement is None else agreement.title,
        simulated=agreement is not None and agreement.simulated,
        ended=[] if agreement is None or record is None else _ended(agreement, record, now),
        limits=_other_limits(folder),
        node_models=_other_node_models(folder),
    )


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _read(
    folder: Path, of_record: dict[OfRecord, str]
) -> tuple[Agreement | None, AcceptanceRecord | None]:
    """Return agreement and record; None for one that cannot be read, with the reason noted."""
    agreement, record = None, None
    try:
        agreement = agreements.read(folder / closing.AGREEMENT)
        record = read_model(folder / closing.RECORD, AcceptanceRecord)
    except FabricheckError as error:
        of_record["unreadable"] = str(error)
    return agreement, record


def _keys(agreement: Agreement) -> dict[str, str]:
    return {signer.name: signer.key for signer in agreement.signers if signer.key is not None}


def _signatures(
    folder: Path, by_name: Mapping[str, str], keys: Sequence[Path]
) -> tuple[list[SignatureFound], list[str]]:
    """Return the signatures, and the names of those who should have signed and have not."""
    wanted = dict(by_name)
    for path in keys:
        wanted[path.name] = signatures.public_key(path)
    there = [
        SignatureFound(**vars(signatures.check(folder / manifest.NAME, path, wanted)))
        for path in manifest.signatures(folder)
    ]
    signed = {wanted[each.signer] for each in there if each.signer is not None}
    bare = {name: " ".join(key.split()[:2]) for name, key in wanted.items()}
    signed = {" ".join(key.split()[:2]) for key in signed}
    return there, [name for name, key in bare.items() if key not in signed]


@contextmanager
def _limits_of(folder: Path) -> Iterator[None]:
    """Read references from a folder."""
    before = os.environ.get(PREFIX_VARIABLE)
    os.environ[PREFIX_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[PREFIX_VARIABLE]
        else:
            os.environ[PREFIX_VARIABLE] = before


def _judged_again(
    folder: Path, agreement: Agreement, record: AcceptanceRecord, of_record: dict[OfRecord, str]
) -> list[Otherwise]:
    """Return what differs when the documents are judged by the limits beside them."""
    results = folder / closing.RESULTS
    folders = [results / str(number) for number in range(len(record.folders))]
    there = [path for path in folders if path.is_dir()]
    digest = manifest.digest(folder / closing.AGREEMENT)
    commits = judging.resolved(agreement, record)
    try:
        with _limits_of(folder / closing.LIMITS):
            again = judging.judge(agreement, digest, there, record.made, commits).record
    except FabricheckError as error:
        of_record["judged"] = str(error)
        return []
    otherwise = list(_of_whole(record, again))
    rows = {row.node: row for row in again.nodes}
    for row in record.nodes:
        if row.node in rows:
            otherwise += _of_node(row, rows[row.node])
    return otherwise


def _of_whole(record: AcceptanceRecord, again: AcceptanceRecord) -> Iterator[Otherwise]:
    pairs = (
        ("agreement", record.agreement_sha256, again.agreement_sha256),
        ("content of the agreement", record.agreement.title, again.agreement.title),
        ("accepted", str(record.accepted), str(again.accepted)),
        ("nodes", str([row.node for row in record.nodes]), str([row.node for row in again.nodes])),
        ("commits", str(record.commits), str(again.commits)),
        ("limits", _digest_of(record), _digest_of(again)),
    )
    for what, closed, now in pairs:
        if closed != now:
            yield Otherwise(node="", what=what, closed=closed, again=now)
    if record.agreement != again.agreement and record.agreement.title == again.agreement.title:
        yield Otherwise(node="", what="agreement", closed="the record's", again="the file's")


def _digest_of(record: AcceptanceRecord) -> str:
    return " ".join(f"{name}={digest[:8]}" for name, digest in sorted(record.limits_sha256.items()))


def _of_node(row: NodeRow, again: NodeRow) -> Iterator[Otherwise]:
    cells = {cell.criterion: cell for cell in again.cells}
    for cell in row.cells:
        other = cells.get(cell.criterion)
        closed, now = _of_cell(cell), "" if other is None else _of_cell(other)
        if closed != now:
            yield Otherwise(node=row.node, what=cell.criterion, closed=closed, again=now)
    attempts, others = _of_attempts(row), _of_attempts(again)
    for closed, now in zip(attempts, others, strict=False):
        if closed != now:
            yield Otherwise(node=row.node, what="session", closed=closed, again=now)
    if len(attempts) != len(others):
        yield Otherwise(
            node=row.node, what="sessions", closed=str(len(attempts)), again=str(len(others))
        )
    if row.hardware != again.hardware:
        yield Otherwise(node=row.node, what="hardware", closed="the record's", again="another")


def _of_cell(cell: Cell) -> str:
    number = "" if cell.value is None else f" {cell.value:.6g} {cell.unit}"
    limits = [f"{limit:.6g}" for limit in (cell.least, cell.most) if limit is not None]
    within = f" with the limit {' to '.join(limits)}" if limits else ""
    return f"{cell.outcome}{number}{within}, {cell.tried} tried, {cell.missed} not met"


def _of_attempts(row: NodeRow) -> list[str]:
    return [
        " ".join([f"{each.place}/{each.id}", each.status, *(doubt.kind for doubt in each.doubts)])
        for each in row.attempts
    ]


def _is_of_this_commit(record: AcceptanceRecord) -> bool:
    return (record.by, record.checkout) == (fabricheck.__version__, checkout.commit())


def _compare_texts(
    folder: Path,
    record: AcceptanceRecord,
    made_again: Mapping[str, judging.Shown],
    of_record: dict[OfRecord, str],
) -> None:
    """Compare table and page with those that this commit makes; another has other words."""
    if not _is_of_this_commit(record):
        return
    parts: tuple[tuple[OfRecord, str], ...] = (("table", closing.TABLE), ("page", closing.PAGE))
    for part, name in parts:
        if made_again[name](record).encode() != _bytes(folder / name):
            of_record[part] = name


def _ended(agreement: Agreement, record: AcceptanceRecord, now: datetime) -> list[Waiver]:
    return [
        waiver
        for waiver in agreement.waivers
        if waiver.holds(record.made) and not waiver.holds(now)
    ]


def _other_limits(folder: Path) -> list[str]:
    """Return the reference files that this checkout has otherwise, or not at all."""
    stored = folder / closing.LIMITS
    here = references_folder()
    names = {path.relative_to(stored) for path in stored.rglob("*.yaml")}
    names |= {path.relative_to(here) for path in here.rglob("*.yaml")}
    return [str(name) for name in sorted(names) if _bytes(stored / name) != _bytes(here / name)]


def _other_node_models(folder: Path) -> list[str]:
    try:
        here = config_folder("nodes")
    except NotFoundError:
        return []
    stored = sorted((folder / closing.SITE).glob("*.yaml"))
    return [path.name for path in stored if path.read_bytes() != _bytes(here / path.name)]
