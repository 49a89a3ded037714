"""Diagnosis: the component of a node that explains the metrics that missed their limits."""
