"""Composed locks in the three formats that are read."""

from __future__ import annotations

import json
from typing import Any

OURS, OSU, MPI = "abcdefgh" * 4, "ijklmnop" * 4, "qrstuvwx" * 4


def composed(lock_format: int = 5, **changes: Any) -> dict[str, Any]:
    """Return a lock of our package, OSU and an external MPI, as Spack of that format writes it."""
    arch = {"platform": "linux", "platform_os": "sles15", "target": "zen3"}
    # 1.x has the compiler among the dependencies; 0.x states it beside each spec.
    old = {"compiler": {"name": "gcc", "version": "12.2.0"}} if lock_format == 5 else {}
    new = {} if lock_format == 5 else {"annotations": {"original_specfile_version": 5}}
    about = {"arch": arch, **old, **new}
    specs = {
        OURS: {
            "name": "fabricheck",
            "version": "0.1.0",
            "namespace": "fabricheck",
            "parameters": {
                "amdgpu_target": ["gfx90a"],
                "build_type": "Release",
                "cuda": False,
                "rocm": True,
                "cflags": [],
            },
            "dependencies": [{"name": "cray-mpich", "hash": MPI}],
            **about,
        },
        OSU: {
            "name": "osu-micro-benchmarks",
            "version": "7.4",
            "namespace": "builtin",
            "parameters": {"rocm": True},
            **about,
        },
        MPI: {
            "name": "cray-mpich",
            "version": "8.1.28",
            "namespace": "builtin",
            "parameters": {"wrappers": True},
            "external": {"path": "/opt/cray/mpich", "module": None, "extra_attributes": {}},
            **about,
        },
    }
    group = {"group": "default"} if lock_format == 7 else {}
    return {
        "_meta": {
            "file-type": "spack-lockfile",
            "lockfile-version": lock_format,
            "specfile-version": 4 if lock_format == 5 else 5,
        },
        "spack": {"version": "0.23.0", "type": "git", "commit": "b623f58"},
        "roots": [
            {"hash": OURS, "spec": "fabricheck+rocm", **group},
            {"hash": OSU, "spec": "osu-micro-benchmarks@7.4", **group},
        ],
        "concrete_specs": specs,
        **changes,
    }


def text(lock_format: int = 5, **changes: Any) -> str:
    """Return the same as the text of a file."""
    return json.dumps(composed(lock_format, **changes))
