"""Which machine of the published data set a partition is."""

from __future__ import annotations

#: By partition the name that the data set has for its machine; others have none there. That the
#: paper's machine is Dardel is inferred (``system_inferred`` of its records): it names none.
MACHINES = {
    "lumi:gpu": "lumi-g",
    "frontier:gpu": "frontier",
    "dardel:gpu": "dardel",
    "jureca:mi250": "jureca-mi250",
    "jureca:a100": "jureca-a100",
    "leonardo:booster": "leonardo-booster",
}
