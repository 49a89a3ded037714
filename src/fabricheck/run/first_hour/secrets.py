"""Parts of a text that must not leave the machine: passwords, tokens, keys, the user's name and
home.
"""

from __future__ import annotations

import getpass
import json
import netrc
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: The replacement of a secret.
MASK = "[left out]"

#: Names of variables, options and keys with a secret.
_NAMES = (
    r"(?:token|secret|passw(?:or)?d|passphrase|credential|authorization|cookie"
    r"|(?:api|access|private|session)[_-]?key)"
)
_NAMED = re.compile(_NAMES, re.IGNORECASE)

#: Patterns of secrets under any name; of a pattern with a group only the group is removed.
_SHAPES = (
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
    ),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-)[\w-]{16,}"),
    re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"),
    re.compile(r"\b(?:Bearer|Basic|ApiKey)\s+(?P<secret>[\w.~+/=-]{6,})", re.IGNORECASE),
    re.compile(r"://(?P<secret>[^/\s@\"']+)@"),
    re.compile(
        rf"{_NAMES}[\w-]*[\"']?\s*[=:]\s*(?P<secret>\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;]+)",
        re.IGNORECASE,
    ),
    re.compile(rf"(?<!\S)--?[\w-]{{0,64}}?{_NAMES}[\w-]*\s+(?P<secret>[^\s-]\S*)", re.IGNORECASE),
)

#: A shorter value of a variable is not removed everywhere, which would do harm; one shorter than
#: the second number is removed only as a whole word.
_LEAST, _ALONE = 6, 12


class Masks:
    """Removes secrets from texts and from JSON."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        home: Path | None = None,
        kept: Collection[str] = (),
    ) -> None:
        """Collect the secrets of this user.

        :param environment: the variables; the values of those with a secret's name are secrets.
        :param home: the user's home; its ``.netrc`` has further ones.
        :param kept: parts of paths that stay as they are, although they are the user's name.
        """
        home = home or Path.home()
        secrets = {*_of_variables(environment), *_of_netrc(home / ".netrc")}
        literal = [_pattern(one) for one in sorted(secrets, key=len, reverse=True)]
        self._secrets = [re.compile("|".join(literal))] if literal else []
        homes = {str(home), os.path.realpath(home)} - {"/"}
        self._home = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(homes)))})(?![\w.-])")
        self._homes = bool(homes)
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container may have no name for its user
            user = "root"
        self._user = user if user != "root" and user not in kept else None

    def text(self, text: str) -> str:
        """Return a text without secrets; the home becomes ``~``, the user's name in a path
        ``USER``.
        """
        for pattern in self._secrets:
            text = pattern.sub(MASK, text)
        for pattern in _SHAPES:
            text = pattern.sub(_left_out, text)
        if self._homes:
            text = self._home.sub("~", text)
        if self._user is not None:
            text = re.sub(rf"(?<=/){re.escape(self._user)}(?![\w.-])", "USER", text)
        return text

    def json(self, value: Any) -> Any:
        """Return JSON without secrets; numbers and structure are kept."""
        match value:
            case str():
                return "USER" if value == self._user else self.text(value)
            case list():
                return list(self._words(value))
            case dict():
                return {
                    self.text(key): MASK
                    if isinstance(one, str) and _NAMED.search(key)
                    else self.json(one)
                    for key, one in value.items()
                }
        return value

    def _words(self, words: list[Any]) -> Iterator[Any]:
        """Yield the words of a command line; what follows ``--token`` is removed."""
        before: Any = ""
        for word in words:
            is_value = isinstance(before, str) and before.startswith("-") and "=" not in before
            secret = is_value and isinstance(word, str) and _NAMED.search(before)
            yield MASK if secret else self.json(word)
            before = word


def _left_out(match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return MASK
    begin, end = (place - match.start() for place in match.span("secret"))
    return f"{match[0][:begin]}{MASK}{match[0][end:]}"


def _of_variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _NAMED.search(name):
            yield from _forms(value)


def _of_netrc(file: Path) -> Iterator[str]:
    try:
        for login, account, password in netrc.netrc(file).hosts.values():
            for one in (account, password) if login else (password,):
                yield from _forms(one or "")
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return


def _forms(value: str) -> Iterator[str]:
    """Yield the forms of a secret: as it is, in JSON, in a URL, and its long words."""
    words = [word for word in re.split(r"[\s\"'{},;]+", value) if len(word) >= _ALONE]
    for one in {value.strip(), *words}:
        if len(one) >= _LEAST:
            yield from {one, json.dumps(one)[1:-1], quote(one, safe="")}


def _pattern(secret: str) -> str:
    found = re.escape(secret)
    return found if len(secret) >= _ALONE else rf"(?<![A-Za-z0-9]){found}(?![A-Za-z0-9])"
