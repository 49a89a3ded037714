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


class RcclTests(MakefilePackage, ROCmPackage):
    """Performance and correctness of RCCL's collectives. Spack's own recipes of this name cannot
    be built (0.23), or want the whole to be compiled by llvm-amdgpu (1.x)."""

    homepage = "https://github.com/ROCm/rccl-tests"
    git = "https://github.com/ROCm/rccl-tests.git"

    license("BSD-3-Clause", checked_by="fabricheck")

    # There are no releases: the day of a commit, whose output the checks read.
    version("2024-09-10", commit="ae3e6357cb3514d5649b3b5dfaa80cb2d2af3532")

    variant("mpi", default=True, description="Ranks may be several processes")
    variant("rocm", default=True, description="Always: there is no RCCL without ROCm")
    conflicts("~rocm", msg="rccl-tests need +rocm")

    depends_on("cxx", type="build")
    depends_on("rccl")
    depends_on("mpi", when="+mpi")

    # hipcc is called and links by itself, so that what Spack's compiler wrapper would add is not
    # there: folders of libraries, and flags of the spec.
    def setup_build_environment(self, env):
        spec = self.spec
        used = [name for name in ("rccl", "hip", "mpi", "gcc-runtime") if name in spec]
        flags = [f"-Wl,-rpath,{spec[name].prefix.lib}" for name in used]
        flags += spec.compiler_flags["ldflags"] + spec.compiler_flags["ldlibs"]
        env.append_flags("HIPCC_LINK_FLAGS_APPEND", " ".join(flags))

    # A header may be compiled while another target still writes it.
    parallel = False

    @property
    def build_targets(self):
        rocm, rccl = self.spec["hip"].prefix, self.spec["rccl"].prefix
        hipcc = [join_path(rocm.bin, "hipcc"), *self.gcc_toolchain()]
        hipcc += [f"--offload-arch={one}" for one in self.spec.variants["amdgpu_target"].value]
        variables = [
            f"ROCM_PATH={rocm}",
            f"HIPCC={' '.join(hipcc)}",
            f"NCCL_HOME={rccl}",
            f"CUSTOM_RCCL_LIB={rccl.lib}",
            # What the programs print as their version; by itself it is that of any repository
            # around the folder where Spack builds.
            "GIT_BRANCH=develop",
            f"GIT_REV={self.versions[self.version]['commit'][:7]}",
            "GIT_DIFF=",
        ]
        if self.spec.satisfies("+mpi"):
            variables += ["MPI=1", f"MPI_HOME={self.spec['mpi'].prefix}"]
        return variables

    def gcc_toolchain(self):
        """Options for ROCm's clang, which by itself takes the newest GCC under /usr."""
        prefix = os.path.dirname(os.path.dirname(os.environ["SPACK_CXX"]))
        is_elsewhere = self.spec.satisfies("%gcc") and prefix != "/usr"
        return [f"--gcc-toolchain={prefix}"] if is_elsewhere else []

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        install("build/*_perf", prefix.bin)
