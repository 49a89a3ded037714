"""Our programs beside the tools of others: launched in turn, round by round, and compared."""
