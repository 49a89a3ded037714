"""Environment variables that describe a site; wrong values are refused by the variable's name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fabricheck.core.errors import InvalidInputError


def word(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the word in a variable, stripped; empty where it is unset.

    :param environment: by default that of this process.
    :raises InvalidInputError: when it contains more than one word, which would break a job's
        option.
    """
    text = (os.environ if environment is None else environment).get(variable, "").strip()
    if len(text.split()) > 1:
        raise InvalidInputError(f"{variable}={text!r} contains white space.")
    return text


def one_of(variable: str, allowed: Sequence[str]) -> str:
    """Return the choice in a variable, the first of those allowed where it is unset.

    :raises InvalidInputError: when it contains anything else.
    """
    chosen = word(variable) or allowed[0]
    if chosen not in allowed:
        raise InvalidInputError(f"{variable}={chosen} must be one of {', '.join(allowed)}.")
    return chosen
