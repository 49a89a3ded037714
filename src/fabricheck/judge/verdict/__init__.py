"""Verdicts: for each node of a session one word, the reasons for it, and what it rests on."""
