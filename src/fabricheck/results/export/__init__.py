"""Results as one tidy table: a row is one value, a column is one variable."""
