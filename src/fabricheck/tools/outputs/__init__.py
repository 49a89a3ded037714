"""Reading what third-party benchmarks print: whole, verified and of the run asked for, or refused.

Each parser is a pure function from a text to frozen dataclasses. Bandwidths are in GB/s (1e9 bytes
per second), times in us, sizes in bytes. The errors are those of :mod:`fabricheck.core.errors`.
"""
