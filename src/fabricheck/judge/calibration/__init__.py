"""References of a system from its own repeated sessions: ``fabricheck limits calibrate``."""
