"""What two commits say of the same sessions, kept and compared, before and after a refactoring."""
