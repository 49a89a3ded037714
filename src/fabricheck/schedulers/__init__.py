"""Ways to reach nodes: a file for each, and one table of them."""
