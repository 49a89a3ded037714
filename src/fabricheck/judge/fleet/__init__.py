"""A fleet: which of many nodes is odd, and what changed between two times (docs/network.md)."""
