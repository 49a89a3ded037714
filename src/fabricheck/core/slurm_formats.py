"""What Slurm's commands print, whatever the user's environment makes of it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

#: Prefixes of variables that are options of the commands whose text is read.
_OPTIONS = ("SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_")

#: Further variables that change a text, or where it goes. SLURM_CLUSTERS is none of them: it names
#: the cluster of a job.
_TEXTS = (
    "SLURM_BITSTR_LEN",
    "SLURM_JSON",
    "SLURM_LABELIO",
    "SLURM_STDERRMODE",
    "SLURM_STDOUTMODE",
    "SLURM_YAML",
)


def make_standard(environment: MutableMapping[str, str]) -> None:
    """Let Slurm's commands print in their standard formats, and srun what its steps print."""
    for name in list(environment):
        if name.startswith(_OPTIONS) or name in _TEXTS:
            del environment[name]
    environment["SLURM_TIME_FORMAT"] = "standard"


def standard(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of an environment in which the formats are standard."""
    copy = dict(environment)
    make_standard(copy)
    return copy
