# Copyright fabricheck contributors
#
# SPDX-License-Identifier: BSD-3-Clause

import os
import sys

from spack.package import *

try:  # from Spack 1.0 on the build systems are part of Spack's own package repository
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
    from spack_repo.builtin.build_systems.rocm import ROCmPackage
except ImportError:  # before, spack.package exports them
    pass


class Fabricheck(CMakePackage, CudaPackage, ROCmPackage):
    """Programs of fabricheck, which measure how data moves inside a node with several GPUs:
    device memory, copies between CPU and GPUs and among GPUs, and MPI on buffers of devices.
    Without a GPU they measure virtual devices in the memory of the CPU, or, with SimGrid, a
    simulated node. The checks and the command line that use them are a Python package."""

    # The sources have no public address yet: the environments of the checkout build them from the
    # checkout, by their develop section, and an archive would have to be made by hand. A release
    # gets homepage, git, and its version tag and commit, in place of these lines.
    url = "fabricheck-0.3.0.tar.gz"
    manual_download = True
    download_instr = "fabricheck is built from its checkout, by `spack develop`."

    version("0.3.0")

    license("BSD-3-Clause", checked_by="fabricheck")

    variant("sim", default=False, description="Build for a simulated node, with SimGrid")
    variant("mpi", default=True, description="Build the programs of several ranks")

    conflicts("+cuda", when="+rocm", msg="one runtime in one build: +rocm or +cuda")
    conflicts("+sim", when="+rocm", msg="one runtime in one build: +rocm or +sim")
    conflicts("+sim", when="+cuda", msg="one runtime in one build: +cuda or +sim")
    conflicts("cuda_arch=none", when="+cuda", msg="name the devices, as in cuda_arch=80")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")  # header only
    depends_on("nlohmann-json@3.10:", type="build")  # header only
    depends_on("hwloc")
    depends_on("simgrid@3.32: +smpi", when="+sim")
    # The MPI of a simulated node is SimGrid's own.
    depends_on("mpi", when="+mpi ~sim")

    def cmake_args(self):
        args = [self.define_from_variant("FABRICHECK_MPI", "mpi")]
        # It makes a header, and needs no package: the Python that runs Spack will do.
        args.append(self.define("Python3_EXECUTABLE", sys.executable))
        if self.spec.satisfies("+mpi ~sim"):
            args.append(self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx))
        if self.spec.satisfies("+rocm"):
            clang = join_path(self.spec["llvm-amdgpu"].prefix.bin, "clang++")
            args.append(self.define("FABRICHECK_RUNTIME", "rocm"))
            args.append(self.define("CMAKE_HIP_COMPILER", clang))
            args.append(self.define("CMAKE_HIP_FLAGS", " ".join(self.gcc_toolchain())))
            args.append(self.define("CMAKE_HIP_ARCHITECTURES", self.targets("amdgpu_target")))
        elif self.spec.satisfies("+cuda"):
            args.append(self.define("FABRICHECK_RUNTIME", "cuda"))
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.targets("cuda_arch")))
        elif self.spec.satisfies("+sim"):
            args.append(self.define("FABRICHECK_RUNTIME", "sim"))
        else:
            args.append(self.define("FABRICHECK_RUNTIME", "host"))
        return args

    def targets(self, variant_name):
        """What a variant of several values holds, in CMake's form of a list."""
        return ";".join(self.spec.variants[variant_name].value)

    def gcc_toolchain(self):
        """Options for ROCm's clang, which by itself takes the newest GCC under /usr."""
        prefix = os.path.dirname(os.path.dirname(os.environ["SPACK_CXX"]))
        is_elsewhere = self.spec.satisfies("%gcc") and prefix != "/usr"
        return [f"--gcc-toolchain={prefix}"] if is_elsewhere else []
