"""References of a partition, and the sources of their values."""
