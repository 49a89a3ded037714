"""Which NIC, node or switch is at fault, from the rounds of the program ``fabric``."""

from fabricheck.judge.fabric.attributing import attribute, attribution
from fabricheck.judge.fabric.model import Attribution, LowPair, Named, NamedSwitch

__all__ = ["Attribution", "LowPair", "Named", "NamedSwitch", "attribute", "attribution"]
