"""Text of files that others wrote, before its meaning is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fabricheck.errors import InvalidDocument, NotFoundError


def read_text(path: Path) -> str:
    """Return the text of a regular file: a pipe would wait for a writer for ever.

    :raises NotFoundError: when there is no such file.
    :raises InvalidDocument: when it is no regular file, can not be read, or is not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidDocument(path, "can not be read (it is no regular file)")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise InvalidDocument(path, f"byte {error.start} is not UTF-8 text") from None
    except OSError as error:
        raise InvalidDocument(path, f"can not be read ({error.strerror})") from None


def refuse_lone_surrogates(value: Any) -> None:
    """Refuse text that no terminal can show and no file can hold: half of a surrogate pair.

    :param value: what JSON was parsed to; only JSON's escapes can bring such text in.
    :raises ValueError: when there is one.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise ValueError(f"holds \\u{half:04x}, which is half of a character") from None
