"""Our programs and third-party benchmarks, launched in turn, round by round, and compared."""
