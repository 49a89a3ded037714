"""Third-party programs: their parsers, one runner, what checks run, rounds beside ours."""
