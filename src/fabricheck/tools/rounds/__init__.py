"""Our programs beside third-party benchmarks: launched in turn, round by round, and compared."""
