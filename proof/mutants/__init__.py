"""The mutants: deliberate errors in the code that judges, each of which a test has to see.

`make mutants` makes all of them and writes which test saw each into docs/evidence/mutants.md.
"""
