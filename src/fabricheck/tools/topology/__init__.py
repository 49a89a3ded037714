"""The topology of a node: what its drivers or texts of tools tell, compared with a node model."""
