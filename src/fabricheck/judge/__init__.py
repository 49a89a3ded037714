"""Judgements of results: verdicts, claims, comparisons, calibrations, coverage, diagnoses."""
