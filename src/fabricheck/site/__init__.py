"""Sites: their files, their software, and what their partitions have."""
