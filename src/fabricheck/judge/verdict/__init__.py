"""Verdicts: the status of each node of a session, the reasons for it, and its caveats."""
