"""Site files of tests, of which only the name and the host names matter."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path, name: str, *hostnames: str) -> None:
    """Write a site file of one system, whose partition is a plain machine."""
    extras = {"physical_bounds": {"GB/s": {"value": 1.0, "origin": "derived", "how": "a test"}}}
    partition = {"name": "cpu", "scheduler": "local", "launcher": "local", "environs": [name],
                 "devices": [{"type": "cpu", "arch": "x86", "num_devices": 1}],
                 "extras": extras}  # fmt: skip
    system = {"name": name, "hostnames": list(hostnames), "partitions": [partition]}
    programs = {"runtime": "host", "programs": "/opt/bin", "build_command": "make build"}
    environment = {"name": name, "target_systems": [name], "extras": programs}
    site = {"systems": [system], "environments": [environment]}
    (folder / f"{name}.py").write_text(f"site_configuration = {site}")


#: A site with a partition of each model in config/nodes, made by the steps of docs/site.md: reached
#: by Slurm, a node model, no set of references, programs by Spack.
OF_MODELS = """
from fabricheck.node import available, load
from fabricheck.site import clusters

RUNTIMES = {"amd": "rocm", "nvidia": "cuda"}

site_configuration = {
    "systems": [
        {
            "name": "models",
            "hostnames": ["^$"],
            "partitions": [
                {
                    "name": model,
                    "environs": [RUNTIMES[load(model).vendor]],
                    **clusters.reached("gpu"),
                    **clusters.node(model),
                }
                for model in available()
            ],
        }
    ],
    "environments": [
        {"name": runtime, "target_systems": ["models"], **clusters.programs(runtime, "models")}
        for runtime in RUNTIMES.values()
    ],
}
"""


def write_models(folder: Path) -> None:
    """Write the site file of `OF_MODELS` to a folder."""
    (folder / "models.py").write_text(OF_MODELS)
