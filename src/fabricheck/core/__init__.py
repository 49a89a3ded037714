"""What every room stands on: errors, units, files, statistics."""
