"""Verdicts: the status of each node of a session, its reasons, and its caveats."""
