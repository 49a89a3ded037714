"""Which NIC, node or switch is at fault, from the rounds of the program ``fabric``."""
