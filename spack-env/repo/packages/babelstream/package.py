# Copyright fabricheck contributors
#
# SPDX-License-Identifier: BSD-3-Clause

import os

from spack.package import *

try:  # from Spack 1.0 on the build systems are part of Spack's own package repository
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.rocm import ROCmPackage
except ImportError:  # before, spack.package exports them
    pass


class Babelstream(CMakePackage, ROCmPackage):
    """STREAM's kernels on devices, in HIP. Spack's own recipe ends at version 4.0, whose output is
    another one than that of 5.0, which is read here."""

    homepage = "https://github.com/UoB-HPC/BabelStream"
    git = "https://github.com/UoB-HPC/BabelStream.git"

    version("5.0", tag="v5.0", commit="f6ae48de899408cf50c24079417dc71a03dbb5a8")

    variant("rocm", default=True, description="Always: the other models are not built here")
    conflicts("~rocm", msg="babelstream needs +rocm")

    depends_on("cxx", type="build")
    depends_on("c", type="build")
    depends_on("cmake@3.13:", type="build")

    def cmake_args(self):
        flags = [f"--offload-arch={one}" for one in self.spec.variants["amdgpu_target"].value]
        flags += self.gcc_toolchain()
        return [
            self.define("MODEL", "hip"),
            self.define("CMAKE_CXX_COMPILER", join_path(self.spec["hip"].prefix.bin, "hipcc")),
            self.define("RELEASE_FLAGS", "-O3"),
            self.define("CXX_EXTRA_FLAGS", " ".join(flags)),
        ]

    def gcc_toolchain(self):
        """Options for ROCm's clang, which by itself takes the newest GCC under /usr."""
        prefix = os.path.dirname(os.path.dirname(os.environ["SPACK_CXX"]))
        is_elsewhere = self.spec.satisfies("%gcc") and prefix != "/usr"
        return [f"--gcc-toolchain={prefix}"] if is_elsewhere else []
