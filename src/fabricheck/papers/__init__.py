"""What compares results with publications: claims, and the fidelity of the simulated nodes.

The core names this package in its table of commands and in its list of page sections, and does
without it.
"""
