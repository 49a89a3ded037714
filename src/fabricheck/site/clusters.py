"""Helpers of site files: their variables, how a partition is reached, its node, its programs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core import checkout
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.node import NodeModel, load, products
from fabricheck.node.placement import placements
from fabricheck.schedulers import table
from fabricheck.schedulers.ssh import HOSTS


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
        raise InvalidInputError(f"{variable}={chosen} must be one of {listed(allowed)}.")
    return chosen


#: A device reaches itself as it reaches a peer.
_FEATURES = ("devices", "peers")
_SEVERAL_FEATURES = ("several_devices", "ranks", "placements")
_AMD_FEATURES = ("sdma", "xnack")

#: The programs of this suite, each a feature of an environment; those of several ranks need MPI.
RANK_PROGRAMS = ("affinity", "pingpong", "mpi", "fabric")
PROGRAMS = ("stream", "memcpy", "managed", "p2p", "overlap", "soak", *RANK_PROGRAMS)

#: What CMake calls the language of device code, by runtime.
_LANGUAGES = {"rocm": "HIP", "cuda": "CUDA"}

#: Where a build command takes CMake's option for the architectures of devices.
_MARK = "{architectures}"

#: The tests of RCCL or NCCL, by runtime.
COLLECTIVE_TESTS = {"rocm": "rccl-tests", "cuda": "nccl-tests"}

#: Cray MPICH accepts device buffers only with this setting (Frontier user guide, "GPU-aware MPI";
#: LUMI user guide, "LUMI-G example batch scripts").
CRAY_MPICH_ON_DEVICES = ["MPICH_GPU_SUPPORT_ENABLED", "1"]

#: What is not the default of a Cray's modules is found with this only.
CRAY_NOT_DEFAULT = ["LD_LIBRARY_PATH", "$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"]

#: The modules that a login has on a Cray with Slingshot, and a job lacks after ``module purge``:
#: Cray MPICH does not find libfabric without them. Loading them again changes nothing.
CRAY_LOGIN_MODULES = ["craype-x86-trento", "craype-network-ofi", "libfabric", "xpmem"]

#: Open MPI accepts them through UCX (AMD lab notes, "GPU-aware MPI with ROCm"; JSC's
#: OpenMPI-settings): no other path is tried when UCX fails.
OPEN_MPI_BY_UCX = ["OMPI_MCA_pml", "ucx"]

#: Sizes for devices of 64 GiB and more; both arrays of a copy are far larger than all caches.
_SIZES = {
    "array_bytes": 1 << 30,
    "concurrent_bytes": 8 << 30,
    "scan_kernels": ["copy", "scale", "add", "triad"],
    "scan_sizes": "1KiB:8GiB",
    "scan_block_sizes": [64, 128, 256, 512, 1024],
    "copy_sizes": "256:8GiB",
    "pingpong_bytes": 256 << 20,
    "mpi_bytes": 256 << 20,
    "noise_limit": 0.1,
    "host_noise_limit": 0.3,
}

#: The sizes for eight AMD devices, whose 56 ordered pairs would otherwise exceed a set's time. Both
#: arrays of a copy together are four times the 256 MiB of cache of the hosts.
_AMD_SIZES = {
    "array_bytes": 512 << 20,
    "peer_bytes": 256 << 20,
    "mpi_bytes": 64 << 20,
}


def reached(
    queue: str, *options: str, by: str = "slurm", environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return scheduler, launcher and access of a partition.

    On a login node each check is a job of its own. Inside an allocation the partition is the node
    of the session, each check is a step, and the allocation received the options.

    :param queue: Slurm's own partition, unless ``FABRICHECK_QUEUE`` names another; by ssh the list
        of hosts, unless ``FABRICHECK_HOSTS`` is another.
    :param options: the other options of a job: devices, constraints; by ssh its options.
    :param by: the row of the table of ways to reach nodes.
    :param environment: that of the session; by default that of this process.
    :raises InvalidInputError: when one of the variables contains more than one word.
    """
    variables = os.environ if environment is None else environment
    row = table.named(by)
    words = {name: word(name, variables) for name in row.job_options}
    requested = [
        option.format(words[name]) for name, option in row.job_options.items() if words[name]
    ]
    queue = word("FABRICHECK_QUEUE", variables) or queue
    # Another of the row's own, as one without accounting.
    backend = word("FABRICHECK_SCHEDULER", variables)
    return row.partition(queue, [*options, *requested], variables, backend)


def reached_here(environment: Mapping[str, str] | None = None, jobs: int = 1) -> dict[str, Any]:
    """Return scheduler, launcher and access of a partition of this machine.

    Where ``FABRICHECK_HOSTS`` lists hosts, it is these, by ssh.

    :param environment: that of the session; by default that of this process.
    :param jobs: checks that run here at the same time; those that measure one node never overlap.
    """
    variables = os.environ if environment is None else environment
    if variables.get(HOSTS):
        return reached("", by="ssh", environment=variables)
    return {"scheduler": "local", "launcher": "local", "max_jobs": jobs}


