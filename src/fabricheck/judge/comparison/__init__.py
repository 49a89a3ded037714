"""Comparison of two sessions: values that changed beyond noise, and missing values.

`pairing` resolves both names and pairs their partitions and nodes. `keys` defines the columns that
two rows must share to be compared. `values` gives each key its value. `judging` judges whether two
values differ. `compare` combines all of these. This package prints nothing.
"""
