"""The comparisons of each runtime that measures, in the order of the table's rows."""

from __future__ import annotations

from fabricheck.beside.beside_amd import BESIDE_AMD
from fabricheck.beside.beside_nvidia import BESIDE_NVIDIA
from fabricheck.beside.cases import Comparison

#: By the runtime of our programs, as their documents name it.
COMPARISONS: dict[str, tuple[Comparison, ...]] = {"cuda": BESIDE_NVIDIA, "rocm": BESIDE_AMD}
