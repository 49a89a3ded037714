"""The HTML page of a session: what it reproduces, and where the node is slow."""
