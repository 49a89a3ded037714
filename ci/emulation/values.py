"""The values that the kernels must compute, and arrays to compare with them."""

import itertools
import struct
from array import array
from dataclasses import dataclass

GUARD, GUARD_BYTE = 8, b"\xa5"  # elements after each array, which no kernel may write


class Wrong(Exception):
    """A wrong result of a kernel: a sentence without its subject."""


def pattern(i, seed):
    """Return the value of word `i` under `seed` (harness/pattern.hpp)."""
    x = (i ^ ((i >> 32) * 0x9E3779B9) ^ seed) & 0xFFFFFFFF
    x = ((x ^ x >> 16) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 0x846CA68B) & 0xFFFFFFFF
    return 1.0 + ((x ^ x >> 16) >> 8) / 2.0**24


def double_bits(value):
    """Return the 64 bits of a double."""
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def patterns(count, *terms):
    """The bits of `count` words, each the sum of factor * pattern over terms (factor, seed)."""
    return [double_bits(sum(f * pattern(i, seed) for f, seed in terms)) for i in range(count)]


def line_of(step, bits):
    """Return the line of a step of the chase's cycle (p2p/chase.cpp)."""
    mask, shift, x = 2**bits - 1, (bits + 1) // 2, step & (2**bits - 1)
    for _ in range(3):
        x = (x * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & mask
        x ^= x >> shift
    return x


def message_hash(i, rank, message):
    """Return the hash of an element of a rank's message (mpi/values.cpp)."""
    x = (i + 0x9E3779B97F4A7C15 * (rank + 1) + (message << 40)) & (2**64 - 1)
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & (2**64 - 1)
    return x ^ x >> 31


# Of each element type: code of an array of its bits, format of its value, DataType, and bits of a
# value, none of a byte.
TYPES = {
    "unsigned char": ("B", "B", 0, None),
    "int": ("I", "i", 1, 18),
    "float": ("I", "f", 2, 12),
    "double": ("Q", "d", 3, 40),
}


@dataclass(frozen=True)
class Content:
    """The content of a message's array, as in mpi/values.hpp."""

    type: str
    first_rank: int = 0
    ranks: int = 1
    first: int = 0
    message: int = 0

    def packed(self):
        """Return the bytes of the structure."""
        ranks = self.first_rank, self.ranks
        return struct.pack("<iiixxxxQIxxxx", TYPES[self.type][2], *ranks, self.first, self.message)

    def element(self, i):
        """Return the bits of element `i`."""
        _, value, _, width = TYPES[self.type]
        total = 0
        for rank in range(self.first_rank, self.first_rank + self.ranks):
            hashed = message_hash(self.first + i, rank, self.message)
            total += hashed % 255 if width is None else 1 + (hashed >> 64 - width) % (2**width - 1)
        return int.from_bytes(struct.pack("<" + value, total), "little")

    def elements(self, count):
        """Return the bits of the first `count` elements."""
        return [self.element(i) for i in range(count)]


def memory(code, values):
    """Return an array of the values, with a guard after it."""
    made = array(code, values)
    made.frombytes(GUARD_BYTE * (GUARD * made.itemsize))
    return made


def unwritten(code, count):
    """Return an unwritten array of `count` elements, with a guard after it."""
    made = array(code)
    made.frombytes(GUARD_BYTE * ((count + GUARD) * made.itemsize))
    return made


def require(what, seen, right):
    """Raise Wrong for the first wrong element of memory, including the guard."""
    right = memory(seen.typecode, right)
    for i, (value, other) in enumerate(itertools.zip_longest(seen, right)):
        if value != other:
            where = "element" if i < len(right) - GUARD else "element behind the end"
            raise Wrong(f"{what}: {where} {i} is {value:#x}, not {other:#x}")
