# Copyright fabricheck contributors
#
# SPDX-License-Identifier: BSD-3-Clause

import os

from spack.package import *

try:  # from Spack 1.0 on the build systems are part of Spack's own package repository
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
    from spack_repo.builtin.build_systems.rocm import ROCmPackage
except ImportError:  # before, spack.package exports them
    pass


class Transferbench(MakefilePackage, ROCmPackage):
    """AMD's benchmark of transfers between memories, by kernels and by copy engines. Spack 0.23
    has no recipe of it."""

    homepage = "https://github.com/ROCm/TransferBench"
    git = "https://github.com/ROCm/TransferBench.git"

    license("MIT", checked_by="fabricheck")

    version("1.52", tag="v1.52", commit="600cf1316aeee1ada38425d0dfdac637ebbad56b")

    variant("rocm", default=True, description="Always: its CUDA form is not built here")
    conflicts("~rocm", msg="transferbench needs +rocm")

    depends_on("cxx", type="build")
    # HIP 5.2 lacks hipDeviceMallocUncached; 5.6 is the oldest in whose sources it was seen.
    depends_on("hip@5.6:")
    depends_on("hsa-rocr-dev")
    depends_on("numactl")

    build_directory = "src"

    # hipcc is called and links by itself, so that what Spack's compiler wrapper would add is not
    # there.
    @property
    def build_targets(self):
        spec = self.spec
        rocm, numa, rocr = (spec[name].prefix for name in ("hip", "numactl", "hsa-rocr-dev"))
        compiler = [join_path(rocm.bin, "hipcc"), *self.gcc_toolchain()]
        compiler += [f"--offload-arch={one}" for one in spec.variants["amdgpu_target"].value]
        libraries = [f"-L{one.lib} -Wl,-rpath,{one.lib}" for one in (numa, rocr)]
        return [
            "../TransferBench",
            f"HIPCC={' '.join(compiler)}",
            f"CXXFLAGS=-O3 -Iinclude -I{rocm.include} -I{numa.include} -I{rocr.include}",
            f"LDFLAGS={' '.join(libraries)} -lnuma -lhsa-runtime64 -lpthread",
        ]

    def gcc_toolchain(self):
        """Options for ROCm's clang, which by itself takes the newest GCC under /usr."""
        prefix = os.path.dirname(os.path.dirname(os.environ["SPACK_CXX"]))
        is_elsewhere = self.spec.satisfies("%gcc") and prefix != "/usr"
        return [f"--gcc-toolchain={prefix}"] if is_elsewhere else []

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        install("TransferBench", prefix.bin)
