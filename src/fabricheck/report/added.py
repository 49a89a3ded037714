"""Sections that subpackages add to the page, where they are installed.

Such a module has ``SECTIONS``, their titles by id, and ``TEMPLATES``, the folder of their templates
``ID.html.j2``. The first one, with ``ID`` and ``TITLE``, has a content for each partition:
``judged_claims(observed)``, with ``says``, one line, and ``defects``, sentences.
``fitted(observed, records)`` is what a figure says of published values that are no evidence for a
simulation.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType

#: The modules, in the order of the page.
MODULES = ("fabricheck.papers.section",)


@functools.cache
def sections() -> tuple[ModuleType, ...]:
    """Return the modules whose package is installed."""
    return tuple(
        importlib.import_module(name)
        for name in MODULES
        if importlib.util.find_spec(name.rpartition(".")[0]) is not None
    )
