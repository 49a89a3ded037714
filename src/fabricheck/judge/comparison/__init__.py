"""Two sessions set against each other: what changed beyond noise, and what is missing.

`pairing` reads what is named and finds what stands against each other, `keys` says which columns
two rows must have in common to be compared, `values` gives each key its value, `judging` says
whether one value differs from another, and `compare` puts it together. Nothing is shown here.
"""
