"""Diagnosis: which component of a node explains the metrics that missed their limits."""
