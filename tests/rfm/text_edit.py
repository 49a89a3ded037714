"""A change to a file of the suite that a test makes in its own copy."""

from __future__ import annotations

from pathlib import Path


def edit(file: Path, old: str, new: str) -> None:
    """Replace one text in a file, which must hold it."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
