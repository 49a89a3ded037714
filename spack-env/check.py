"""What `install` asks about locks. Run by `spack python check.py`: the Python that Spack runs in.

    usable LOCK COMMIT   Spack that runs can use this lock, which the one at COMMIT has written
    present FOLDER       what the lock of an environment takes from this machine is on it
    kept OLD NEW         every package of one lock is in the other, unchanged

Ends with 0, or says in a sentence what is wrong and ends with 3 (5 for `kept`).
"""

import json
import os
import sys
from typing import Any, Iterator, List, Optional, Set, Tuple

# The first release of Spack that reads a format of spack.lock, and writes it until the next.
FORMATS = {4: (0, 17), 5: (0, 21), 6: (1, 0), 7: (1, 2)}


def read(path: str) -> dict:
    """The content of a spack.lock."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def unusable(lock: dict, running: Tuple[int, int], commit: str) -> Optional[str]:
    """Why the Spack `running`, (major, minor), cannot use `lock`; None when it can.

    Older ones cannot read it. From 1.0 on a compiler is a package like others, so what 0.x has
    locked would not be built by its compilers.
    """
    number = lock["_meta"]["lockfile-version"]
    version = ".".join(map(str, running))
    if number not in FORMATS:
        return f"the lock has the unknown format {number}; it was made by commit {commit}"
    if running < FORMATS[number]:
        least = ".".join(map(str, FORMATS[number]))
        return (
            f"Spack {version} is too old for the lock (format {number}, Spack {least} or newer); "
            f"it was made by commit {commit}"
        )
    if running >= (1, 0) > FORMATS[number]:
        return (
            f"Spack {version} is too new for the lock (format {number}, before Spack 1.0); take "
            f"commit {commit}, or lock anew: install --new-lock"
        )
    return None


def externals(lock: dict) -> Iterator[Tuple[str, Optional[str], Any]]:
    """(name@version, prefix or None, modules) of each external in a lock."""
    for spec in lock["concrete_specs"].values():
        external = spec.get("external")
        if external:
            yield f"{spec['name']}@{spec['version']}", external.get("path"), external.get("module")


def compilers(lock: dict) -> Set[str]:
    """name@version of each compiler in a lock of Spack 0.x (in later ones they are packages)."""
    found = [spec.get("compiler") for spec in lock["concrete_specs"].values()]
    return {f"{compiler['name']}@{compiler['version']}" for compiler in found if compiler}


def compiler_paths(packages: dict, wanted: Set[str]) -> Iterator[Tuple[str, str]]:
    """(name@version, path) of the compilers `wanted` which a section `packages` describes."""
    for name, package in packages.items():
        for external in package.get("externals", []):
            identity = external["spec"].split()[0].replace("@=", "@")
            paths = external.get("extra_attributes", {}).get("compilers", {})
            if identity in wanted and name == identity.split("@")[0]:
                for path in paths.values():
                    yield identity, path


def absent(lock: dict, packages: dict) -> Iterator[str]:
    """What a lock takes from this machine and is not there: sentences."""
    for name, prefix, _ in sorted(externals(lock), key=str):
        if prefix and not os.path.isdir(prefix):
            yield f"{name} should be in {prefix}, which does not exist on this machine"
    for name, path in compiler_paths(packages, compilers(lock)):
        if not os.access(path, os.X_OK):
            yield f"the compiler {name} should be {path}, which is no program on this machine"


def changed(old: dict, new: dict) -> List[str]:
    """The packages of lock `old` that are not in lock `new`: name@version/hash, sorted."""
    gone = set(old["concrete_specs"]) - set(new["concrete_specs"])
    specs = old["concrete_specs"]
    return sorted(f"{specs[key]['name']}@{specs[key]['version']}/{key[:7]}" for key in gone)


def main(arguments: List[str]) -> int:
    """Exit code, after the sentences on standard error."""
    code, faults = 3, []
    if arguments[0] == "usable":
        import spack

        running = tuple(int(part) for part in spack.spack_version.split(".")[:2])
        fault = unusable(read(arguments[1]), running, arguments[2])
        faults = [fault] if fault else []
    elif arguments[0] == "present":
        import spack.util.spack_yaml

        folder = arguments[1]
        packages = {}
        with open(os.path.join(folder, "spack.yaml"), encoding="utf-8") as stream:
            environment = spack.util.spack_yaml.load(stream)["spack"]
        packages.update(environment.get("packages", {}))
        for path in environment.get("include", []):
            with open(os.path.join(folder, path), encoding="utf-8") as stream:
                packages.update(spack.util.spack_yaml.load(stream).get("packages", {}))
        faults = list(absent(read(os.path.join(folder, "spack.lock")), packages))
    else:
        code = 5
        gone = changed(read(arguments[1]), read(arguments[2]))
        if gone:
            faults = [f"with our package Spack would change what is locked: {', '.join(gone)}"]
    for fault in faults:
        print(f"spack-env/install: {fault}", file=sys.stderr)
    return code if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
