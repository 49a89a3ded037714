"""The publications that results are compared with: five are repeated, others have claims only."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("documents.yaml")


@dataclass(frozen=True)
class Document:
    """A publication: its title, its short name in sentences, and its URL, if known."""

    title: str
    short: str
    url: str | None = None


@functools.cache
def documents() -> Mapping[str, Document]:
    """Return the publications by key."""
    content = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return {key: Document(**fields) for key, fields in content.items()}
