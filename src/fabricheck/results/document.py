"""Reading of result documents: checks of syntax, version, schema and consistency, in that order."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, ValidationError

from fabricheck.core import models
from fabricheck.core.errors import FabricheckError, InvalidFile, NotFoundError
from fabricheck.core.show import cut
from fabricheck.core.text import read_text
from fabricheck.core.vocabulary import Clock
from fabricheck.results.consistency import contradictions
from fabricheck.results.model import ResultDocument
from fabricheck.results.state import complete

SCHEMA_NAME = "fabricheck-result"
SCHEMA_VERSION = 1

#: The name of a part of a node model in documents up to version 0.2: h200 (2 of 8 devices).
_PART = re.compile(r"(?P<name>\S+) \((?P<devices>\d{1,9}) of \d+ devices\)")

#: Longest excerpt of a document's value in a sentence, in characters.
_LONGEST_EXCERPT = 160


def load(path: Path) -> ResultDocument:
    """Read one result document and check everything that can be checked without the machine.

    The document of a failed or interrupted run is valid: see ``complete`` and ``outcome``.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when the file cannot be read, is not JSON, has another version, breaks
        the schema, or contradicts itself.
    """
    try:
        text = read_text(path)
    except NotFoundError:
        raise NotFoundError(f"There is no result document {path}.") from None
    return parse(text, path)


class _Host(BaseModel):
    hostname: str


class Head(BaseModel):
    """The run that a document belongs to, read without checks in a tenth of the time."""

    model_config = ConfigDict(defer_build=True, strict=True)

    clock: Clock
    started: str
    host: _Host
    simulated_s: float | None = None


def read_head(path: Path) -> Head | None:
    """Read the head of a document; return None where `load` would refuse the document."""
    try:
        return Head.model_validate_json(read_text(path))
    except (FabricheckError, ValidationError):
        return None


def parse(text: str, path: Path | str = "result document") -> ResultDocument:
    """Check the text of a result document as `load` does; ``path`` only names it in errors.

    :raises InvalidFile: as `load`.
    """
    value = models.parse_json(text, path)
    _check_version(value, path)
    _renew(value)
    if not _validator().is_valid(value):
        first = min(_validator().iter_errors(value), key=_place_in_document)
        steps = (
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in first.instance_path
        )
        raise InvalidFile(path, "".join(("$", *steps)), _reason(first))
    document = cast(ResultDocument, value)
    for place, reason in contradictions(document):
        raise InvalidFile(path, place, reason)
    if "state" in document:
        complete(document["state"])
    return document


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the version that this fabricheck reads and its programs write."""
    name = f"result-{SCHEMA_VERSION}.schema.json"
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return cast(dict[str, Any], json.loads(text))


@functools.cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema())


def _check_version(value: Any, path: Path | str) -> None:
    if not isinstance(value, dict) or value.get("schema") != SCHEMA_NAME:
        raise InvalidFile(path, None, "is not a fabricheck result document")
    version = value.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidFile(path, "$.schema_version", "has no schema version")
    if version != SCHEMA_VERSION:
        other = "a newer fabricheck" if version > SCHEMA_VERSION else "the fabricheck that wrote it"
        raise InvalidFile(
            path,
            "$.schema_version",
            f"has schema version {version}, and this fabricheck reads version {SCHEMA_VERSION}: "
            f"read it with {other}",
        )


def _renew(value: dict[str, Any]) -> None:
    """Replace what documents up to version 0.2 have: a status that told no errors apart, and the
    number of devices in the name of the node model.
    """
    outcome, options = value.get("outcome"), value.get("options")
    if isinstance(outcome, dict) and outcome.get("status") == "runtime-error":
        outcome["status"] = "software"
    part = _PART.fullmatch(str(options.get("node"))) if isinstance(options, dict) else None
    if part:
        value["options"] |= {"node": part["name"], "devices": int(part["devices"])}


def _place_in_document(error: jsonschema_rs.ValidationError) -> list[tuple[bool, str, int]]:
    """Order errors by place; indices as numbers, so that series 2 comes before series 10."""
    return [
        (True, "", step) if isinstance(step, int) else (False, step, 0)
        for step in error.instance_path
    ]


def _reason(error: jsonschema_rs.ValidationError) -> str:
    said, kinds = error.message, ""
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Type):
        said = json.dumps(error.instance, ensure_ascii=False)
        kinds = f" is not of type {' or '.join(error.kind.types)}"
    return cut(" ".join(said.split()), _LONGEST_EXCERPT) + kinds
