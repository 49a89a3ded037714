"""The build of the suite's programs, by Spack or by CMake; nothing is measured."""

import reframe as rfm

from fabricheck.rfm.build import BuildCheck


@rfm.simple_test
class build(BuildCheck):
    """Builds the programs of an environment from this checkout and runs each once."""

    descr = "Build of the programs by Spack or CMake, and a first run of each"
    tags = {"build"}
