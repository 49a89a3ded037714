"""The catalogue of faults that the suite is tested against.

`make faults` makes all of them and writes what was said into docs/evidence/faults.md.
"""
