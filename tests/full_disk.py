"""A full disk for a test of one process."""

import resource
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size):
    """Limit the size of files in bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
