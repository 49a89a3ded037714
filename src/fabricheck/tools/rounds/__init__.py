"""Rounds: our programs and third-party benchmarks, launched alternately and compared."""
