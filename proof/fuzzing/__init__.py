"""Readers of foreign text, fed with damaged text; sessions that are killed at random moments."""
