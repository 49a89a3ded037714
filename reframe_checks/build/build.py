"""The build of the programs themselves, by Spack or by CMake; it measures nothing."""

import reframe as rfm

from fabricheck.rfm.build import BuildCheck


@rfm.simple_test
class build(BuildCheck):
    """The programs of an environment, built from this checkout and started once."""

    descr = "Build of the programs by Spack or CMake, and a first run of what was built"
    tags = {"build"}
