"""Comparison of two sessions: what changed beyond noise, and what is missing.

`pairing` resolves both names and pairs their partitions and nodes, `keys` defines which columns two
rows must share to be compared, `values` gives each key its value, `judging` judges whether two
values differ, and `compare` combines all. Nothing is printed here.
"""
