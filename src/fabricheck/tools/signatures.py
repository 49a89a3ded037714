"""Signatures of files by ssh-keygen (-Y sign, -Y verify): nothing of them is made or read here."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text

#: What signatures are for: one of another namespace is none of an acceptance.
NAMESPACE = "fabricheck-acceptance"

#: A smart card may ask for a touch, and a key for its passphrase.
_LIMIT_S = 300

_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[\w@.-]+ [A-Za-z0-9+/=]+")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]+")

#: `other-file`: it is of another content of the file, or no signature. `unknown-key`: it is of this
#: file, by a key that nobody named.
State = Literal["good", "unknown-key", "other-file"]


@dataclass(frozen=True)
class Signature:
    """A signature of a file: who signed, by the names of known keys, and the key's fingerprint."""

    file: str
    state: State
    signer: str | None
    fingerprint: str | None


def require_key(key: Path) -> None:
    """Refuse a key that is not there.

    :raises NotFoundError: when there is no such file.
    """
    if not key.is_file():
        raise NotFoundError(f"There is no key {key}.")


def sign(file: Path, key: Path, target: Path) -> None:
    """Sign a file with a private key, or with a public one whose private key an agent has.

    :raises NotFoundError: when there is no ssh-keygen, or it cannot sign.
    """
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        copy = Path(folder, file.name)
        shutil.copyfile(file, copy)
        # A passphrase is asked for on the terminal.
        done = _run(["-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(copy)])
        made = copy.with_name(f"{copy.name}.sig")
        if done.returncode != 0 or not made.is_file():
            raise NotFoundError(f"ssh-keygen cannot sign with {key}: {_last_line(done)}.")
        shutil.copyfile(made, target)


def public_key(path: Path) -> str:
    """Return the public key in a file, such as id_ed25519.pub.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: when it has none.
    """
    match = _KEY.match(read_text(path).strip())
    if match is None:
        raise InvalidInputError(f"{path} is no public key of ssh, such as id_ed25519.pub.")
    return match[0]


def check(file: Path, signature: Path, keys: Mapping[str, str]) -> Signature:
    """Return what a signature of a file is.

    :param keys: the public keys of those who may have signed, by name.
    :raises NotFoundError: when there is no ssh-keygen.
    """
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        allowed = Path(folder, "allowed_signers")
        lines = [f'{name} namespaces="{NAMESPACE}" {_bare(key)}' for name, key in keys.items()]
        allowed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        common = ["-n", NAMESPACE, "-s", str(signature)]
        seen = _run(["-Y", "check-novalidate", *common], file)
        fingerprint = _FINGERPRINT.search(seen.stdout)
        printed = fingerprint[0] if fingerprint is not None else None
        if seen.returncode != 0:
            return Signature(signature.name, "other-file", None, printed)
        for name in keys:
            valid = _run(["-Y", "verify", "-f", str(allowed), "-I", name, *common], file)
            if valid.returncode == 0:
                return Signature(signature.name, "good", name, printed)
    return Signature(signature.name, "unknown-key", None, printed)


def _bare(key: str) -> str:
    match = _KEY.match(key)
    return match[0] if match is not None else key


def _run(arguments: Sequence[str], stdin: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = ["ssh-keygen", *arguments]
    try:
        if stdin is None:
            return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=_LIMIT_S)
        with stdin.open("rb") as content:
            return subprocess.run(
                command, stdin=content, capture_output=True, text=True, timeout=_LIMIT_S
            )
    except FileNotFoundError:
        sentence = "There is no ssh-keygen here, which makes and checks signatures."
        raise NotFoundError(sentence) from None
    except subprocess.TimeoutExpired:
        raise NotFoundError(f"ssh-keygen did not end within {_LIMIT_S} s.") from None


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or "").strip().splitlines()
    return lines[-1].rstrip(".") if lines else f"it ended with {done.returncode}"
