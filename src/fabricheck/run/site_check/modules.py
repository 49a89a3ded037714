"""The modules named by a site file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricheck.run.site_check.machine import Finding, Machine, missing, ok
from fabricheck.site.partitions import Section, Target

#: Loads modules in order, in its own shell. The function ``module`` is inherited, or comes from
#: Lmod or Environment Modules.
LOAD = """
type module > /dev/null 2>&1 || . "${LMOD_PKG:-${MODULESHOME:-/none}}/init/bash" > /dev/null 2>&1
[ $# -eq 0 ] || type module > /dev/null 2>&1 || exit 127
for name in "$@"; do
  echo "load $name"
  module load "$name" 2>&1 < /dev/null
done
"""

#: Lists the loaded modules.
_LIST = """
echo "list"
module -t list 2>&1
"""

#: ReFrame's name for no module system.
_NONE = "nomod"


def check(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield whether the modules of an environment can be loaded in order."""
    plugin = environment["extras"].get("rccl_nodes", {}).get("modules", [])
    wanted = [*target.modules(environment), *plugin]
    named = target.system.get("modules_system", _NONE)
    if not wanted:
        return
    if named == _NONE:
        yield missing(
            f"The site file names the modules {', '.join(wanted)}, but no modules_system that "
            "could load them: state one (lmod, tmod4)."
        )
        return
    code, said = machine.run("bash", "-c", LOAD + _LIST, "bash", *wanted)
    if code == 127:
        yield missing(
            "The command module is missing here, but the site file names the modules "
            f"{', '.join(wanted)} ({named}): start from a login shell of the site."
        )
        return
    loads, _, listed = said.rpartition("\nlist\n")
    loaded = [re.sub(r"\s*\(.*\)$", "", line.strip()) for line in listed.splitlines()]
    for name in wanted:
        if any(one == name or one.startswith(f"{name}/") for one in loaded):
            yield ok(f"The module {name} can be loaded.")
        else:
            yield missing(
                f"The module {name} cannot be loaded{_reason(loads, name)}: see 'module avail "
                f"{name.split('/')[0]}', and correct the version in the site file."
            )


def _reason(loads: str, name: str) -> str:
    after = loads.partition(f"load {name}\n")[2].partition("\nload ")[0]
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    return f" ({lines[0].rstrip('.:')})" if lines else ""
