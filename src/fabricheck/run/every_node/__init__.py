"""One job over many nodes: a separate ReFrame session on each of them."""
