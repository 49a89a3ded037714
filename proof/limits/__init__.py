"""Healthy sessions, drawn and simulated, judged by each set of limits."""
