"""Run by `spack python`: concretizes the active environment as if this machine had another libc.

    spack -e ENV python standin.py 2.31 /usr

The libc of a compiler is what Spack reads from the compiler's output; a compiler of another site is
not here, so its libc is told instead.
"""

import sys

import spack.environment as ev
import spack.spec
import spack.util.libc

VERSION, PREFIX = sys.argv[1:3]


def told(*_):
    spec = spack.spec.Spec(f"glibc@={VERSION}")
    spec.external_path = PREFIX
    return spec


spack.util.libc.libc_from_dynamic_linker = told
spack.util.libc.libc_from_current_python_process = told

env = ev.active_environment()
with env.write_transaction():
    env.concretize(force="--force" in sys.argv)
    env.write(regenerate=False)
