"""Third-party programs: their parsers, one runner, the checks' launches, and comparison rounds."""
