"""What a session's programs were built from: Spack's locks, and what is not of one."""
