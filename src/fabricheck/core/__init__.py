"""Used by every room: errors and exit codes, the vocabulary, units, statistics, files."""
