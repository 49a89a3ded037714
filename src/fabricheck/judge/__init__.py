"""Questions to results: verdicts, claims, comparisons, calibrations, coverage."""
