"""Two sessions set against each other: what changed beyond noise, and what is missing.

`sides` finds what is compared, `subjects` says what two values must have in common to be compared,
`judging` whether one differs from the other, and `compare` puts it together. Nothing is shown here.
"""
