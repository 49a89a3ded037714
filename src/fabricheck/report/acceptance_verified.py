"""What is shown of a record that was checked, and the commands that build its programs again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fabricheck.core import show
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.acceptance import closing, manifest
from fabricheck.judge.acceptance.model import AcceptanceRecord, Environment
from fabricheck.judge.acceptance.verifying import OfRecord, SignatureFound, Verified
from fabricheck.references.agreement import THIS_CHECKOUT
from fabricheck.report import acceptance_words as words
from fabricheck.tools.signatures import NAMESPACE

#: The most names of a sentence, and the most rows of the table; --json has all.
_MOST, _MOST_ROWS = 8, 30

#: What is wrong with a part of a record.
_OF_RECORD: dict[OfRecord, str] = {
    "agreement": "The agreement in the folder is not the one in {}.",
    "table": "{} is not the table of the record.",
    "page": "{} is not the page of the record.",
    "judged": "The documents cannot be judged again: {}",
    "unreadable": "The record cannot be read: {}",
}


def lines(verified: Verified) -> Iterator[show.Block]:
    """Yield the text for a terminal."""
    good = verified.exit_code == 0
    word = "as it was closed" if good else "NOT as it was closed"
    if verified.altered:
        word = "ALTERED"
    elif verified.badly_signed:
        word = "NOT SIGNED as it should be"
    elif not good:
        word = "JUDGED OTHERWISE"
    title = f": {verified.title}" if verified.title else ""
    yield show.status(f"{verified.folder}{title}: {word}", "pass" if good else "fail")
    if verified.simulated:
        yield words.SIMULATED
    yield from _files(verified)
    yield from (_OF_RECORD[part].format(what) for part, what in verified.of_record.items())
    yield from (_signature(each) for each in verified.signatures)
    for name in verified.unsigned:
        yield f"Not signed by {name}."
    if not verified.signatures and not verified.unsigned:
        yield (
            "Nobody signed it: whoever can write to the folder can make record and manifest anew."
        )
    rows = [(each.node, each.what, each.closed, each.again) for each in verified.otherwise]
    yield show.Table(("Node", "What", "Closed", "Judged again"), rows, most=_MOST_ROWS)
    yield from _of_today(verified)


def _files(verified: Verified) -> Iterator[str]:
    kinds = (
        ("changed", verified.changed),
        ("missing", verified.missing),
        ("not in the manifest", verified.extra),
        ("no plain file", verified.odd),
    )
    for kind, names in kinds:
        if names:
            yield f"{count(len(names), 'file')} {kind}: {listed(names, _MOST)}."


def _signature(signature: SignatureFound) -> str:
    key = f" by key {signature.fingerprint}" if signature.fingerprint else ""
    if signature.state == "good":
        return f"{signature.file}: signed by {signature.signer}{key}."
    if signature.state == "unknown-key":
        return f"{signature.file}: signed{key}, which neither the agreement nor --key names."
    return f"{signature.file}: it is no signature of this manifest{key}."


def _of_today(verified: Verified) -> Iterator[str]:
    """Yield what holds today, and changes no exit code."""
    for waiver in verified.ended:
        what = words.waiver(waiver, ended=True)
        yield f"Since then ended: {waiver.node}, {waiver.criterion}, {what}."
    if verified.limits:
        yield (
            f"Today's checkout has other limits in {count(len(verified.limits), 'file')} "
            f"({listed(verified.limits, _MOST)}); those of the record were used."
        )
    if verified.node_models:
        yield (
            f"Today's checkout has another node model {listed(verified.node_models)}; today's was "
            "used, for peaks and the devices that should be there."
        )
    if not verified.compared_page:
        yield "Table and page were not made again: another commit of fabricheck wrote them."


def repeat(folder: Path, record: AcceptanceRecord) -> Iterator[str]:
    """Yield the commands that build the programs of a record again, and compare both."""
    commits = record.commits
    if not commits and record.agreement.commit != THIS_CHECKOUT:
        commits = [record.agreement.commit]
    if not commits:
        yield "# No session counts, so that no commit is known to build."
    whole = folder.resolve()
    for commit in commits:
        there = f"../fabricheck-{commit}"
        hash_ = commit.rpartition("-g")[2].removesuffix("-dirty")
        yield f"# The programs of commit {commit}, beside today's"
        if commit.endswith("-dirty"):
            yield "# Its checkout had changes that no commit has: what is built may differ."
        yield f"git worktree add {shlex.quote(there)} {shlex.quote(hash_)}"
        yield f"cd {shlex.quote(there)} && make setup && source env.sh"
        for number, environment in enumerate(record.environments):
            yield from _build(whole, number, environment)
        yield "# The limits: what differs is printed"
        yield f"diff -r {shlex.quote(str(whole / closing.LIMITS))} reference_values"
    yield "# The same sessions, with these programs, and compared with those of the record"
    yield from record.commands
    first = whole / closing.RESULTS / "0"
    yield f"fabricheck compare {shlex.quote(str(first))} latest"
    yield "# The record itself, by today's checkout"
    yield f"cd - && fabricheck acceptance verify {shlex.quote(str(whole))}"


def _build(folder: Path, number: int, environment: Environment) -> Iterator[str]:
    spack = environment.spack_environment
    software = folder / closing.SOFTWARE
    if spack is not None:
        yield f"spack-env/install {shlex.quote(spack)}"
        for lock in environment.locks:
            made = f"build/spack/{spack}/spack.lock"
            yield f"cmp {shlex.quote(made)} {shlex.quote(str(software / lock))}"
    elif environment.build_command is not None:
        yield environment.build_command
    digests = software / closing.programs_file(number, environment)
    place = environment.folder or "."
    yield (
        f"(cd {shlex.quote(place)} && sha256sum -c {shlex.quote(str(digests))})"
        "  # equal where compiler and folder are"
    )


def closed(target: Path, record: AcceptanceRecord, signatures: list[Path]) -> Iterator[show.Block]:
    """Yield what to know of a folder that was written."""
    yield f"Record: {target}"
    for path in signatures:
        yield f"Signature: {path}"
    for signer in record.agreement.signers:
        name = f"{manifest.NAME}.{signer.name}.sig"
        if not (target / name).exists():
            yield (
                f"To sign as {signer.name}: ssh-keygen -Y sign -n {NAMESPACE} -f KEY < "
                f"{shlex.quote(str(target / manifest.NAME))} > {shlex.quote(str(target / name))}"
            )
