"""Third-party tools beside our programs: rounds of both, their record and their comparison.

The core names this package in its table of commands, and does without it.
"""
