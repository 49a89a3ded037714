"""The Spack environments of sites that are not here, and what stands in for each of them.

A stand-in is what Spack reads of a machine when it concretizes: the operating system, the libc, and
that the compilers run. It lies outside the environment and ends with the temporary folder.
"""

from dataclasses import dataclass
from pathlib import Path

SPACK_ENV = Path(__file__).parents[2] / "spack-env"


@dataclass(frozen=True)
class StandIn:
    """A machine as Spack sees it: ID and VERSION_ID of os-release, glibc and its prefix."""

    id: str
    version: str
    glibc: str
    glibc_prefix: str

    @property
    def operating_system(self) -> str:
        """Spack's name, e.g. sles15, ubuntu22.04."""
        return self.id + (self.version if self.id == "ubuntu" else self.version.split(".")[0])


# glibc of each system's release. Where ld.so of that release does not print its version (before
# 2.33), Spack asks ldd, and takes /usr for the prefix; SUSE has not merged /lib64 into /usr.
_ROCKY9 = StandIn("rocky", "9.4", "2.34", "/usr")
_UBUNTU22 = StandIn("ubuntu", "22.04", "2.35", "/usr")
STAND_INS = {
    "dardel": StandIn("sles", "15.5", "2.31", "/usr"),
    "dardel-26.03": StandIn("sles", "15.5", "2.31", "/usr"),
    "lumi": StandIn("sles", "15.6", "2.38", "/"),
    "lumi-25.09": StandIn("sles", "15.6", "2.38", "/"),
    "frontier": StandIn("sles", "15.5", "2.31", "/usr"),
    "frontier-26.03": StandIn("sles", "15.7", "2.38", "/"),
    "jureca-mi250": _ROCKY9,
    "jureca-mi250-ompi5": _ROCKY9,
    "leonardo": StandIn("rhel", "8.7", "2.28", "/usr"),
    "tuolumne": StandIn("rhel", "8.10", "2.28", "/usr"),
    "hunter": StandIn("sles", "15.6", "2.38", "/"),
    "jureca-a100": _ROCKY9,
    "local-cuda": _UBUNTU22,
    "local-rocm": _UBUNTU22,
}