def of_this_job(
    *partitions: dict[str, Any], environment: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the partitions of a system; inside an allocation those of its nodes.

    It returns all of them on a login node, and in a queue that none of them names. There a session
    of all is refused when it starts (`jobs.require_nodes_of_one_kind`).

    :param partitions: each with what `reached` returns.
    :param environment: as in `reached`.
    """
    variables = os.environ if environment is None else environment
    row = table.around(variables)
    queue = None if row is None else row.queue_of_job(variables)
    here = [
        partition
        for partition in partitions
        if row is not None and queue is not None and row.queue(partition["access"]) == queue
    ]
    return here or list(partitions)


def node(
    name: str, references: str | None = None, fabric: str | None = None, **extras: Any
) -> dict[str, Any]:
    """Return devices, features and extras of a partition whose nodes a node model describes.

    :param name: the node model.
    :param references: the set of references (docs/reference/site-file.md); by default that of any
        node with these devices.
    :param fabric: the fabric that joins the nodes; without one, checks measure one node only.
    :param extras: added to those that all sites share (`_SIZES`), or replacing them.
    :raises FabricheckError: when there is no such model.
    """
    model = load(name)
    amd = model.vendor == "amd"
    several = len(model.domains) > 1
    return {
        "features": [
            *_FEATURES,
            *(_SEVERAL_FEATURES if len(model.devices) > 1 else ()),
            # Where cores and compute units share one memory, no page can migrate.
            *([] if model.shares_memory else ["managed_memory"]),
            *(["several_domains"] if several else []),
            *(["far_domain"] if "far" in placements(model) else []),
            *(_AMD_FEATURES if amd else []),
            *(["nics"] if model.nics else []),
            *(["several_nodes"] if fabric else []),
        ],
        "devices": [{"type": "gpu", "arch": model.architecture, "num_devices": len(model.devices)}],
        "extras": {
            "node": name,
            "references": references or references_of(model),
            **_SIZES,
            **(_AMD_SIZES if amd else {}),
            **({"fabric": fabric} if fabric else {}),
            **extras,
        },
    }


def references_of(model: NodeModel) -> str:
    """Return the set of references that holds for any node with the devices of a node model.

    Link classes of the same name are different links on another device.
    """
    product = products.by_name(model.device_model)
    if product is None or product.references is None:
        return model.vendor
    return product.references


def programs(runtime: str, spack_environment: str, **extras: Any) -> dict[str, Any]:
    """Return features and extras of an environment whose programs Spack installs.

    The folders are those of the environment's view, or those that variables name
    (docs/reference/site-file.md).

    :param runtime: rocm or cuda.
    :param spack_environment: the folder of spack-env.
    :param extras: further ones of the environment.
    """
    if runtime not in COLLECTIVE_TESTS:
        raise ValueError(f"no programs for GPUs have runtime '{runtime}': write rocm or cuda")
    seen = view(spack_environment)
    tests = COLLECTIVE_TESTS[runtime]
    loopback = os.environ.get("FABRICHECK_LOOPBACK")
    prefix = f"FABRICHECK_{runtime.upper()}"
    # Programs in another folder were not built by Spack.
    by_spack = not os.environ.get(f"{prefix}_PROGRAMS")
    spack = f"spack-env/install {spack_environment}"
    return {
        "features": [
            *PROGRAMS,
            "gpu_aware_mpi",
            "osu",
            tests,
            # Whether the node has a vendor's loopback is known there only.
            *(["loopback"] if loopback or table.around(os.environ) is not None else []),
            *(["spack"] if by_spack else []),
        ],
        "extras": {
            "runtime": runtime,
            "programs": _folder(f"{prefix}_PROGRAMS", seen / "bin"),
            "osu_folder": _folder(f"{prefix}_OSU", seen / "libexec" / "osu-micro-benchmarks"),
            "rccl_folder": _folder(tests_variable(tests), seen / "bin"),
            "build_command": spack if by_spack else _by_cmake(runtime, "ON"),
            "spack_environment": spack_environment,
            **({"loopback": loopback} if loopback else {}),
            **extras,
        },
    }


def programs_here(runtime: str, spack_environment: str, **extras: Any) -> dict[str, Any]:
    """Return features and extras of an environment whose programs CMake builds on this machine.

    They are in ``build/RUNTIME/bin``, or in the folder that a variable names. OSU and the tests of
    RCCL or NCCL are there where variables name their folders.

    :param spack_environment: the folder of spack-env; its view may be that folder of programs, and
        then has the tools for GPUs, too.
    :param extras: further ones of the environment.
    """
    prefix, tests = f"FABRICHECK_{runtime.upper()}", COLLECTIVE_TESTS.get(runtime)
    folder = Path(_folder(f"{prefix}_PROGRAMS", checkout.ORIGIN / "build" / runtime / "bin"))
    by_spack = folder.resolve().is_relative_to(view(spack_environment).parent.resolve())
    if by_spack and tests:
        return programs(runtime, spack_environment, **extras)
    mpi = "OFF" if os.environ.get("FABRICHECK_MPI") == "OFF" else "ON"
    osu = os.environ.get(f"{prefix}_OSU")
    rccl = os.environ.get(tests_variable(tests)) if tests else None
    return {
        "features": [
            *(program for program in PROGRAMS if mpi == "ON" or program not in RANK_PROGRAMS),
            # The ranks of the host have no device whose buffers an MPI could take.
            *([] if runtime == "host" else ["gpu_aware_mpi"]),
            *(["osu"] if osu else []),
            *([tests] if rccl else []),
        ],
        "extras": {
            "runtime": runtime,
            "programs": str(folder),
            **({"osu_folder": osu} if osu else {}),
            **({"rccl_folder": rccl} if rccl else {}),
            "build_command": _by_cmake(runtime, mpi),
            **({"spack_environment": spack_environment} if by_spack else {}),
            **extras,
        },
    }


def _by_cmake(runtime: str, mpi: str) -> str:
    """Return the command that builds the programs of a runtime by CMake.

    For devices it has a mark in place of their architectures: an environment does not know which
    partitions have it.
    """
    options = f"-DFABRICHECK_RUNTIME={runtime} -DFABRICHECK_MPI={mpi}"
    if runtime in OF_DEVICES:
        options = f"{options} {_MARK}"
    return f"cmake -S . -B build/{runtime} {options} && cmake --build build/{runtime}"


def build_command(extras: Mapping[str, Any], architectures: Iterable[str]) -> str:
    """Return the command that builds the programs of an environment for some devices.

    :param extras: of the environment.
    :param architectures: of the devices, as site files state them, such as gfx90a and sm_90.
    """
    stated: str = extras["build_command"]
    if _MARK not in stated:
        return stated
    option = architectures_option(extras["runtime"], architectures)
    return stated.replace(_MARK, shlex.quote(option))


def architectures_option(runtime: str, architectures: Iterable[str]) -> str:
    """Return CMake's option for the architectures of devices.

    :param runtime: rocm or cuda.
    :param architectures: as in `build_command`.
    """
    # CMake names sm_90 90, and gfx90a the same.
    names = sorted({name.removeprefix("sm_") for name in architectures})
    return f"-DCMAKE_{_LANGUAGES[runtime]}_ARCHITECTURES={';'.join(names)}"


def without_kernels(compiled: Sequence[str], architectures: Iterable[str]) -> list[str]:
    """Return the architectures of devices for which programs have no kernels.

    None where what they were compiled for is a word whose meaning depends on the compiler, such as
    ``sm_all`` and ``gfx9-generic``.

    :param compiled: for which the kernels were compiled, as the programs print it.
    :param architectures: as in `build_command`.
    """
    names = {name.partition(":")[0] for name in compiled}
    if any(re.fullmatch(r"gfx[0-9a-f]+|sm_\d+[af]?", name) is None for name in names):
        return []
    return sorted(name for name in architectures if not _runs_on(names, name))


def _runs_on(compiled: Iterable[str], architecture: str) -> bool:
    """Return whether kernels compiled for some architectures run on a device of another."""
    if not architecture.startswith("sm_"):
        return architecture in compiled
    # A driver compiles the PTX of an older architecture for its device.
    generations = [int(name[3:]) for name in compiled if name[3:].isdigit()]
    older = [number for number in generations if number <= int(architecture[3:])]
    return architecture in compiled or bool(older)


def mpi_without(runtime: str, default: str = "") -> list[str]:
    """Return the collectives that the MPI of a runtime crashes in on device buffers.

    :param default: separated by commas, where FABRICHECK_CUDA_MPI_WITHOUT, or that of rocm, is not
        set.
    """
    stated = os.environ.get(f"FABRICHECK_{runtime.upper()}_MPI_WITHOUT", default)
    return [name for name in stated.split(",") if name]


def view(environment: str) -> Path:
    """Return the view folder of a Spack environment."""
    return checkout.ORIGIN / "build" / "spack" / environment / "view"


def tests_variable(tests: str) -> str:
    """Return the variable with the folder of rccl-tests or nccl-tests."""
    return f"FABRICHECK_{tests.replace('-', '_').upper()}"


def _folder(variable: str, default: Path) -> str:
    return os.environ.get(variable) or str(default)
