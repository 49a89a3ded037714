"""Comparison of two sessions: values that changed beyond noise, and missing values."""
