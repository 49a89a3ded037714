"""A disk that is full, as far as a test of one process needs it."""

import resource
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size):
    """Let no file grow above a size, in bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
