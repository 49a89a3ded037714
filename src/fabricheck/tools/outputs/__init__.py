"""Parsers of third-party benchmarks: they accept only complete, verified, requested output.

Each parser is a pure function from a text to frozen dataclasses. Bandwidths are in GB/s (1e9 bytes
per second), times in us, sizes in bytes. The errors are those of :mod:`fabricheck.core.errors`.
"""
