"""What `install` asks about locks. Run by `spack python check.py`: the Python that Spack runs in.

    usable LOCK COMMIT   Spack that runs can use this lock, which the one at COMMIT has written
    present FOLDER       what the lock of an environment takes from this machine is on it, and no
                         module that is loaded is in its way
    kept OLD NEW         every package of one lock is in the other, unchanged

Ends with 0, or says in a sentence what is wrong and ends with 3 (5 where `kept` finds a change).
`fabricheck site check` takes functions of this file, too.
"""

import json
import os
import sys
from typing import Any, Callable, Iterator, List, Mapping, Optional, Set, Tuple

# The first release of Spack that reads a format of spack.lock, and writes it until the next.
FORMATS = {4: (0, 17), 5: (0, 21), 6: (1, 0), 7: (1, 2)}

# The externals that are programs, and their possible names in `bin` of the prefix.
PROGRAMS = {
    "autoconf": ("autoconf",),
    "automake": ("automake",),
    "cmake": ("cmake",),
    "flex": ("flex",),
    "gmake": ("gmake", "make"),
    "libtool": ("libtoolize",),
    "m4": ("m4",),
    "perl": ("perl",),
    "pkg-config": ("pkg-config",),
    "pkgconf": ("pkgconf", "pkg-config"),
    "python": ("python3",),
}


class BrokenLock(Exception):
    """A file is not a Spack lock: a sentence that names it."""


def read(path: str) -> dict:
    """The content of a spack.lock, which has all that is asked of it here, or BrokenLock."""
    try:
        with open(path, encoding="utf-8") as stream:
            lock = json.load(stream)
        # All that is asked later is asked here once: what lacks is a fault of this file.
        unusable(lock, (0, 0), "")
        changed(lock, {"concrete_specs": {}})
        compilers(lock), list(externals(lock))
    except OSError as error:
        raise BrokenLock(f"{path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise BrokenLock(f"{path} is not a Spack lock, or a broken one: no {error} in it") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise BrokenLock(f"{path} is not a Spack lock, or a broken one: {error}") from None
    return lock


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
    """name@version of each compiler in a lock of Spack 0.x, and of all that may be one in later
    ones, where they are externals like others."""
    found = [spec.get("compiler") for spec in lock["concrete_specs"].values()]
    old = {f"{compiler['name']}@{compiler['version']}" for compiler in found if compiler}
    return old or {name for name, _, _ in externals(lock)}


def packages(folder: str, load: Callable[[Any], dict]) -> dict:
    """The section `packages` of an environment and its includes; `load` reads a stream of YAML."""
    found = {}
    with open(os.path.join(folder, "spack.yaml"), encoding="utf-8") as stream:
        environment = load(stream)["spack"]
    for path in environment.get("include", []):
        with open(os.path.join(folder, path), encoding="utf-8") as stream:
            found.update(load(stream).get("packages", {}))
    found.update(environment.get("packages", {}))
    return found


def compiler_paths(described: dict, wanted: Set[str]) -> Iterator[Tuple[str, str]]:
    """(name@version, path) of the compilers `wanted` which a section `packages` describes."""
    for name, package in described.items():
        for external in package.get("externals", []):
            identity = external["spec"].split()[0].replace("@=", "@")
            paths = external.get("extra_attributes", {}).get("compilers", {})
            if identity in wanted and name == identity.split("@")[0]:
                for path in paths.values():
                    yield identity, path


def absent_folders(lock: dict, root: str = "") -> Iterator[str]:
    """Folders that a lock takes from this machine and that are not there: sentences."""
    for name, prefix, _ in sorted(externals(lock), key=str):
        if prefix and not os.path.isdir(root + prefix):
            yield f"{name} should be in {prefix}, which does not exist on this machine"


def absent_programs(lock: dict, described: dict, root: str = "") -> Iterator[str]:
    """Programs to build with that a lock takes from this machine and that are not there."""
    for name, prefix, _ in sorted(externals(lock), key=str):
        paths = [
            os.path.join(prefix or "/", "bin", one) for one in PROGRAMS.get(name.split("@")[0], ())
        ]
        if paths and not any(os.access(root + path, os.X_OK) for path in paths):
            yield f"{name} should be {' or '.join(paths)}, which is no program on this machine"
    for name, path in compiler_paths(described, compilers(lock)):
        if not os.access(root + path, os.X_OK):
            yield f"the compiler {name} should be {path}, which is no program on this machine"


def in_the_way(lock: dict, environ: Mapping[str, str]) -> Iterator[str]:
    """Modules loaded beside which what a lock takes from this machine does not work: sentences."""
    for name, prefix, _ in sorted(externals(lock), key=str):
        if name.startswith("cray-mpich@"):
            for variable in ("PE_ENV", "CRAYPE_VERSION"):
                if environ.get(variable):
                    yield (
                        f"modules of the Cray programming environment are loaded ({variable} is "
                        f"{environ[variable]}), beside which mpicc of {name} does not work: "
                        "module --force purge"
                    )
                    break
        if name.startswith("hip@") and prefix:
            ours = os.path.realpath(prefix)
            for variable in ("ROCM_PATH", "HIP_PATH"):
                other = environ.get(variable)
                # Either may name a folder inside: /opt/rocm-5.7.0/hip.
                if other and not (os.path.realpath(other) + "/").startswith(ours + "/"):
                    yield (
                        f"{variable} is {other}, and the lock takes {name} from {prefix}: "
                        "module --force purge, or unset it"
                    )


def changed(old: dict, new: dict) -> List[str]:
    """The packages of lock `old` that are not in lock `new`: name@version/hash, sorted."""
    gone = set(old["concrete_specs"]) - set(new["concrete_specs"])
    specs = old["concrete_specs"]
    return sorted(f"{specs[key]['name']}@{specs[key]['version']}/{key[:7]}" for key in gone)


def asked(arguments: List[str]) -> Tuple[int, List[str]]:
    """The exit code of faults, and what is wrong: sentences."""
    code, faults = 3, []
    if arguments[0] == "usable":
        import spack

        running = tuple(int(part) for part in spack.spack_version.split(".")[:2])
        fault = unusable(read(arguments[1]), running, arguments[2])
        faults = [fault] if fault else []
    elif arguments[0] == "present":
        import spack.util.spack_yaml

        folder = arguments[1]
        described = packages(folder, spack.util.spack_yaml.load)
        lock = read(os.path.join(folder, "spack.lock"))
        faults = [*absent_folders(lock), *absent_programs(lock, described)]
        faults += in_the_way(lock, os.environ)
    else:
        code = 5
        gone = changed(read(arguments[1]), read(arguments[2]))
        if gone:
            faults = [f"with our package Spack would change what is locked: {', '.join(gone)}"]
    return code, faults


def main(arguments: List[str]) -> int:
    """Exit code, after the sentences on standard error."""
    try:
        code, faults = asked(arguments)
    except BrokenLock as error:
        code, faults = 3, [str(error)]
    for fault in faults:
        print(f"spack-env/install: {fault}", file=sys.stderr)
    return code if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
