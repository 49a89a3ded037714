"""One job over many nodes: on each of them a whole session of ReFrame, measured for itself."""
