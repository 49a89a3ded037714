"""The software of a session's programs: Spack's locks, and programs built otherwise."""
