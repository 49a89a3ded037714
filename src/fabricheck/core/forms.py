"""The forms of identifiers that documents, run reports and lists of nodes have.

They are compared where such a file is read: a name with a line feed could forge a line of what a
command prints, and one with a blank an argument of a command. Other texts may have anything, and
are made printable where they are shown.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

#: A host name, short or full, or a scheduler's name of a node. A simulated node is marked.
_NODE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}( \(simulated\))?$"

#: What a verdict is on: a node, a host list, or what has no node, as of results without one.
_JUDGED = r"^(\(no node\)|[A-Za-z0-9][A-Za-z0-9 ._,()\[\]-]*)$"

#: A file beside another one.
_FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

#: Domain, bus, device and mostly function, as kernels, HIP and NVIDIA's library write them.
_PCI_ADDRESS = r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(\.[0-9A-Fa-f]{1,2})?$"

#: A name of software, the kernel or a vendor: ASCII without blanks.
_WORD = r"^[!-~]+$"

#: What each form is of, for sentences.
NOUNS = {
    _NODE_NAME: "the name of a node",
    _FILE_NAME: "the name of a file",
    _PCI_ADDRESS: "a PCI address",
    _WORD: "a word of ASCII characters",
}

NodeName = Annotated[str, Field(pattern=_NODE_NAME)]
FileName = Annotated[str, Field(pattern=_FILE_NAME)]
PciAddress = Annotated[str, Field(pattern=_PCI_ADDRESS)]
Word = Annotated[str, Field(pattern=_WORD)]


def is_node_name(text: str) -> bool:
    """Whether a text has the form of a node's name."""
    return re.fullmatch(_NODE_NAME, text) is not None


def is_judged(text: str) -> bool:
    """Whether a text is what a verdict can be on."""
    return re.fullmatch(_JUDGED, text) is not None
