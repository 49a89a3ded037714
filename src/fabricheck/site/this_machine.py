"""The GPUs of this machine: the partition ``local:gpu``, whose node is that of a node model."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any

from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.node import NodeModel, load, products
from fabricheck.site.clusters import word

#: The variable with the node model: its name, or the path of a file.
NODE = "FABRICHECK_NODE"

NAME = "local:gpu"


def draft() -> Path:
    """Return where the draft of this machine's node model is: a file in the results folder."""
    results = Path(os.environ.get(ENV_RESULTS) or checkout.ORIGIN / "results")
    return results.absolute() / "nodes" / f"{socket.gethostname()}.yaml"


def node(required: bool = False) -> str | None:
    """Return the node model that FABRICHECK_NODE names, else the draft; None without both.

    :raises InvalidInputError: when the variable names no usable node model; without both if one is
        required, with the ways to get one.
    """
    named = word(NODE)
    if named.endswith((".yaml", ".yml")) and not Path(named).is_absolute():
        # ReFrame reads its settings in another working folder than the user's.
        raise InvalidInputError(
            f"{NODE}={named} is not an absolute path: write {NODE}=$PWD/{named}."
        )
    model = named or str(draft())
    try:
        load(model)
    except FabricheckError as error:
        if named:
            raise InvalidInputError(f"{NODE}={named}: {error}") from None
        if required:
            raise InvalidInputError(
                f"{NAME} has no node model ({str(error).removesuffix('.')}): set {NODE} to a name "
                "in config/nodes or to the path of a file, or draft that of this machine with "
                "'fabricheck node draft'."
            ) from None
        return None
    return model


def name_for_files(model: NodeModel | None = None) -> str:
    """Return what distinguishes a node from others in file names; empty without a node model.

    Equal machines have the same: 2x-nvidia-h100-80gb-hbm3-switch18.

    :param model: that of the node of a session; by default this machine's.
    """
    if model is None:
        named = node()
        if named is None:
            return ""
        model = load(named)
    words = [
        f"{len(model.devices)}x",
        products.label({"name": model.device_model}),
        *(link_class.name for link_class in model.link_classes),
    ]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower())


def choose(systems: list[dict[str, Any]], selected: str) -> None:
    """Remove ``local:gpu`` from the systems of a session that asks for it in no way.

    A draft is used where the session names the partition: nobody who set nothing measures GPUs.

    :param systems: those of the session, changed in place.
    :param selected: the partition that ``--system`` names.
    :raises InvalidInputError: when it is ``local:gpu``, and that has no node model.
    """
    if selected == NAME:
        node(required=True)
    elif not word(NODE):
        for system in systems:
            names = ((f"{system['name']}:{each['name']}", each) for each in system["partitions"])
            system["partitions"] = [each for name, each in names if name != NAME]
