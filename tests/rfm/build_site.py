"""A machine whose environments are builds that go well, and builds that fail in different ways.

cmake and spack-env/install are stand-ins that do what FAKE_BUILD says, and so is what they build.
"""

import os


def environment(name, build="", runtime="host", features=(), **variables):
    """Return an environment whose build does something of its own."""
    home = os.environ["FAKE_SPACK_HOME"]
    programs = "/my/bin" if name == "elsewhere" else f"{home}/view/bin"
    spack = {"spack_environment": "local"} if "spack" in features else {}
    variables = {"FAKE_BUILD": build, "FAKE_RUNTIME": runtime, **variables}
    return {
        "name": name,
        "target_systems": ["builds"],
        "features": ["stream", *features],
        "env_vars": [["FABRICHECK_HOST_DEVICES", "2"], *map(list, variables.items())],
        "extras": {"runtime": runtime, "programs": programs, "build_command": "make", **spack},
    }


HERE = [
    environment("good"),
    environment("error", build="error"),
    environment("incomplete", build="nothing"),
    environment("gone", PATH="/nowhere"),
    environment("liar", FAKE_STREAM="other-runtime"),
    environment("old", FAKE_COMMIT="0" * 40),
    environment("wrong", FAKE_STREAM="exit-5"),
    environment("spack", features=["spack"]),
    environment("refused", build="refused", features=["spack"]),
    environment("elsewhere", features=["spack"]),
]
WITHOUT = [
    environment("none", runtime="rocm", FAKE_STREAM="exit-8"),
    environment("found", runtime="rocm"),
]


def partition(name, environments, arch):
    """Return a partition of two devices with these environments."""
    bound = {"value": 1e6, "origin": "derived", "how": "a guess"}
    return {
        "name": name,
        "scheduler": "local",
        "launcher": "local",
        "environs": [one["name"] for one in environments],
        "features": ["devices"],
        "devices": [{"type": "gpu", "arch": arch, "num_devices": 2}],
        "extras": {"physical_bounds": {"GB/s": bound}},
    }


site_configuration = {
    "systems": [
        {
            "name": "builds",
            "hostnames": ["^$"],
            "partitions": [
                partition("here", HERE, "host"),
                partition("without", WITHOUT, "gfx90a"),
            ],
        }
    ],
    "environments": [*HERE, *WITHOUT],
}
