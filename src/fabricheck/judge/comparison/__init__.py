"""Comparison of two sessions: values that changed beyond noise, and missing values.

`pairing` resolves both names and pairs their partitions and nodes. `values` defines the columns
that two rows must share to be compared, and gives each such key its value. `judging` judges whether
two values differ. `compare` combines all of these. This package prints nothing.
"""
