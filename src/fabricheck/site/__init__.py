"""Sites: their files, their software, and the properties of their partitions."""
