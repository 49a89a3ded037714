"""What changed on a node under hours of load."""
