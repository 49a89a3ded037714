"""What the checks and the sites need on top of ReFrame: the strict base and the session guard."""
